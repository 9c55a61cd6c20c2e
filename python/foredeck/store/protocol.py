"""What goes into a store and comes out of it.

A store keeps documents, each a line of versions, and blobs by SHA-256. A commit is one atomic
transaction; nothing is rewritten.

Tokens name transactions, unique across stores. Versions are ordered by the time of their
transactions (`order_of`), so that an imported version takes its place between others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NewType, Protocol, TypeAlias, TypeVar

from foredeck.errors import Conflict, ForedeckError
from foredeck.model.documents import Document, view_of

Token = NewType("Token", str)
D = TypeVar("D", bound=Document)
T = TypeVar("T")
Kind: TypeAlias = type[D]
"""For `Head`, in which `type` is a field."""
Scalar = str | int | bool
ATTEMPTS = 20
"""How often a compare-and-put is tried while others are faster."""

Advance = Callable[[], None]
"""Called again and again during long work, so that progress can be shown."""

Notify = Callable[[str, str], None]
"""Shows the user something: a level (`info`, `warning`, `error`) and a text."""


def silent(_level: str, _text: str) -> None:
    """A `Notify` where there is no user to show it to."""


@dataclass(frozen=True, slots=True)
class Head:
    """A version without its content.

    There is content to load where `fields["text_hash"]` is not None.
    """

    id: str
    type: str
    token: Token
    time_ms: int
    fields: Mapping[str, Any]

    def view(self, kind: Kind[D]) -> D:
        """The fields as attributes, without validation (`view_of`)."""
        return view_of(kind, self.fields)


@dataclass(frozen=True, slots=True)
class Change:
    """One new version, as `changes_since` lists it."""

    token: Token
    time_ms: int
    id: str
    type: str


@dataclass(frozen=True, slots=True)
class Origin:
    """A transaction by name and time; for `commit`, the one that it repeats."""

    token: Token
    time_ms: int


def order_of(transaction: Origin) -> tuple[int, int, str]:
    """Sort key of transactions: time, the number at the end of the token, the token."""
    _, _, number = transaction.token.rpartition("-")
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    return transaction.time_ms, place, transaction.token


@dataclass(frozen=True, slots=True)
class Record:
    """One transaction, and the documents that it brought."""

    origin: Origin
    changes: tuple[tuple[str, str], ...]
    """`(id, type)` of each version, in the transaction's own order."""


@dataclass(slots=True)
class Batch:
    """What one commit writes.

    `blobs`: bytes by SHA-256. `expect`: the token of a document's newest version; None for "must
    not exist".
    """

    puts: list[Document] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    expect: dict[str, Token | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanMark:
    """How far a file was read: its last version, and how many came late."""

    last: int
    late: int


@dataclass(frozen=True, slots=True)
class Lineage:
    """Which file a store works with, and how many versions came late.

    `late` counts versions added to existing transactions, which `changes_since` does not list
    again.
    """

    id: str
    late: int


class Copyable(Protocol):
    """What can be copied and compared: a store, or the database that it delivers to."""

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token: ...

    def records(self, after: Token | None, limit: int) -> Sequence[Record]:
        """Transactions in the order in which they came in. Raises `Missing` for an unknown
        token."""

    def documents(self, record: Record) -> list[Document]:
        """A transaction's versions with their content, in its order."""

    def history(self, id: str) -> list[Head]:
        """All versions, oldest first; empty for an unknown id."""

    def digests(self, after: str, limit: int) -> Sequence[str]:
        """Hashes of the blobs that come after `after`, in ascending order."""

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Several blobs as they were put, without missing and pruned ones."""

    def close(self) -> None:
        """Closes the connection; may be called twice."""


class Remote:
    """The database behind a store. This one is none: the file has everything."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines write to it."""
        return False

    @property
    def trouble(self) -> str:
        """What a user should see at a glance; empty if all is well."""
        return ""

    def before_commit(self, batch: Batch, origin: Origin | None) -> None:
        """Fetches what the commit is decided on."""

    def after_commit(self) -> None:
        """Delivers what was committed."""

    def commit(self, batch: Batch) -> Token:
        """Commits where all machines meet. Raises `Conflict`, `StoreUnavailable`."""
        raise NotImplementedError

    def fetch(self, ids: Sequence[str], at: Token | None = None) -> None:
        """Fetches what is missing of documents. Raises `StoreUnavailable` for one that is only
        there."""

    def fetch_query(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Fetches what a query finds there."""

    def fetch_transactions(self, tokens: Sequence[Token]) -> None:
        """Fetches what is missing of transactions."""

    def fetch_blobs(self, digests: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002
        """Blobs that the file does not have."""
        return {}

    def fetch_documents(self, advance: Advance) -> None:
        """Fetches all documents. Raises `StoreUnavailable`."""

    def fetch_all(self, advance: Advance) -> bool:  # noqa: ARG002
        """Fetches all transactions; returns whether nothing is left there."""
        return True

    def close(self) -> None:
        """Ends the connection."""


PAGE = 500
"""Transactions that are listed at once."""
DIGESTS = 100_000
"""Blobs listed at once: for each page XTDB looks at all of them."""


def records_of(store: Copyable) -> Iterator[Record]:
    """All transactions, in the order in which they came in."""
    token: Token | None = None
    while page := store.records(token, PAGE):
        yield from page
        token = page[-1].origin.token


def digests_of(store: Copyable) -> Iterator[str]:
    """The SHA-256 of all blobs, in ascending order."""
    last = ""
    while page := store.digests(last, DIGESTS):
        yield from page
        last = page[-1]


def retry_on_conflict(attempt: Callable[[], T], busy: ForedeckError) -> T:
    """Calls `attempt` again while it raises `Conflict`, and returns its value. Raises `busy` if
    others were faster each time."""
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except Conflict:
            continue
    raise busy


def in_groups(sizes: Iterable[tuple[T, int]], most: int) -> Iterator[list[T]]:
    """Items in order, in groups of at most `most` in size."""
    group: list[T] = []
    room = most
    for item, size in sizes:
        if group and size > room:
            yield group
            group, room = [], most
        group.append(item)
        room -= size
    if group:
        yield group


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in their order, at most `size` at a time."""
    # `itertools.batched` came with Python 3.12.
    rest = iter(items)
    while portion := list(islice(rest, size)):
        yield portion
