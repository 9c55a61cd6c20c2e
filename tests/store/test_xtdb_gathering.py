"""Fetching what another machine has written: with few requests, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from foredeck.model.identity import sha256_hex
from foredeck.store.protocol import Batch, Origin, Token
from foredeck_xtdb.database import reading as blob_reading
from foredeck_xtdb.database.adapter import Database, open_xtdb
from foredeck_xtdb.node import NodeFolder

from .documents import batch, note
from .xtdb_node import options_of

IDS = [f"n{number}" for number in range(12)]
LONG = "a line that is too long to stand in a document\n" * 200


@pytest.fixture
def xtdb(memory_node: NodeFolder) -> Iterator[Database]:
    """An empty namespace on the shared node."""
    with closing(open_xtdb(**options_of(memory_node))) as store:
        yield store


def count_requests(store: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are asked for from now on."""
    asked: list[str] = []
    send = store.client._send

    def counting(method: str, path: str, **more: Any) -> Any:
        asked.append(path)
        return send(method, path, **more)

    monkeypatch.setattr(store.client, "_send", counting)
    return asked


def test_versions_of_every_kind(xtdb: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest ones, all of one transaction, late ones, and of a document with many versions."""
    first = xtdb.commit(batch(*(note(id, f"{id} {LONG}") for id in IDS)))
    (origin,) = xtdb.transactions([first])
    second = xtdb.commit(batch(*(note(id, f"{id} again") for id in IDS)))
    late = Token("1ade0000-1")
    xtdb.commit(batch(*(note(id, f"{id} late") for id in IDS)), origin=Origin(late, 5))
    steps = [xtdb.commit(batch(note(IDS[0], f"step {step} {LONG}"))) for step in range(3)]
    wanted = {id: {first, second, late} for id in IDS}
    wanted[IDS[0]] |= set(steps)

    asked = count_requests(xtdb, monkeypatch)
    found = xtdb.versions(wanted)

    told = {(o.token, d.id): d.content for o, d in found}
    expected = {(first, id): f"{id} {LONG}" for id in IDS}
    expected |= {(second, id): f"{id} again" for id in IDS}
    expected |= {(late, id): f"{id} late" for id in IDS}
    expected |= {(step, IDS[0]): f"step {n} {LONG}" for n, step in enumerate(steps)}
    assert told == expected
    assert len(found) == len(expected)
    assert {o for o, _ in found if o.token == first} == {origin}
    assert len(asked) < len(IDS)


def test_what_came_in_late_in_its_only_version_is_listed_with_few_requests(
    xtdb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As most of what two machines write at the same time."""
    xtdb.commit(batch(note("first")))
    late = Token("1ade0000-1")
    xtdb.commit(batch(*(note(id) for id in IDS)), origin=Origin(late, 5))
    asked = count_requests(xtdb, monkeypatch)
    assert [change.id for change in xtdb.changes_since(None)] == ["first", *IDS]
    assert [dict(record.changes).keys() for record in xtdb.records(None, 10)] == [
        {"first"},
        set(IDS),
    ]
    assert len(asked) < len(IDS)


def test_versions_that_do_not_exist_are_left_out(xtdb: Database) -> None:
    token = xtdb.commit(batch(note("a")))
    xtdb.commit(batch(note("a", "again")))
    wanted = {"a": {token, Token("feedbeef-9")}, "b": {token}}
    assert [(o.token, d.content) for o, d in xtdb.versions(wanted)] == [(token, "text")]
    assert xtdb.versions({}) == []


def test_what_a_query_has_found_is_not_read_again(
    xtdb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = xtdb.commit(batch(*(note(id, id) for id in IDS)))
    known = xtdb.find("note")
    assert list(known) == IDS
    asked = count_requests(xtdb, monkeypatch)
    found = xtdb.versions({id: {token} for id in IDS}, known)
    assert {d.id: d.content for _, d in found} == {id: id for id in IDS}
    assert asked == []


def test_blobs_come_in_groups_of_bounded_size(
    xtdb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [bytes([n]) * 1_000 for n in range(9)] + [b"\xff\x00" * 3_000]
    blobs = {sha256_hex(item): item for item in data}
    xtdb.commit(Batch(puts=[note("a")], blobs=blobs))
    asked = count_requests(xtdb, monkeypatch)
    absent = sha256_hex(b"absent")
    assert xtdb.blobs([*blobs, absent]) == blobs
    assert asked == ["/query", "/query"]
    asked.clear()
    monkeypatch.setattr(blob_reading, "MOST_AT_ONCE", 3_500)
    assert xtdb.blobs([*blobs, absent]) == blobs
    # Sizes, then three times three small ones, and the one that is larger than an answer may be.
    assert len(asked) == 5
    assert xtdb.blobs([absent]) == {}
