"""What every store can do. Two adapters, one contract suite (tests/store/contract.py).

A store keeps documents, each a line of versions, and blobs, addressed by their SHA-256. A commit
is one atomic transaction. Nothing is rewritten: putting a document adds a version, and the only
way to remove one from view is a version that says so.

Tokens name transactions. They are opaque strings, unique across stores. Versions of a document
are ordered by the time of their transactions (see `order_of`), so that an imported version takes
its place between those that are there; a store's own next transaction is later than all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
"""How often a compare-and-put is tried where others are faster. Each time one of them has made a
change, so all get on; so many in a row mean that it is being changed all the time."""

Advance = Callable[[], None]
"""Called again and again during long work, so that progress can be shown."""

Notify = Callable[[str, str], None]
"""Shows the user something: a level (`info`, `warning`, `error`) and a text."""


def silent(_level: str, _text: str) -> None:
    """A `Notify` where there is no user to show it to."""


@dataclass(frozen=True, slots=True)
class Head:
    """A version without its content: cheap to fetch, enough to list, compare and refer to.

    `fields` holds every field of the document but `content`; there is content to load where
    `fields["text_hash"]` is not None.
    """

    id: str
    type: str
    token: Token
    time_ms: int
    fields: Mapping[str, Any]

    def view(self, kind: Kind[D]) -> D:
        """The fields by the names and types of the class of the head's type, without validation
        (`view_of`)."""
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
    """A transaction by name and time; as an argument of `commit`, the one that it repeats."""

    token: Token
    time_ms: int


def order_of(transaction: Origin) -> tuple[int, int, str]:
    """What transactions are sorted by: time, the number at the end of the token, the token."""
    _, _, number = transaction.token.rpartition("-")
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    return transaction.time_ms, place, transaction.token


@dataclass(frozen=True, slots=True)
class Record:
    """One transaction: its token and time, and the documents that it brought."""

    origin: Origin
    changes: tuple[tuple[str, str], ...]
    """`(id, type)` of each version, in the transaction's own order."""


@dataclass(slots=True)
class Batch:
    """What one commit writes.

    `puts`: sealed documents, at most one per id. `blobs`: bytes by SHA-256, stored once however
    often they are put. `expect`: for a compare-and-put, the token that the document's newest
    version must have, None for "must not exist".
    """

    puts: list[Document] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    expect: dict[str, Token | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanMark:
    """How far a file was read: its last version, and how often any had come under an
    older transaction, as imported ones may."""

    last: int
    late: int


@dataclass(frozen=True, slots=True)
class Lineage:
    """Which file a store works with, and how often versions came in late.

    `id` is the file's own name for itself. `late` counts versions that were added to transactions
    which were there before: `changes_since` does not list those to who has read past them.
    """

    id: str
    late: int


class Store(Protocol):
    """A place for documents and blobs. Not thread-safe: one per thread, many per database."""

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """Write everything in `batch` or nothing; the token names the new transaction.

        Long content is stored once, as a blob under its text hash.
        Raises `Conflict` where `expect` does not hold or an id is there with another type or
        source, `StoreUnavailable` when the database stays busy, `ValueError` for two documents
        with one id, for one that was changed after `seal()`, or a blob under a wrong hash.

        With `origin` the versions keep that token and time. Under a token that is there
        already, the same documents are a no-op and further ids are added; other fields for an
        id, or another time, are a `Conflict`.
        """

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        """The newest version, or the newest not later than `at`, with its content; or None.

        Raises `Missing` for an unknown token, `Corrupt` where bytes and hashes disagree,
        `ValueError` when `kind` is the class of another type.
        """

    def head(self, id: str, at: Token | None = None) -> Head | None:
        """As `get`, without loading content."""

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        """Newest heads of many documents; ids that do not exist are left out."""

    def history(self, id: str) -> list[Head]:
        """All versions, oldest first; empty for an unknown id."""

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """Newest heads of one type whose fields equal `where`, oldest document first.

        Oldest is what came into this store first; documents of one transaction come in some
        fixed order. Equal as JSON: `True` is not 1, and None is also what an absent field has.
        Field names may reach into the source binding: `source.path`, `source.filesystemId`.
        Never loads content.
        """

    def blob(self, digest: str) -> bytes:
        """The bytes with this SHA-256, or what is left of them where a user has had them pruned
        (`store/references.py`). Raises `Missing`; `Corrupt` where they hash otherwise."""

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Many blobs at once, exactly as they were put; those that are missing are left out, and
        so are those that were pruned."""

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """Versions that came in after `token` (None: all), in the order in which they came in.

        Whole transactions only, so that the next call can begin at the last token: as many as fit
        into `limit`, and one that begins within it in full. Ids that an import adds to a known
        token come with that token: a follower starts over after an import.
        """

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """Those of `tokens` that are known here, each once, with their times, oldest first."""

    def latest(self) -> Token | None:
        """The transaction that came in last, which `changes_since` takes; None for none."""

    def records(self, after: Token | None, limit: int) -> Sequence[Record]:
        """Transactions in the order in which they came in, those without versions too.

        Raises `Missing` for an unknown token.
        """

    def documents(self, record: Record) -> list[Document]:
        """The versions that a transaction brought, in its order, with their content."""

    def digests(self, after: str, limit: int) -> Sequence[str]:
        """SHA-256 of the blobs that come after `after`, in ascending order."""

    @property
    def local(self) -> LocalStore | None:
        """This store, where it is one on this machine, as all of engines are; None for a database
        itself, on which only a replay works."""

    @property
    def trouble(self) -> str:
        """What a user should see at a glance, such as a database that is away; else empty."""

    def close(self) -> None:
        """Close the connection to the database. Calling it twice is fine."""


class LocalStore(Store, Protocol):
    """A store in a file of this machine: the whole store, or the local copy of a database, of which
    `records`, `documents` and `digests` give what the copy has."""

    def needed(
        self, digests: Iterable[str], gone: Collection[str], advance: Advance = lambda: None
    ) -> tuple[set[str], ScanMark]:
        """Those of the blobs `digests` that documents other than `gone` need in any version, and
        how far the store was read for it.

        Reads every version, in memory that does not grow with them; `advance` is called again and
        again. Raises `StoreUnavailable` where some are only in XTDB, which is away.
        """

    def fetch_all(self, advance: Advance = lambda: None) -> bool:
        """Bring here what only a database has, so that `changes_since` lists it; whether nothing
        is left there, as far as is known. Waits for the database, if that answers: not for
        what a model call waits for. `advance` is called again and again, and may end it."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines write to the same database."""

    def commit_for_all(self, batch: Batch) -> Token:
        """As `commit`, but `expect` is decided where all machines meet, by the database itself.

        Raises `StoreUnavailable` while that is away. Where it stopped answering in between, it may
        have been written all the same: a later read shows it.
        """

    def lineage(self) -> Lineage:
        """What a follower of changes must find as it left it, or else starts over."""


PAGE = 500
"""Transactions that are listed at once."""
DIGESTS = 100_000
"""Blobs that are listed at once: for each page XTDB looks at all of them."""


def records_of(store: Store) -> Iterator[Record]:
    """All transactions, in the order in which they came in; also those that come meanwhile."""
    token: Token | None = None
    while page := store.records(token, PAGE):
        yield from page
        token = page[-1].origin.token


def digests_of(store: Store) -> Iterator[str]:
    """The SHA-256 of all blobs, in ascending order."""
    last = ""
    while page := store.digests(last, DIGESTS):
        yield from page
        last = page[-1]


def retry_on_conflict(attempt: Callable[[], T], busy: ForedeckError) -> T:
    """What `attempt` returns. It reads what it changes and commits with what it `expect`s; where
    that raises `Conflict`, it is called again and must read anew.

    Raises `busy` where others were faster each time.
    """
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except Conflict:
            continue
    raise busy


def in_groups(sizes: Iterable[tuple[T, int]], most: int) -> Iterator[list[T]]:
    """The items in their order, in groups of which none is larger than `most`, unless a single item
    is. `sizes`: each with its own size."""
    group: list[T] = []
    left = most
    for item, size in sizes:
        if group and size > left:
            yield group
            group, left = [], most
        group.append(item)
        left -= size
    if group:
        yield group


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in their order, at most `size` at a time."""
    # `itertools.batched` came with Python 3.12.
    rest = iter(items)
    while portion := list(islice(rest, size)):
        yield portion
