"""Copies and compares whole stores.

Transactions keep token, time and order, so an interrupted copy continues.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foredeck.errors import Conflict, Corrupt, StoreError
from foredeck.model.identity import canonical_json
from foredeck.store.protocol import (
    Batch,
    Copyable,
    Record,
    digests_of,
    in_groups,
    portions,
    records_of,
)
from foredeck.store.versions import without_nulls

_BLOBS = 100
"""Blobs read and written at once."""
_BYTES = 16 * 1024 * 1024
"""Bytes per write, well below a server's limit."""

Advance = Callable[[], object]


@dataclass(slots=True)
class Totals:
    """Counts of a store, and the hash over it."""

    transactions: int = 0
    objects: int = 0
    versions: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class StoreComparison:
    original: Totals
    copy: Totals
    differs: str | None
    """The first difference, if any."""

    @property
    def equal(self) -> bool:
        """Whether the copy's content equals the original's."""
        return self.original == self.copy


def _read(
    store: Copyable, records: Sequence[Record], digests: Sequence[str], advance: Advance
) -> tuple[Totals, dict[str, bytes]]:
    """Counts these transactions and blobs, with a hash of each by name."""
    totals = Totals(transactions=len(records))
    things: dict[str, bytes] = {}

    def take(name: str, value: Any) -> None:
        things[name] = hashlib.sha256(canonical_json(value)).digest()
        advance()

    for record in records:
        origin, changes = record.origin, sorted(map(list, record.changes))
        take(f"transaction {origin.token}", [origin.token, origin.time_ms, changes])
    tokens = {record.origin.token for record in records}
    for id in sorted({id for record in records for id, _ in record.changes}):
        versions = [
            [head.token, head.time_ms, head.type, without_nulls(head.fields)]
            for head in store.history(id)
            if head.token in tokens
        ]
        take(f"object {id}", [id, versions])
        totals.objects += 1
        totals.versions += len(versions)
    for chunk in portions(digests, _BLOBS):
        # Reading their bytes lets the store check them against their hash.
        for digest, data in store.blobs(chunk).items():
            things[f"blob {digest}"] = bytes.fromhex(digest)
            totals.blobs += 1
            totals.blob_bytes += len(data)
        advance()
    totals.sha256 = hashlib.sha256(b"".join(things[name] for name in sorted(things))).hexdigest()
    return totals, things


def compare(
    original: Copyable, copy: Copyable, advance: Advance = lambda: None, blobs: Iterable[str] = ()
) -> StoreComparison:
    """Compares everything in `copy` with the original, byte by byte; later additions do not matter.

    Raises `Corrupt` if bytes and hashes disagree.
    """
    copied = list(records_of(copy))
    digests = sorted({*digests_of(copy), *blobs})
    there = list(islice(records_of(original), len(copied)))
    of_original, ones = _read(original, there, digests, advance)
    of_copy, others = _read(copy, copied, digests, advance)
    differing = [name for name in ones | others if ones.get(name) != others.get(name)]
    return StoreComparison(of_original, of_copy, min(differing, default=None))


def verified(original: Copyable, backup: Copyable, file: Path, advance: Advance) -> str:
    """The SHA-256 over a backup. Raises `Corrupt` if the original differs."""
    comparison = compare(original, backup, advance)
    if not comparison.equal:
        raise Corrupt(f"{file} is not a copy of what is here: {comparison.differs} differs")
    return comparison.copy.sha256


class NotEmpty(StoreError):
    """The target is not a beginning of the source."""

    exit_code = 1


def count_of(store: Copyable) -> int:
    """Number of transactions."""
    return sum(1 for _ in records_of(store))


def copied_before(source: Copyable, target: Copyable) -> list[Record]:
    """The target's transactions. Raises `NotEmpty` unless they are the source's first."""
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
    """Whether they are equal, or more was imported under the token since."""
    return copied.origin == original.origin and set(copied.changes) <= set(original.changes)


def copy(source: Copyable, target: Copyable, advance: Advance = lambda: None) -> int:
    """Copies everything to `target`; returns the number of new transactions.

    Raises `NotEmpty` before writing, `Corrupt` if the source is damaged.
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


def _copy_record(source: Copyable, target: Copyable, record: Record) -> None:
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


def _copy_blobs(source: Copyable, target: Copyable, under: Record, advance: Advance) -> None:
    """Blobs that no version brings; they join an existing transaction."""
    there = set(digests_of(target))
    missing = (digest for digest in digests_of(source) if digest not in there)
    while chunk := list(islice(missing, _BLOBS)):
        blobs = source.blobs(chunk)
        for group in in_groups(((digest, len(blobs[digest])) for digest in blobs), _BYTES):
            part = {digest: blobs[digest] for digest in group}
            target.commit(Batch(blobs=part), origin=under.origin)
        advance()
