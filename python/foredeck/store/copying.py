"""Whole stores: whether one is a copy of another, and copying one into another.

Every transaction is copied under its own token and time, in the order of the source. The target is
at every moment a beginning of the source, and nothing else: so a copy half done continues without a
note of its progress that could be lost, and one that is done can be brought up to date as long as
nothing else has written to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foredeck.errors import Conflict, Corrupt, StoreError
from foredeck.model.canonical import canonical_json
from foredeck.store.protocol import (
    Batch,
    Record,
    Store,
    digests_of,
    in_groups,
    portions,
    records_of,
)
from foredeck.store.versions import without_nulls

_BLOBS = 100
"""Blobs that are read and written at once."""
_BYTES = 16 * 1024 * 1024
"""What they may hold together when they are written, so that a request stays well below a server's
limit."""

Advance = Callable[[], object]
"""Called for each transaction, object and group of blobs that was read."""


@dataclass(slots=True)
class Totals:
    """What was counted in a store, and the hash over it."""

    transactions: int = 0
    objects: int = 0
    versions: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class StoreComparison:
    """A store and its copy, as far as the copy goes."""

    original: Totals
    copy: Totals
    differs: str | None
    """The first thing in which they differ; None where nothing does."""

    @property
    def equal(self) -> bool:
        """Whether everything that is in the copy is the same in the original."""
        return self.original == self.copy


def _read(
    store: Store, records: Sequence[Record], digests: Sequence[str], advance: Advance
) -> tuple[Totals, dict[str, bytes]]:
    """What these transactions and blobs hold, counted, and a hash of each thing by name."""
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
    original: Store, copy: Store, advance: Advance = lambda: None, blobs: Iterable[str] = ()
) -> StoreComparison:
    """Read everything that is in `copy` from both stores, every version and every byte, and the
    blobs of the original with these digests.

    What the original got after the copy was made does not matter. Raises `Corrupt` where bytes
    and hashes disagree.
    """
    copied = list(records_of(copy))
    digests = sorted({*digests_of(copy), *blobs})
    there = list(islice(records_of(original), len(copied)))
    of_original, ones = _read(original, there, digests, advance)
    of_copy, others = _read(copy, copied, digests, advance)
    differing = [name for name in ones | others if ones.get(name) != others.get(name)]
    return StoreComparison(of_original, of_copy, min(differing, default=None))


def verified(original: Store, backup: Store, file: Path, advance: Advance) -> str:
    """The SHA-256 over everything that is in a backup, of which the file is named in errors.

    Raises `Corrupt` where the original has not the same.
    """
    found = compare(original, backup, advance)
    if not found.equal:
        raise Corrupt(f"{file} is not a copy of what is here: {found.differs} differs")
    return found.copy.sha256


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
        blobs = source.blobs(chunk)
        for group in in_groups(((digest, len(blobs[digest])) for digest in blobs), _BYTES):
            part = {digest: blobs[digest] for digest in group}
            target.commit(Batch(blobs=part), origin=under.origin)
        advance()
