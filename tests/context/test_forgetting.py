"""Forgetting: nothing that others need goes, nothing that only the forgotten held stays."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from context.driver import Host
from context.messages import lines, user
from context.scenes import ask, bash, go_on, use
from examples import examples
from foredeck.config import Config
from foredeck.errors import Conflict
from foredeck.model.messages import store_message
from foredeck.store.erasing import Forgetting, erase, erasure_of, plan_forgetting
from foredeck.store.protocol import Batch
from foredeck.store.references import in_message, references
from foredeck.store.sqlite import codec, rows
from foredeck.store.sqlite.connection import immediate
from foredeck.store.store import Store, open_sqlite
from store.documents import note

TEXTS = [
    "ok",
    lines(30, "shared by some"),
    lines(40, "shared, too"),
    '{"$text": "not ours"}' + "x" * 600,
    lines(300, "pasted"),
]


@dataclass(frozen=True)
class Act:
    """What a session does once: something shared, or its own secret again in a new shape."""

    kind: str
    text: str


acts = st.builds(
    Act, st.sampled_from(["bash", "read", "user", "secret", "again"]), st.sampled_from(TEXTS)
)


@dataclass(frozen=True)
class Plan:
    """A session: what it does, and the number of the one that it is a fork of, if any."""

    acts: list[Act]
    parent: int | None


World = tuple[list[Plan], list[int], list[int], int]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Sessions, those to be forgotten at first and then, and after how many of the first the
    process is killed."""
    count = draw(st.integers(2, 4))
    plans = [
        Plan(
            draw(st.lists(acts, max_size=2)),
            draw(st.none() | st.integers(0, number - 1)) if number else None,
        )
        for number in range(count)
    ]
    doomed = draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    first = draw(st.integers(1, len(doomed)))
    return plans, doomed[:first], doomed[first:], draw(st.integers(0, first))


def secret(number: int) -> str:
    """A word that only one session has said."""
    return f"secret-of-{number:03}-"


def play(home: Path, plans: list[Plan]) -> None:
    """Run the sessions, one after the other."""
    hosts: list[Host] = []
    for number, plan in enumerate(plans):
        name = f"s{number}"
        host = Host(home, session=name) if plan.parent is None else hosts[plan.parent].fork(name)
        hosts.append(host)
        ask(host, f"{secret(number)} in short")
        for place, act in enumerate(plan.acts):
            id = f"call-{number}-{place}"
            if act.kind == "bash":
                bash(host, id, act.text)
            elif act.kind == "read":
                use(host, id, "read", act.text, path="/repo/a.py")
            elif act.kind == "user":
                go_on(host, act.text)
            elif act.kind == "secret":
                bash(host, id, lines(30, secret(number)))
            else:
                go_on(host, answer=lines(50, secret(number)))
        host.close()


def prompts(home: Path, numbers: set[int]) -> dict[tuple[int, int], object]:
    """Every prompt of these sessions, from the store alone."""
    found: dict[tuple[int, int], object] = {}
    for number in sorted(numbers):
        with closing(Host(home, session=f"s{number}")) as host:
            calls = len(host.store.query("call", {"session": host.session}))
            assert calls
            for call in range(1, calls + 1):
                prompt = host.shown(call)
                found[number, call] = (prompt.system, prompt.messages)
    return found


def referred(store: Store) -> set[str]:
    """What all documents need, told one by one."""
    found: set[str] = set()
    for id in {change.id for change in store.changes_since(None, limit=1_000_000)}:
        for head in store.history(id):
            named = references(head.type, head.fields)
            found |= named.needed | named.possible | named.messages
            found |= {head.fields["text_hash"]} - {None}
            for data in store.blobs(named.messages).values():
                found |= in_message(data)
    return found


def texts_in(file: Path) -> Iterator[str]:
    """Every text that the file holds, unpacked."""
    with closing(sqlite3.connect(file)) as db:
        for hash, size, encoding, data in db.execute("SELECT hash, size, encoding, data FROM blob"):
            yield codec.decode_blob(hash.hex(), size, encoding, data).decode(errors="replace")
        for id, type_, body in db.execute(
            "SELECT d.id, d.type, v.body FROM version v JOIN document d ON d.number = v.document"
        ):
            yield codec.body_text(codec.id_text(id), type_, body)


class Killed(BaseException):
    """The process ends here."""


def forget_some(home: Path, first: list[int], then: list[int], killed_after: int) -> None:
    """Forget some, be killed on the way, forget others, and then the rest of the first."""
    config = Config(home=home)
    left = [killed_after]

    def advance(_sessions: Sequence[str]) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1

    for numbers, tell in ((first, advance), (then, print), (first, print)):
        with closing(open_sqlite(config.sqlite_file)) as store:
            there = [f"s{n}" for n in numbers if store.head(f"session:s{n}")]
            if there:
                with suppress(Killed):
                    erase(config, store, erasure_of(plan_forgetting(store, there)), tell)


def kept_alive(plans: list[Plan], kept: set[int]) -> set[int]:
    """The sessions that stay, and those that they are forks of."""
    found = set(kept)
    for number in sorted(kept, reverse=True):
        parent = plans[number].parent
        while parent is not None:
            found.add(parent)
            parent = plans[parent].parent
    return found


CHAIN = [Plan([Act("secret", "")], None), Plan([Act("again", "")], 0), Plan([], 1)]
"""A session, its fork, and a fork of that."""


@settings(max_examples=examples(20))
@given(world=worlds())
@example(world=(CHAIN, [1], [0], 1))
@example(world=(CHAIN, [0, 2], [], 1))
@example(world=(CHAIN, [0], [2, 1], 1))
def test_others_keep_all_and_nothing_else_stays(world: World) -> None:
    plans, first, then, killed_after = world
    doomed = {*first, *then}
    kept = set(range(len(plans))) - doomed
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        file = Config(home=home).sqlite_file
        play(home, plans)
        before = prompts(home, kept)
        with closing(open_sqlite(file)) as store:
            blobs, named = set(store.digests("", 1_000_000)), referred(store)
        forget_some(home, first, then, killed_after)
        assert prompts(home, kept) == before
        with closing(open_sqlite(file)) as store:
            left, needed = set(store.digests("", 1_000_000)), referred(store)
            assert not [n for n in doomed if store.head(f"session:s{n}")]
            assert all(store.head(f"forgotten:s{n}") for n in doomed)
        assert needed & blobs <= left
        assert left & named <= needed
        everything = "\n".join(texts_in(file))
        said = {n for n in range(len(plans)) if secret(n) in everything}
        assert said == kept_alive(plans, kept)


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Config, Store, list[Forgetting]]:
    """A session, and what forgetting it takes."""
    play(tmp_path, [Plan([Act("bash", TEXTS[1])], None), Plan([Act("bash", TEXTS[2])], None)])
    config = Config(home=tmp_path)
    store = open_sqlite(config.sqlite_file)
    return config, store, plan_forgetting(store, ["s0"])


@pytest.mark.parametrize("how", ["goes on", "is forked", "is used", "is unrelated"])
def test_what_is_taken_up_meanwhile_stays(
    planned: tuple[Config, Store, list[Forgetting]], how: str
) -> None:
    config, store, plans = planned
    host = Host(config.home, session="s1" if how in ("is used", "is unrelated") else "s0")
    if how == "is forked":
        host = host.fork("s9")
    ask(host, "Meanwhile.")
    if how == "is used":
        bash(host, "late", TEXTS[1])
    host.close()
    if how == "is unrelated":
        erase(config, store, erasure_of(plans))
        assert store.head("session:s0") is None
    else:
        with pytest.raises(Conflict, match="meanwhile, so nothing was deleted"):
            erase(config, store, erasure_of(plans))
        assert store.head("session:s0") is not None
        assert len(store.blobs(plans[0].blobs)) == len(plans[0].blobs)
    store.close()


def test_what_comes_under_an_older_transaction_is_seen(
    planned: tuple[Config, Store, list[Forgetting]],
) -> None:
    config, store, plans = planned
    first = store.records(None, 1)[0].origin
    store.commit(Batch(puts=[note("imported")]), origin=first)
    with pytest.raises(Conflict, match="meanwhile"):
        erase(config, store, erasure_of(plans))
    erase(config, store, erasure_of(plan_forgetting(store, ["s0"])))
    store.close()


def test_a_text_erased_in_the_middle_of_a_commit_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "foredeck.db"
    blobs: dict[str, bytes] = {}
    address = store_message(user("erased"), blobs)
    with closing(open_sqlite(file)) as store, closing(open_sqlite(file)) as other:
        store.commit(Batch(puts=[note("a")], blobs=blobs))

        @contextmanager
        def erased_before(db: sqlite3.Connection) -> Iterator[None]:
            other.erase([], [address])
            with immediate(db):
                yield

        monkeypatch.setattr(rows, "immediate", erased_before)
        store.commit(Batch(puts=[note("b")], blobs=blobs))
        assert store.blob(address) == blobs[address]
