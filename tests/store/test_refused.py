"""Export files that must not be read: damaged, forged, or over the limits."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from foredeck.errors import ImportRefused
from foredeck.model.calls import CallDocument
from foredeck.model.kinds import kind_of
from foredeck.model.records import TurnDocument
from foredeck.store.portable.check import ImportLimits
from foredeck.store.portable.export import encode_line
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Token
from foredeck.store.store import Store, open_sqlite
from foredeck.store.versions import SCHEMA

from .documents import batch, file, note
from .factory import MakeStore
from .sessions import SampleSession, dump, exported, lines_of, write_sample

Line = dict[str, Any]
OTHER_HASH = hashlib.sha256(b"other").hexdigest()


@cache
def _sample() -> list[bytes]:
    """A good file. Which store it is from makes no difference, and SQLite writes it fastest."""
    with TemporaryDirectory() as folder, closing(open_sqlite(Path(folder) / "s.db")) as store:
        write_sample(store)
        return lines_of(exported(store))


def sample_lines() -> list[Line]:
    """A good file, as objects."""
    return [json.loads(line) for line in _sample()]


def as_file(lines: list[Line]) -> list[bytes]:
    """Lines as bytes, as they stand."""
    return [encode_line(line).encode() for line in lines]


def forged(lines: list[Line]) -> list[bytes]:
    """Lines as bytes with the counts and the hash of somebody who knows the format."""
    body = as_file(lines[:-1])
    counts = {
        f"{kind}s": sum(kind in line for line in lines[:-1])
        for kind in ("transaction", "document", "blob")
    }
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    return [*body, *as_file([{"end": {**counts, "sha256": digest}}])]


def resealed(fields: dict[str, Any], blobs: dict[str, bytes], **changes: Any) -> dict[str, Any]:
    """A document changed by somebody who knows the hashes, too."""
    content = fields.get("content", blobs.get(fields["text_hash"] or ""))
    if isinstance(content, bytes):
        content = content.decode(errors="surrogatepass")
    body = {**fields, "content": content, **changes}
    sealed = kind_of(fields["type"]).model_validate(body).seal().model_dump()
    if "content" not in fields and "content" not in changes:
        del sealed["content"]
    return sealed


def blobs_of(lines: list[Line]) -> dict[str, bytes]:
    """The blobs of a file that are text; others stay empty."""
    return {line["blob"]: line.get("text", "").encode() for line in lines if "blob" in line}


def of_type(lines: list[Line], type: str) -> Line:
    """The last document line of a type."""
    return next(line for line in reversed(lines) if line.get("document", {}).get("type") == type)


class Refusal:
    """Tries files against a store, which must stay as it is."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._before = dump(store)

    def __call__(self, lines: list[bytes], match: str | None = None, **options: Any) -> None:
        for as_new in (False, True):
            with pytest.raises(ImportRefused, match=match):
                import_file(self.store, lines, as_new=as_new, **options)
            assert dump(self.store) == self._before
            assert self.store.latest() is None


@pytest.fixture
def refused(make_store: MakeStore) -> Refusal:
    """An empty store that must stay empty."""
    return Refusal(make_store())


@pytest.fixture
def lines() -> list[Line]:
    """A good file."""
    return sample_lines()


def test_the_forger_of_these_tests_is_good(make_store: MakeStore, lines: list[Line]) -> None:
    blobs = blobs_of(lines)
    fields = of_type(lines, "turn")["document"]
    assert resealed(fields, blobs) == fields
    assert import_file(make_store(), forged(lines)).documents > 10


def test_every_changed_line(refused: Refusal, lines: list[Line]) -> None:
    for number, changed in _changes(lines):
        text = as_file([*lines[:number], changed, *lines[number + 1 :]])
        with pytest.raises(ImportRefused):
            import_file(refused.store, text)
    assert refused.store.latest() is None


def test_every_changed_field_of_a_document(refused: Refusal, lines: list[Line]) -> None:
    for number, line in enumerate(lines):
        for name, value in line.get("document", {}).items():
            if name == "source_hash":
                continue  # Tells of the bytes outside; only the file's own hash covers it.
            fields = {**line["document"], name: _other(value)}
            text = forged([*lines[:number], {"document": fields}, *lines[number + 1 :]])
            with pytest.raises(ImportRefused):
                import_file(refused.store, text)
    assert refused.store.latest() is None


def test_cut_off_anywhere(refused: Refusal, lines: list[Line]) -> None:
    text = as_file(lines)
    for length in range(0, len(text), 3):
        refused(text[:length])
    refused([*text[:-1], text[-1][:20]])


def test_lines_doubled_dropped_and_swapped(refused: Refusal, lines: list[Line]) -> None:
    text = as_file(lines)
    for number in range(0, len(text), 3):
        refused([*text[: number + 1], text[number], *text[number + 1 :]])
        refused([*text[:number], *text[number + 1 :]])
    refused([*text[:4], text[5], text[4], *text[6:]])


def test_lines_doubled_by_a_forger(refused: Refusal, lines: list[Line]) -> None:
    for kind in ("transaction", "document", "blob"):
        number = next(n for n, line in enumerate(lines) if kind in line)
        refused(forged([*lines[: number + 1], *lines[number:]]), "twice")


def test_wrong_counts(refused: Refusal, lines: list[Line]) -> None:
    *body, last = lines
    end = last["end"]
    for name in ("transactions", "documents", "blobs", "sha256"):
        wrong = OTHER_HASH if name == "sha256" else end[name] + 1
        refused(as_file([*body, {"end": {**end, name: wrong}}]), "changed")
    refused(as_file([*body, {"end": {**end, "more": 1}}]), "unknown")


def test_lines_after_the_end(refused: Refusal, lines: list[Line]) -> None:
    refused([*as_file(lines), b"\n"])
    refused([*as_file(lines), *as_file(lines)], "after the last line")


def test_what_is_no_export(refused: Refusal) -> None:
    refused([])
    for junk in (
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{",
        b'{"format": NaN}',
        b'{"format": "foredeck-session"}',
        b'{"format": "foredeck-session", "schema": 3, "session": "s"}',
        b'{"format": "foredeck-session", "schema": 2, "session": ""}',
        b'{"type":"session","version":3}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ):
        refused([junk + b"\n"])


def test_a_header_brings_a_session_alone(make_store: MakeStore) -> None:
    first, *lines, last = sample_lines()
    first |= {"transaction": {"token": "forged-1", "time_ms": 1}}
    body = as_file([first, *lines])
    end = {**last["end"], "sha256": hashlib.sha256(b"".join(body)).hexdigest()}
    store = make_store()
    import_file(store, [*body, *as_file([{"end": end}])])
    assert store.transactions([Token("forged-1")]) == []


def test_another_schema(refused: Refusal, lines: list[Line]) -> None:
    refused(forged([{**lines[0], "schema": SCHEMA + 1}, *lines[1:]]), "upgrade")
    refused(forged([{**lines[0], "schema": SCHEMA - 1}, *lines[1:]]), "before 0.1.0")


def test_limits(refused: Refusal, lines: list[Line]) -> None:
    for limits, match in (
        (ImportLimits(lines=10), "10 lines"),
        (ImportLimits(line_bytes=200), "200 bytes"),
        (ImportLimits(file_bytes=3_000), "3000 bytes"),
        (ImportLimits(depth=2), "deeper"),
        (ImportLimits(id_length=8), "8 characters"),
        (ImportLimits(path_length=4), "path"),
    ):
        refused(as_file(lines), match, limits=limits)


def test_a_clock_that_is_ahead(refused: Refusal, lines: list[Line]) -> None:
    def clock() -> int:
        return int(lines[1]["transaction"]["time_ms"]) - 60_000

    refused(
        as_file(lines), "future", limits=replace(ImportLimits(), clock_skew_ms=1_000), clock=clock
    )


def test_bad_transactions(refused: Refusal, lines: list[Line]) -> None:
    transactions: list[Any] = [
        {"token": "", "time_ms": 1},
        {"token": "a b", "time_ms": 1},
        {"token": "x" * 129, "time_ms": 1},
        {"token": 5, "time_ms": 1},
        {"token": "a-1", "time_ms": "1"},
        {"token": "a-1", "time_ms": True},
        {"token": "a-1", "time_ms": -1},
        {"token": "a-1", "time_ms": 10**18},
        {"token": "a-1"},
        [],
    ]
    for fields in transactions:
        refused(forged([lines[0], {"transaction": fields}, *lines[2:]]))


def test_bad_paths(refused: Refusal, make_store: MakeStore) -> None:
    long = "/" + "x" * 5_000
    for path in ("", "relative", "/a/../../etc/shadow", "/a\0b", "C:rel", "..", long):
        store = make_store()
        session = SampleSession(store)
        session.begin()
        session.call("toolu_1", file(path))
        refused(lines_of(exported(store)), "absolute path")


def test_documents_that_do_not_belong(refused: Refusal, lines: list[Line]) -> None:
    foreign_turn = TurnDocument(id="turn:other:1", session="other").seal()
    call = of_type(lines, "call")["document"]
    for stranger in (
        file("/repo/unrelated.py"),
        foreign_turn,
        CallDocument.model_validate({**call, "id": "call:other:4", "session": "other"}).seal(),
    ):
        extra = {"document": stranger.model_dump()}
        refused(forged([*lines[:-1], extra, lines[-1]]), "does not belong")


def test_unknown_types_and_wrong_ids(refused: Refusal, lines: list[Line]) -> None:
    refused(forged([*lines[:-1], {"document": note("n").model_dump()}, lines[-1]]), "note")
    blobs = blobs_of(lines)
    wrong: dict[str, dict[str, Any]] = {
        "member": {"ordinal": 99},
        "call": {"ordinal": 99},
        "file": {"id": "0" * 64},
        "toolcall": {"id": "call:other:7"},
        "session": {"session_id": "other"},
        "turn": {"source": {"type": "filesystem", "filesystemId": "fs", "path": "/a"}},
    }
    for type, changes in wrong.items():
        line = of_type(lines, type)
        number = lines.index(line)
        changed = {"document": resealed(line["document"], blobs, **changes)}
        refused(forged([*lines[:number], changed, *lines[number + 1 :]]))


def test_a_session_without_its_own_document(refused: Refusal, lines: list[Line]) -> None:
    rest = [x for x in lines if x.get("document", {}).get("type") != "session"]
    refused(forged(rest), "missing")


def test_missing_blobs(refused: Refusal, lines: list[Line]) -> None:
    for number, line in enumerate(lines):
        if "blob" in line and "a part of its own" not in line.get("text", ""):
            refused(forged([*lines[:number], *lines[number + 1 :]]), "before it")


def test_blobs_with_other_bytes(refused: Refusal, lines: list[Line]) -> None:
    number = next(n for n, line in enumerate(lines) if "base64" in line)
    digest = lines[number]["blob"]
    for wrong in (
        {"blob": digest, "text": "other"},
        {"blob": digest, "base64": "!"},
        {"blob": digest, "base64": "QUJD"},
        {"blob": digest},
        {"blob": digest, "text": 5},
        {"blob": "short", "text": "x"},
        {"blob": None, "text": "x"},
    ):
        refused(forged([*lines[:number], wrong, *lines[number + 1 :]]))


def test_other_versions_under_known_tokens(make_store: MakeStore) -> None:
    """Each alone is refused; of several, the first id is named."""
    store = make_store()
    write_sample(store)
    before = dump(store)
    lines = [json.loads(line) for line in lines_of(exported(store))]
    changed: dict[int, Line] = {}
    for type in ("file", "toolcall", "turn", "member", "call", "chat"):
        line = of_type(lines, type)
        fields = resealed(line["document"], blobs_of(lines), locked=True, view=["x"])
        changed[lines.index(line)] = {"document": fields}
    for number, line in changed.items():
        with pytest.raises(ImportRefused, match="other fields"):
            import_file(store, forged([*lines[:number], line, *lines[number + 1 :]]))
    first = min(line["document"]["id"] for line in changed.values())
    with pytest.raises(ImportRefused, match=f"^{re.escape(repr(first))} has other fields"):
        import_file(store, forged([changed.get(n, line) for n, line in enumerate(lines)]))
    assert dump(store) == before


@pytest.mark.parametrize("as_new", [False, True])
def test_another_time_for_a_known_token(make_store: MakeStore, as_new: bool) -> None:
    store = make_store()
    write_sample(store)
    before = dump(store)
    lines = [json.loads(line) for line in lines_of(exported(store))]
    lines[1]["transaction"]["time_ms"] -= 1
    with pytest.raises(ImportRefused, match="another time"):
        import_file(store, forged(lines), as_new=as_new)
    assert dump(store) == before


def test_different_newer_versions_are_a_contradiction(make_store: MakeStore) -> None:
    source, target = make_store(), make_store()
    write_sample(source)
    text = exported(source)
    lines = [json.loads(line) for line in lines_of(text)]
    import_file(target, lines_of(text))
    document = target.get(target.query("session")[0].id, kind_of("session"))
    document.nickname = "changed here"
    target.commit(batch(document.seal()))
    before = dump(target)
    changed = resealed(of_type(lines, "session")["document"], {}, nickname="changed there")
    later = {"transaction": {"token": "feedbeef-1", "time_ms": 1_700_000_000_000}}
    with pytest.raises(ImportRefused, match="different newer versions"):
        import_file(target, forged([*lines[:-1], later, {"document": changed}, lines[-1]]))
    assert dump(target) == before


def _changes(lines: list[Line]) -> Iterator[tuple[int, Line]]:
    """Each line with one of its values changed."""
    for number, line in enumerate(lines):
        for name, value in line.items():
            yield number, {**line, name: _other(value)}
            if isinstance(value, dict):
                for inner, found in value.items():
                    yield number, {**line, name: {**value, inner: _other(found)}}


def _other(value: Any) -> Any:
    """A value of the same kind that is not equal."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value[:-1] + ("0" if value[-1:] != "0" else "1")
        case list():
            return [*value, "more"]
        case dict():
            return {**value, "more": 1}
    return "something"
