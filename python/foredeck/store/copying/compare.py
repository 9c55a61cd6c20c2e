"""Whether a store is a copy of another one: counts, and one hash over everything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from foredeck.model.canonical import canonical_json
from foredeck.model.portions import portions
from foredeck.store.fields import stated
from foredeck.store.protocol import Record, Store, Token, digests_of, records_of

_BLOBS = 200

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


@dataclass(slots=True)
class _StoreReader:
    """Reads one store, counts, and remembers a hash of each thing by name."""

    store: Store
    advance: Advance
    totals: Totals = field(default_factory=Totals)
    things: dict[str, bytes] = field(default_factory=dict)

    def read(self, records: Sequence[Record], digests: Sequence[str]) -> Totals:
        for record in records:
            changes = sorted(map(list, record.changes))
            origin = record.origin
            self._take(f"transaction {origin.token}", [origin.token, origin.time_ms, changes])
            self.totals.transactions += 1
        tokens = {record.origin.token for record in records}
        for id in sorted({id for record in records for id, _ in record.changes}):
            self._take_object(id, tokens)
        for chunk in portions(digests, _BLOBS):
            self._take_blobs(chunk)
        digest = hashlib.sha256()
        for name in sorted(self.things):
            digest.update(self.things[name])
        self.totals.sha256 = digest.hexdigest()
        return self.totals

    def _take_object(self, id: str, tokens: set[Token]) -> None:
        versions = [
            [head.token, head.time_ms, head.type, stated(head.fields)]
            for head in self.store.history(id)
            if head.token in tokens
        ]
        self._take(f"object {id}", [id, versions])
        self.totals.objects += 1
        self.totals.versions += len(versions)

    def _take_blobs(self, digests: list[str]) -> None:
        """Reading their bytes lets the store check them against their hash."""
        for digest, data in self.store.blobs(digests).items():
            self.things[f"blob {digest}"] = bytes.fromhex(digest)
            self.totals.blobs += 1
            self.totals.blob_bytes += len(data)
        self.advance()

    def _take(self, name: str, value: Any) -> None:
        self.things[name] = hashlib.sha256(canonical_json(value)).digest()
        self.advance()


def compare(
    original: Store,
    copy: Store,
    advance: Advance = lambda: None,
    blobs: Iterable[str] = (),
) -> StoreComparison:
    """Read everything that is in `copy` from both stores, every version and every byte, and the
    blobs of the original with these digests.

    What the original got after the copy was made does not matter. Raises `Corrupt` where bytes
    and hashes disagree.
    """
    copied = list(records_of(copy))
    digests = sorted({*digests_of(copy), *blobs})
    there = list(islice(records_of(original), len(copied)))
    one, two = _StoreReader(original, advance), _StoreReader(copy, advance)
    totals = one.read(there, digests), two.read(copied, digests)
    differing = [name for name in one.things | two.things if _differ(one, two, name)]
    return StoreComparison(*totals, min(differing, default=None))


def _differ(one: _StoreReader, two: _StoreReader, name: str) -> bool:
    return one.things.get(name) != two.things.get(name)
