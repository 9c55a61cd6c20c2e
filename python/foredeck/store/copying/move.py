"""Copying one store into another: every transaction under its own token and time.

The target is at every moment a beginning of the source: it holds the source's first transactions,
in their order, and nothing else. That distinguishes a copy half done from a store of another
history, so an interrupted copy continues without any note of its progress that could be lost; and
a finished one can be brought up to date as long as nothing else has written to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from foredeck.errors import Conflict, Corrupt, StoreError
from foredeck.store.copying.compare import Advance
from foredeck.store.protocol import Batch, Record, Store, digests_of, records_of

_BLOBS = 100
"""Blobs that are read and written at once."""
_BYTES = 16 * 1024 * 1024
"""What they may hold together, so that a request stays well below a server's limit."""


class NotEmpty(StoreError):
    """The target holds something that is not a beginning of the source."""

    exit_code = 1


def count_of(store: Store) -> int:
    """How many transactions a store holds."""
    return sum(1 for _ in records_of(store))


def copied_before(source: Store, target: Store) -> list[Record]:
    """The transactions that the target holds. Raises `NotEmpty` where they are not the source's
    first ones."""
    there = list(records_of(target))
    first = list(islice(records_of(source), len(there)))
    for number, record in enumerate(there):
        if number >= len(first) or not _continues(record, first[number]):
            raise NotEmpty(
                "the target is not empty, and holds something other than part of the source: "
                f"its transaction {number + 1:,} ({record.origin.token}) is another"
            )
    return there


def _continues(copied: Record, original: Record) -> bool:
    """Whether one is the other, or what it was before more was imported under its token."""
    return copied.origin == original.origin and set(copied.changes) <= set(original.changes)


def copy(source: Store, target: Store, advance: Advance = lambda: None) -> int:
    """Bring everything that is in `source` to `target`; how many transactions were new there.

    `advance` is called for each transaction, and each group of blobs. Raises `NotEmpty` before
    anything is written, `Corrupt` where the source's bytes and hashes disagree.
    """
    before = copied_before(source, target)
    new, last = 0, None
    for number, record in enumerate(records_of(source)):
        if number >= len(before) or set(before[number].changes) != set(record.changes):
            _copy_record(source, target, record)
            new += number >= len(before)
        last = record
        advance()
    if last is not None:
        _copy_blobs(source, target, last, advance)
    return new


def _copy_record(source: Store, target: Store, record: Record) -> None:
    documents = source.documents(record)
    if len(documents) != len(record.changes):
        raise Corrupt(
            f"transaction {record.origin.token} names {len(record.changes)} versions, and "
            f"{len(documents)} are in the source"
        )
    try:
        target.commit(Batch(puts=documents), origin=record.origin)
    except Conflict as error:
        raise NotEmpty(f"another process writes to the target: {error}") from error


def _copy_blobs(source: Store, target: Store, under: Record, advance: Advance) -> None:
    """The blobs that no version's content has brought. They need no transaction of their own, so
    they come with one that is there."""
    there = set(digests_of(target))
    missing = (digest for digest in digests_of(source) if digest not in there)
    while chunk := list(islice(missing, _BLOBS)):
        for blobs in _parts(source.blobs(chunk)):
            target.commit(Batch(blobs=blobs), origin=under.origin)
        advance()


def _parts(blobs: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    part: dict[str, bytes] = {}
    size = 0
    for digest, data in blobs.items():
        if part and size + len(data) > _BYTES:
            yield part
            part, size = {}, 0
        part[digest] = data
        size += len(data)
    if part:
        yield part
