"""Kill whoever writes the index, again and again: it must equal one that was made at once."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from foredeck.derived import load_layer
from foredeck.derived.follower import BATCH as USUAL_BATCH
from foredeck.derived.follower import Follower
from foredeck.derived.layer import discard
from foredeck.model.messages import store_message
from foredeck.model.records import TurnDocument
from foredeck.store.protocol import Batch, LocalStore
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_bench.made_documents import file_document

BATCH = 5
"""Versions per transaction while somebody is killed: small, so that there are many moments."""

MOST_STATEMENTS = 30
"""A batch takes more."""

_TABLES = {
    "entry": """SELECT e.id, e.key, e.document, e.token, e.part, t.text, r.text, s.text, o.text,
        p.text, e.message, e.turn, e.time_ms, e.newest FROM entry e
        JOIN name t ON t.id = e.type JOIN name r ON r.id = e.role
        LEFT JOIN name s ON s.id = e.status LEFT JOIN name o ON o.id = e.session
        LEFT JOIN name p ON p.id = e.path ORDER BY e.id""",
    "words": "SELECT * FROM temp.words ORDER BY term, doc, col, offset",
    "pieces": "SELECT * FROM temp.pieces ORDER BY term, doc",
    "identifier": "SELECT id, name FROM identifier ORDER BY id",
    "folder": "SELECT n.text, f.cwd FROM folder f JOIN name n ON n.id = f.session ORDER BY 1",
    "met": """SELECT m.document, n.text FROM met m JOIN name n ON n.id = m.session
        ORDER BY 1, 2""",
    "position": "SELECT version, store_id, late, token, time_ms FROM layer_position",
}


def contents(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that the full-text layer holds, in an order that does not depend on its past."""
    db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'content', 'instance')")
    db.execute(
        "CREATE VIRTUAL TABLE temp.pieces USING fts5vocab('main', 'identifier_part', 'instance')"
    )
    found = {name: db.execute(statement).fetchall() for name, statement in _TABLES.items()}
    db.execute("DROP TABLE temp.words")
    db.execute("DROP TABLE temp.pieces")
    return found


def made_at_once(
    store: LocalStore, home: Path, batch: int = USUAL_BATCH
) -> dict[str, list[tuple[Any, ...]]]:
    """What the layer holds when nobody is killed."""
    with Follower(store, load_layer("search"), home, batch=batch) as follower:
        follower.make_again()
        return contents(follower.db)


def kill_writers(
    store_file: Path,
    home: Path,
    rounds: int,
    advance: Callable[[], None] = lambda: None,
    seed: int = 1,
) -> dict[str, int]:
    """Rounds in which a process that makes the layer is killed; how many were killed before the
    end, and how many layers differed afterwards from one that was made at once."""
    chance = random.Random(seed)
    killed = differed = 0
    with closing(open_sqlite(store_file)) as store:
        wanted = made_at_once(store, home, batch=BATCH)
        batches = len(store.changes_since(None, limit=10**9)) // BATCH
        for _ in range(rounds):
            with Follower(store, load_layer("search"), home) as follower:
                path = follower.path
            discard(path)
            after = chance.randrange(max(1, batches - 1))
            killed += _killed_midway(store_file, home, after, chance.randint(1, MOST_STATEMENTS))
            with Follower(store, load_layer("search"), home) as follower:
                follower.catch_up()
                differed += contents(follower.db) != wanted
            advance()
    return {"rounds": rounds, "killed": killed, "differed": differed}


def kill_index_writers(rounds: int, advance: Callable[[], None] = lambda: None) -> dict[str, int]:
    """The same over a scratch store with a few sessions."""
    with tempfile.TemporaryDirectory(prefix="foredeck-search-") as scratch:
        home = Path(scratch)
        with closing(open_sqlite(home / "foredeck.db")) as store:
            _fill(store)
        return kill_writers(home / "foredeck.db", home, rounds, advance)


def _fill(store: LocalStore) -> None:
    """Turns and files, some of them again and again, so that versions replace each other."""
    for number in range(150):
        blobs: dict[str, bytes] = {}
        asked = {"role": "user", "content": f"call makeThing{number} of part_{number % 7} again"}
        turn = TurnDocument(
            id=f"turn:kills:{number}", session="kills", user=store_message(asked, blobs)
        )
        file = file_document(number % 9, f"value_{number} = makeThing()\n" * 40)
        store.commit(Batch(puts=[turn.seal(), file], blobs=blobs))


def _killed_midway(store_file: Path, home: Path, batches: int, statements: int) -> bool:
    """Let a process make the layer that is killed so many statements after so many
    batches: counted and not timed, since a busy machine is slow. Whether it was still at it."""
    process = os.fork()
    if process == 0:
        _write_and_exit(store_file, home, batches, statements)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def _write_and_exit(store_file: Path, home: Path, batches: int, statements: int) -> None:
    """The work of the forked process, which never returns to its caller's code."""
    code = 1
    try:
        with (
            closing(open_sqlite(store_file)) as store,
            Follower(store, load_layer("search"), home, batch=BATCH) as follower,
        ):
            left = itertools.count(batches, -1)
            to_go = itertools.count(statements, -1)

            def begin() -> None:
                if next(left) == 0:
                    follower.db.set_trace_callback(lambda _: _die_at_zero(to_go))

            begin()
            follower.catch_up(begin)
        code = 0
    finally:
        os._exit(code)


def _die_at_zero(to_go: Iterator[int]) -> None:
    if next(to_go) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
