"""One store copied into another, whatever is in it, and however often it is interrupted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from foredeck.errors import Conflict
from foredeck.model.documents import Document
from foredeck.model.identity import sha256_hex
from foredeck.store.copying import NotEmpty, compare, copy
from foredeck.store.protocol import Batch, Copyable, Origin, Token, digests_of, records_of
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.database.adapter import Database, open_xtdb
from foredeck_xtdb.node import NodeFolder

from .documents import AWKWARD, batch, file, note
from .every_type import write_every_type
from .model import FOREIGN, batches
from .pulled import Pulled
from .sessions import dump, exported, write_sample
from .xtdb_node import options_of

Make = Callable[[], Store | Database]


@pytest.fixture(params=["sqlite", "xtdb"])
def make_target(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Opens one store that is empty at first."""
    if request.param == "sqlite":
        return lambda: open_sqlite(tmp_path / "target.db")
    return partial(open_xtdb, **options_of(request.getfixturevalue("memory_node")))


@contextmanager
def readable(store: Copyable) -> Iterator[Store]:
    """It, or what is pulled back from it."""
    if isinstance(store, Database):
        with closing(Pulled(store)) as pulled:
            yield pulled.pull()
    else:
        assert isinstance(store, Store)
        yield store


def filled(path: Path) -> Store:
    """A store with everything that is hard to copy."""
    store = open_sqlite(path)
    write_sample(store)
    origin = Origin(Token("feedbeef-5"), 1_600_000_000_000)
    store.commit(batch(note("late", "imported"), note("joined")), origin=origin)
    store.commit(batch(note("late", "local")))
    store.commit(
        batch(note("late", "before")), origin=Origin(Token("feedbeef-4"), 1_500_000_000_000)
    )
    store.commit(batch(note("joins later"), note("late", "imported")), origin=origin)
    store.commit(Batch())
    store.commit(batch(file("/gone", "text " * 400)))
    store.commit(batch(file("/gone", None, state="deleted")))
    blobs = [b"nobody names it", bytes(range(256)) * 3_000, b""]
    store.commit(Batch(blobs={sha256_hex(data): data for data in blobs}))
    store.commit(batch(*(note(f"{n} {text}", text) for n, text in enumerate(AWKWARD))))
    return store


def test_everything_is_copied(make_target: Make, tmp_path: Path) -> None:
    with closing(filled(tmp_path / "source.db")) as source, closing(make_target()) as target:
        count = len(list(records_of(source)))
        assert copy(source, target) == count
        found = compare(source, target, blobs=digests_of(source))
        assert found.equal, found.differs
        assert found.copy.transactions == count
        assert target.latest() == source.latest()
        with readable(target) as copied:
            assert dump(copied) == dump(source)
            assert exported(copied) == exported(source)
            for record in records_of(source):
                for id in ("late", "joins later", file("/gone").id):
                    at = record.origin.token
                    assert copied.get(id, Document, at) == source.get(id, Document, at)


class Interrupted(Exception):
    """The process was killed here."""


def test_an_interrupted_copy_continues(make_target: Make, tmp_path: Path) -> None:
    with closing(filled(tmp_path / "source.db")) as source:
        count, done, rounds = len(list(records_of(source))), 0, 0
        while True:
            left = 3

            def step() -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Interrupted

            with closing(make_target()) as target:
                before = len(list(records_of(target)))
                assert before >= done
                done, rounds = before, rounds + 1
                # Steps over what is there already count, too.
                left += before
                try:
                    copy(source, target, step)
                    break
                except Interrupted:
                    continue
        assert 3 < rounds <= count
        with closing(make_target()) as target:
            assert copy(source, target) == 0
            found = compare(source, target, blobs=digests_of(source))
            assert found.equal, found.differs


def test_a_copy_is_brought_up_to_date(make_target: Make, tmp_path: Path) -> None:
    with closing(filled(tmp_path / "source.db")) as source, closing(make_target()) as target:
        copy(source, target)
        token = source.commit(batch(note("new", "text " * 1_000)))
        (old,) = source.transactions([Token("feedbeef-5")])
        source.commit(batch(note("one more")), origin=old)
        assert copy(source, target) == 1
        assert target.latest() == token
        assert [head.token for head in target.history("one more")] == [old.token]
        found = compare(source, target, blobs=digests_of(source))
        assert found.equal, found.differs


@pytest.mark.parametrize("copied", [False, True])
def test_a_target_with_other_contents_is_refused(
    make_target: Make, tmp_path: Path, copied: bool
) -> None:
    with closing(filled(tmp_path / "source.db")) as source, closing(make_target()) as target:
        if copied:
            copy(source, target)
        before = len(list(records_of(target)))
        token = target.commit(batch(note("mine")))
        with pytest.raises(NotEmpty, match=str(token)):
            copy(source, target)
        assert len(list(records_of(target))) == before + 1


def test_what_was_erased_and_stored_again_is_copied(make_target: Make, tmp_path: Path) -> None:
    """The transactions that brought it at first do not count it any more, whatever its type is."""
    origins = [Origin(Token(f"feedbeef-{n}"), 1_000 * n) for n in range(1, 5)]
    with closing(make_target()) as source, closing(open_sqlite(tmp_path / "copy.db")) as target:
        with closing(open_sqlite(tmp_path / "every.db")) as store:
            write_every_type(store)
            copy(store, source)
        before = {record.origin: source.documents(record) for record in records_of(source)}
        for n, origin in enumerate(origins):
            source.commit(batch(file("/again", f"v{n}"), note(f"stays {n}")), origin=origin)
        ids = {document.id for documents in before.values() for document in documents}
        source.erase([*ids, file("/again").id], [])
        assert source.changes_since(None)[0].id == "stays 0"
        for documents in before.values():
            source.commit(batch(*documents))
        # What a bundle of before brings back comes under the transactions of then, not all of them.
        for n in (2, 0, 1):
            source.commit(batch(file("/again", f"v{n}")), origin=origins[n])
        kept = [dict(record.changes) for record in records_of(source) if record.origin in origins]
        assert [file("/again").id in changes for changes in kept] == [True, True, True, False]
        copy(source, target)
        found = compare(source, target, blobs=digests_of(source))
        assert found.equal, found.differs
        assert [(change.token, change.id) for change in source.changes_since(None)] == [
            (record.origin.token, id) for record in records_of(source) for id, _ in record.changes
        ]


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    with (
        closing(filled(tmp_path / "source.db")) as source,
        closing(open_sqlite(tmp_path / "target.db")) as target,
    ):
        for number, record in enumerate(records_of(source)):
            puts = source.documents(record)
            other = [note("late", "forged") if d.id == "late" and number > 12 else d for d in puts]
            target.commit(Batch(other), origin=record.origin)
        found = compare(source, target, blobs=digests_of(source))
        assert not found.equal
        assert found.original.versions == found.copy.versions
        assert found.original.blobs > found.copy.blobs
        assert found.differs is not None
        assert "blob" in found.differs


STEPS = st.lists(st.tuples(batches(), st.none() | st.sampled_from(FOREIGN)), max_size=8)


def _commit_all(store: Copyable, steps: list[tuple[Batch, Origin | None]]) -> None:
    for step, origin in steps:
        try:
            store.commit(step, origin=origin)
        except Conflict:
            continue


def _check_copy(source: Store | Database, target: Store | Database, steps: Any) -> None:
    """Copied in two parts, of which the second may add to transactions of the first."""
    _commit_all(source, steps[: len(steps) // 2])
    copy(source, target)
    _commit_all(source, steps[len(steps) // 2 :])
    copy(source, target)
    found = compare(source, target, blobs=digests_of(source))
    assert found.equal, found.differs
    assert target.latest() == source.latest()
    with readable(source) as original, readable(target) as copied:
        assert dump(copied) == dump(original)


@given(STEPS)
@settings(max_examples=examples(60))
def test_any_store_is_copied(steps: Any) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_sqlite(Path(folder) / "source.db")) as source,
        closing(open_sqlite(Path(folder) / "target.db")) as target,
    ):
        _check_copy(source, target, steps)


@pytest.mark.parametrize("to_xtdb", [True, False])
def test_any_store_is_copied_between_the_two(memory_node: NodeFolder, to_xtdb: bool) -> None:
    @given(STEPS)
    @settings(max_examples=examples(12), deadline=None)
    def check(steps: Any) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(open_sqlite(Path(folder) / "one.db")) as sqlite,
            closing(open_xtdb(**options_of(memory_node))) as xtdb,
        ):
            _check_copy(sqlite if to_xtdb else xtdb, xtdb if to_xtdb else sqlite, steps)

    check()
