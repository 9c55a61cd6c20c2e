"""The one way to take something out of a store for good, and out of what was made from it.

Which documents and texts go is worked out by those who know why (`store/forgetting.py`,
`store/purging.py`, `pruning.py`); they state it as data. Each kind of store erases in its
`ErasableStore`, and each room that keeps what it made from the store is listed in `DERIVED`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.model.kinds import rank_of
from foredeck.store.kind import ErasableStore, store_kind
from foredeck.store.protocol import (
    Advance,
    Batch,
    LocalStore,
    Record,
    ScanMark,
    Store,
    digests_of,
    order_of,
    portions,
    records_of,
)

_CHUNK = 200
"""Blobs that are read at once."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """What goes at once. `sessions`: whose it is; `scanned`: how far the store was read when it was
    worked out that nothing else needs it."""

    sessions: Sequence[str]
    documents: Collection[str]
    blobs: Collection[str]
    scanned: ScanMark


@dataclass(frozen=True, slots=True)
class Erasure:
    """What goes, in this order. `first`: what is committed before that, such as tombstones, so that
    an interrupted erasure is known for what it is."""

    first: Sequence[Batch]
    steps: Sequence[ErasureStep]

    @property
    def sessions(self) -> set[str]:
        """The sessions that lose something."""
        return {session for step in self.steps for session in step.sessions}

    @property
    def documents(self) -> set[str]:
        """Ids of all documents that go."""
        return {id for step in self.steps for id in step.documents}

    @property
    def tombstones(self) -> set[str]:
        """Ids of the documents that tell which sessions are gone."""
        return {put.id for batch in self.first for put in batch.puts if put.type == "forgotten"}


DERIVED = {"layers": "foredeck.derived.follower", "derived": "foredeck.store.session_cache"}
"""What was made from a store and can be made again, by the folder that holds it: a module, whose
function `erasing` is given the state folder, the store and an `Erasure`. What was made of the
erased texts is gone when its block begins, or when it ends, however it ends. The modules are
imported for this: the store knows none of those rooms."""


def records_by_time(store: Store) -> list[Record]:
    """All transactions, the oldest first; in each, what others name by its version comes first."""
    found = [
        Record(record.origin, tuple(sorted(record.changes, key=_rank)))
        for record in records_of(store)
    ]
    return sorted(found, key=lambda record: order_of(record.origin))


def _rank(change: tuple[str, str]) -> tuple[int, str]:
    id, type = change
    return rank_of(type), id


def blobs_of(
    store: Store, digests: Iterable[str], advance: Advance = lambda: None
) -> Iterator[tuple[str, bytes]]:
    """Blobs with their hashes, however many; those that are missing are left out."""
    for chunk in portions(digests, _CHUNK):
        yield from store.blobs(chunk).items()
        advance()


def everything(store: Store, advance: Advance = lambda: None) -> Iterator[tuple[str, Any]]:
    """All that a store holds, each with a name: the fields of each version, the bytes of each blob,
    whether anything names it or not."""
    for record in records_of(store):
        for document in store.documents(record):
            yield f"{document.type} {document.id}", document.model_dump()
        advance()
    for digest, data in blobs_of(store, digests_of(store), advance):
        yield f"text {digest[:12]}", data


def erase(
    config: Config,
    store: LocalStore,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """Erase from the configured store; `advance` is called with the sessions of each step before it
    is done.

    Interrupted, it can be planned and done again. Raises `Conflict` where something that was to go
    has come into use since the plan, and `StoreUnavailable`, also where commits wait for a
    database: what arrived there after the erasure would stay.
    """
    place = store_kind(config.store).erasable(config)
    place.check_settled()
    erase_from(place, config.home, store, erasure, advance)


def erase_from(
    place: ErasableStore,
    home: Path,
    store: LocalStore,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """As `erase`, from the store of any place, without `check_settled`. `store`: the same, opened;
    `home`: the state folder that holds what was made from it."""
    with ExitStack() as stack:
        for module in DERIVED.values():
            stack.enter_context(import_module(module).erasing(home, store, erasure))
        for batch in erasure.first:
            store.commit(batch)
        for step in erasure.steps:
            advance(step.sessions)
            place.erase(step.documents, step.blobs, step.scanned)
