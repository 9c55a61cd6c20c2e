"""Any sequence of changes: after each look the store holds what is on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from work_folder import Work

from examples import examples
from foredeck.store.store import open_sqlite

NAMES = ("a", "b", "d/c")
CONTENTS = (b"", b"one", b"two", b"\0binary", b"x" * 70_000)

name = st.sampled_from(NAMES)
change = st.one_of(
    st.tuples(st.just("write"), name, st.sampled_from(CONTENTS)),
    st.tuples(st.just("replace"), name, st.sampled_from(CONTENTS)),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("rename"), name, name),
)


def apply(folder: Path, change: tuple[str, ...]) -> None:
    kind, target, *rest = change
    path = folder / target
    path.parent.mkdir(exist_ok=True)
    if kind == "write":
        path.write_bytes(rest[0])  # type: ignore[arg-type]
    elif kind == "replace":
        (folder / "draft").write_bytes(rest[0])  # type: ignore[arg-type]
        (folder / "draft").replace(path)
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif path.exists():
        path.replace(folder / rest[0])


def expected(path: Path) -> tuple[str, str | None]:
    if not path.exists():
        return ("deleted", None)
    data = path.read_bytes()
    if len(data) > 64 * 1024:
        return ("huge", None)
    return ("binary", None) if b"\0" in data else ("text", data.decode())


@settings(max_examples=examples(100), deadline=None)
@given(changes=st.lists(st.lists(change, max_size=3), max_size=8))
def test_the_store_follows_the_disk(changes: list[list[tuple[str, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / "work" / "d").mkdir(parents=True)
        store = open_sqlite(root / "store.db")
        work = Work(root / "work", store)
        paths = [Path(work.write(n, f"first {n}")) for n in NAMES]
        ids = [work.read(n).object_id for n in NAMES]
        for go in changes:
            before = [len(store.history(id)) for id in ids]
            for step in go:
                apply(root / "work", step)
            known = [(work.stored(id).state, work.stored(id).content) for id in ids]
            work.reconcile([str(path) for path in paths])
            for path, id, count, was in zip(paths, ids, before, known, strict=True):
                document = work.stored(id)
                assert (document.state, document.content) == expected(path)
                assert len(store.history(id)) - count <= 1
                if was != (document.state, document.content):
                    assert len(store.history(id)) == count + 1
            assert not [s for s in work.disk.reconcile(ids) if s.document]
        store.close()
