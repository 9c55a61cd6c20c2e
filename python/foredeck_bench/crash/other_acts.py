"""Acts on files, tasks and the index."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.derived.follower import Follower
from foredeck.derived.layer import discard
from foredeck.engine.engine import Engine
from foredeck.errors import ToolError
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import ToolObservedParams, ToolPrepareParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import FileDocument, Provenance, identity_hash
from foredeck.model.messages import store_message
from foredeck.model.records import TurnDocument
from foredeck.model.sources import FilesystemSource
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite
from foredeck.tasks.board import Actor
from foredeck.tasks.work import NewTask, TaskWork
from foredeck.timeline.rewinding import apply, go_on, interrupted, plan_for_call
from foredeck_bench.crash.acts import PATIENCE_S, Act, Reach, Scene, reporting

# Rewinding

FILES = {f"{folder}{n}.txt": f"{n}\n" for folder in ("", "sub/") for n in range(3)}
DRAFT = ".foredeck-"
COMMANDS = (
    *("printf 9 >> 0.txt", "mv 1.txt moved.txt", "rm 2.txt", "chmod 755 sub/0.txt"),
    *("echo other > sub/1.txt", "echo new > new.txt"),
)


def _files_changed(scene: Scene) -> None:
    home, folder = scene.folder / "home", scene.folder / "work"
    (folder / "sub").mkdir(parents=True)
    for path, text in FILES.items():
        (folder / path).write_text(text)
    host = SimulatedHost("s")
    with closing(Engine(Config(home=home), Host())) as engine:
        engine.open_session(host.opening(str(folder)))
        _say(host, "user", content="Go on.")
        host.accept(engine.assemble(host.request(time_ms=1)))
        for number, command in enumerate(COMMANDS):
            id, arguments = f"call-{number}", {"command": command}
            call: dict[str, Any] = {"session": "s", "id": id, "tool": "bash", "input": arguments}
            engine.prepare_tool(ToolPrepareParams(**call))
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
            content = [{"type": "text", "text": ""}]
            engine.tool_observed(ToolObservedParams(**call, content=content))
            asked = {"type": "toolCall", "id": id, "name": "bash", "arguments": arguments}
            _say(host, "assistant", content=[asked])
            _say(host, "toolResult", toolCallId=id, toolName="bash", content=content, isError=False)
        host.accept(engine.assemble(host.request(time_ms=2)))


def _say(host: SimulatedHost, role: str, **fields: Any) -> None:
    host.add({"role": role, **fields, "timestamp": len(host.messages)})


def _rewind(scene: Scene, reach: Reach, _number: int) -> None:
    home = scene.folder / "home"
    with closing(open_sqlite(home / "foredeck.db")) as store:
        steps = interrupted(home, "s")
        if steps is None:
            apply(store, home, "s", plan_for_call(store, "s", 1), advance=lambda _: reach("file"))
        else:
            go_on(store, home, "s", steps)


def _tree(scene: Scene) -> dict[str, tuple[bytes, int]]:
    folder = scene.folder / "work"
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(DRAFT)
    }


# Claiming


def _task_made(scene: Scene) -> None:
    with scene.opened() as store:
        TaskWork(store, scene.session, Actor("maker")).create(NewTask("A task for one agent"))


def _claim(scene: Scene, reach: Reach, number: int) -> None:
    with scene.opened() as store:
        work = TaskWork(reporting(store, reach), scene.session, Actor(f"agent-{number}"))
        id = _seen(work)
        with suppress(ToolError):  # another agent has it
            work.claim(id)
        work.board.refresh()
        task = work.board.get(id)
        if task is not None and not task.is_closed and task.session == work.actor.session:
            work.close(id, "completed", "done")


def _seen(work: TaskWork) -> str:
    until = time.monotonic() + PATIENCE_S
    while not (tasks := work.board.all()) and time.monotonic() < until:
        work.board.refresh()
        time.sleep(0.01)
    return tasks[0].id


def _claims(scene: Scene) -> list[tuple[str, bool]]:
    with scene.opened(lazy=True) as store:
        (task,) = store.query("task", {"project": scene.session})
        versions = [v.fields for v in store.history(task.id)]
    winner = versions[-1]["session"]
    # An agent that claims what it has claimed already renews its claim.
    return list(dict.fromkeys((v["status"], v["session"] == winner) for v in versions))


# The full-text layer

_BATCH = 5
"""So small that there are many places."""
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
Contents = dict[str, list[tuple[Any, ...]]]


def contents(db: sqlite3.Connection) -> Contents:
    """Everything in the full-text layer, in an order independent of its past."""
    db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'content', 'instance')")
    db.execute(
        "CREATE VIRTUAL TABLE temp.pieces USING fts5vocab('main', 'identifier_part', 'instance')"
    )
    tables = {name: db.execute(statement).fetchall() for name, statement in _TABLES.items()}
    db.execute("DROP TABLE temp.words")
    db.execute("DROP TABLE temp.pieces")
    return tables


def _indexed(scene: Scene) -> Path:
    """One store for all rounds, which the layer names."""
    return scene.folder.parent / "indexed"


def _no_index(scene: Scene) -> None:
    home = _indexed(scene)
    if not home.exists():
        home.mkdir(parents=True)
        with closing(open_sqlite(home / "foredeck.db")) as store:
            _fill(store)
    with (
        closing(open_sqlite(home / "foredeck.db")) as store,
        Follower(store, "search", home) as follower,
    ):
        path = follower.path
    discard(path)


def _fill(store: Store) -> None:
    """Turns and files, repeated so that versions replace each other."""
    for number in range(60):
        blobs: dict[str, bytes] = {}
        question = {"role": "user", "content": f"call makeThing{number} of part_{number % 7} again"}
        turn = TurnDocument(
            id=f"turn:kills:{number}", session="kills", user=store_message(question, blobs)
        )
        source = FilesystemSource(filesystemId="bench", path=f"/repo/file_{number % 9}.ts")
        content = f"value_{number} = makeThing()\n" * 40
        file = FileDocument(
            id=identity_hash("file", source),
            source=source,
            content=content,
            provenance=Provenance(origin="bench", generator="tool"),
            file_type="ts",
            char_count=len(content),
        )
        store.commit(Batch(puts=[turn.seal(), file.seal()], blobs=blobs))


def _index(scene: Scene, reach: Reach, _number: int) -> None:
    home = _indexed(scene)
    with (
        closing(open_sqlite(home / "foredeck.db")) as store,
        Follower(store, "search", home, batch=_BATCH) as follower,
    ):
        reach("batch")
        follower.catch_up(lambda: reach("batch"))


def _layer(scene: Scene) -> Contents:
    home = _indexed(scene)
    with (
        closing(open_sqlite(home / "foredeck.db")) as store,
        Follower(store, "search", home) as follower,
    ):
        return contents(follower.db)


REWIND = Act(_files_changed, _rewind, _tree, races=False)
CLAIM = Act(_task_made, _claim, _claims)
INDEX = Act(_no_index, _index, _layer, atomic=False)
