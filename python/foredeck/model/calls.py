"""Call records: the stored form `CallDocument`, the view `CallRecord`, and the reasoning lost.

The view validates nothing, since opening a session loads thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from foredeck.model.call_values import (
    Ack,
    BranchCost,
    CachePrediction,
    CalledModel,
    CallStats,
    Decision,
    ModelSpending,
    OpRow,
    read_stored,
)
from foredeck.model.figures import counted, short_count
from foredeck.model.messages import MessageKey
from foredeck.model.records import RecordDocument, VersionRef

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

M = TypeVar("M", bound="SupportsRichComparison")


class Delta(NamedTuple, Generic[M]):
    added: Sequence[M] = ()
    removed: Sequence[M] = ()

    @classmethod
    def between(cls, before: AbstractSet[M], now: AbstractSet[M]) -> Delta[M]:
        """The difference of two sets, sorted."""
        return cls(tuple(sorted(now - before)), tuple(sorted(before - now)))

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[M]]) -> Delta[M]:
        """Reads `+` and `-`."""
        return cls(stored.get("+", ()), stored.get("-", ()))

    def to_record(self, name: str = "") -> dict[str, list[M]]:
        """The inverse of `from_record`, with `name` before the signs."""
        sides: Iterable[tuple[str, Sequence[M]]] = (("+", self.added), ("-", self.removed))
        return {name + sign: list(members) for sign, members in sides if members}


_NONE: Delta[Any] = Delta()


class SetChanges(NamedTuple):
    """Changes of a branch's sets: objects by handle, messages by index."""

    pool: Delta[int] = _NONE
    active: Delta[int] = _NONE
    pinned: Delta[int] = _NONE
    released: Delta[int] = _NONE
    """Messages no longer kept, in the prompt or not."""

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[int]]) -> SetChanges:
        if not stored:
            return NO_CHANGES
        return cls(*[_delta(stored, plus, minus) for plus, minus in _SIGNED])

    def to_record(self) -> dict[str, list[int]]:
        deltas = (self.pool, self.active, self.pinned, self.released)
        pairs = zip(_SETS, deltas, strict=True)
        return {key: value for name, d in pairs for key, value in d.to_record(name).items()}


_SETS = ("pool", "active", "pinned", "released")
_SIGNED = [(name + "+", name + "-") for name in _SETS]
NO_CHANGES = SetChanges()


def _delta(stored: Mapping[str, Sequence[int]], plus: str, minus: str) -> Delta[int]:
    # Most sets do not change at a call: thousands of records are read at once.
    if plus in stored or minus in stored:
        return Delta(stored.get(plus, ()), stored.get(minus, ()))
    return _NONE


BlockSpot = tuple[int, int]


class LostSum(NamedTuple):
    """How much reasoning the model lacks."""

    blocks: int = 0
    """Left out by foredeck."""
    tokens: int = 0
    """Of these blocks."""
    dropped: int = 0
    """Reported by the provider as dropped."""
    dropped_tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.blocks or self.dropped)

    @property
    def text(self) -> str:
        """`12 blocks of reasoning, about 8.4k tokens: 10 left out by foredeck, 2 dropped by the
        provider`; empty for none."""
        if not self:
            return ""
        blocks = counted(self.blocks + self.dropped, "block")
        sides = ((self.blocks, "left out by foredeck"), (self.dropped, "dropped by the provider"))
        who = ", ".join(f"{count:,} {word}" for count, word in sides if count)
        tokens = short_count(self.tokens + self.dropped_tokens)
        return f"{blocks} of reasoning, about {tokens} tokens: {who}"

    def plus(self, other: LostSum) -> LostSum:
        return LostSum(*(one + more for one, more in zip(self, other, strict=True)))


class LostReasoning(NamedTuple):
    """Sealed reasoning newly lost with a call; each block counts once."""

    ours: Sequence[BlockSpot] = ()
    """Left out by foredeck."""
    provider: Sequence[BlockSpot] = ()
    """Dropped by the provider, as reported since."""
    tokens: int = 0
    provider_tokens: int = 0

    @property
    def spots(self) -> set[BlockSpot]:
        return {*self.ours, *self.provider}

    @property
    def sum(self) -> LostSum:
        counts = len(self.ours), self.tokens, len(self.provider), self.provider_tokens
        return LostSum(*counts)

    @classmethod
    def from_record(cls, stored: Mapping[str, Any]) -> LostReasoning:
        ours, provider = (
            tuple(map(tuple, stored.get(name) or ())) for name in ("ours", "provider")
        )
        return cls(ours, provider, *(stored.get("tokens") or (0, 0)))

    def to_record(self) -> dict[str, Any]:
        """As stored; empty for nothing."""
        spots = {"ours": self.ours, "provider": self.provider}
        record = {name: [list(spot) for spot in each] for name, each in spots.items() if each}
        return record and {**record, "tokens": [self.tokens, self.provider_tokens]}


NOTHING_LOST = LostReasoning()


class CallDocument(RecordDocument):
    """Everything about a model call that must not be computed again.

    `shared`: messages of `parent` that remain; `keys`: those after them.
    """

    type: str = "call"
    session: str
    ordinal: int
    """From 1, in call order over all branches."""
    parent: str | None
    shared: int
    keys: list[list[Any]]
    tip: str
    """Rolling hash over all keys; equal tips mean equal lists."""
    ops: list[list[Any]] = Field(default_factory=list)
    """Operations of messages rendered at this call: `OpRow`."""
    changed_from: int = 0
    """Says and omissions from this index on replace the parent's."""
    says: list[list[Any]] = Field(default_factory=list)
    omitted: list[int] = Field(default_factory=list)
    system: VersionRef | None = None
    model: dict[str, Any] = Field(default_factory=dict)
    """`CalledModel`."""
    time_ms: int
    layout: str
    policy: str
    decision: dict[str, Any] = Field(default_factory=dict)
    """`Decision`."""
    sets: dict[str, list[int]] = Field(default_factory=dict)
    """Changes since the parent: `SetChanges`."""
    state: dict[str, Any] = Field(default_factory=dict)
    """State for a restart: the policy's own, the branch's `cost`, the `head`'s token limit,
    `reasoning` (`free` if bytes before sealed reasoning may change), `spent`, and `lost`
    reasoning."""
    foldable: dict[str, list[list[int]]] = Field(default_factory=dict)
    """Candidates for a rebase gained (`+`) and lost (`-`): pairs of message index and piece."""
    stats: dict[str, Any] = Field(default_factory=dict)
    """`CallStats`."""
    cache: dict[str, Any] | None = None
    """`CachePrediction`."""
    acks: list[list[Any]] = Field(default_factory=list)
    """`Ack`."""
    lost: dict[str, Any] = Field(default_factory=dict)
    """`LostReasoning`."""


T = TypeVar("T")


class _Stored(Generic[T]):
    """A field of a call record; `read` makes its value."""

    def __init__(self, name: str, read: Callable[[Any], T], default: Any = None) -> None:
        self._name = name
        self._read = read
        self._default = default

    def __get__(self, record: CallRecord, _: object = None) -> T:
        if self._default is None:
            return self._read(record.fields[self._name])
        return self._read(record.fields.get(self._name) or self._default)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A view of a stored call record; each access builds the value anew."""

    fields: Mapping[str, Any]

    id = _Stored("id", str)
    session = _Stored("session", str)
    """The session of the call."""
    ordinal = _Stored("ordinal", int)
    shared = _Stored("shared", int)
    """How many of the parent's messages remain."""
    keys = _Stored("keys", lambda keys: [MessageKey(*key) for key in keys])
    """The messages after the shared ones."""
    tip = _Stored("tip", str)
    """Rolling hash over all keys."""
    ops = _Stored("ops", lambda rows: [*map(OpRow.from_row, rows)], ())
    """Messages rendered at this call."""
    changed_from = _Stored("changed_from", int, 0)
    says = _Stored[dict[int, list[Any]]]("says", dict, ())
    """Packed says by the index of the host message that follows."""
    model = _Stored("model", partial(read_stored, CalledModel), {})
    time_ms = _Stored("time_ms", int)
    layout = _Stored("layout", str)
    """Name of the layout."""
    policy = _Stored("policy", str)
    """Name of the policy."""
    decision = _Stored("decision", partial(read_stored, Decision), {})
    sets = _Stored("sets", SetChanges.from_record, {})
    """Set changes since the parent."""
    foldable = _Stored[Delta[list[int]]]("foldable", Delta.from_record, {})
    """Changes of the candidates for a rebase: message index and piece."""
    stats = _Stored("stats", CallStats.from_record, {})
    cache = _Stored("cache", CachePrediction.from_record, {})
    """Expected cache behaviour."""
    acks = _Stored("acks", lambda rows: [Ack(*row) for row in rows], ())
    """What the host reported of earlier calls."""
    lost = _Stored("lost", LostReasoning.from_record, {})
    """Reasoning lost with this call."""
    _state = _Stored[Mapping[str, Any]]("state", dict, {})

    @property
    def parent(self) -> str | None:
        return self.fields.get("parent")

    @property
    def addresses(self) -> Iterator[str]:
        return (address for _, address in self.fields["keys"])

    @property
    def length(self) -> int:
        """Length of the host's list."""
        return self.shared + len(self.fields["keys"])

    @property
    def stored_rows(self) -> dict[int, Sequence[Any]]:
        """Stored rows by message; `OpRow.from_row` reads one."""
        return {row[0]: row for row in self.fields.get("ops") or ()}

    @property
    def first_rendered(self) -> int | None:
        """The first message rendered at this call."""
        return min([row[0] for row in self.fields.get("ops") or ()], default=None)

    @property
    def omitted(self) -> Sequence[int]:
        return self.fields.get("omitted") or ()

    @property
    def system(self) -> VersionRef | None:
        """The system prompt's version."""
        ref = self.fields.get("system")
        return VersionRef.model_validate(ref) if ref else None

    @property
    def is_host(self) -> bool:
        """Whether the call went out without foredeck."""
        return (self.fields.get("decision") or {}).get("kind") == "host"

    @property
    def policy_state(self) -> Mapping[str, Any]:
        """The policy's state for a restart."""
        return self._state.get("policy") or {}

    @property
    def cost(self) -> BranchCost:
        """The branch's cost up to this call."""
        return read_stored(BranchCost, self._state.get("cost") or {})

    @property
    def spent(self) -> tuple[ModelSpending, ...]:
        """The session's cost up to this call, by model."""
        return tuple(ModelSpending(*row) for row in self._state.get("spent") or ())

    @property
    def lost_so_far(self) -> LostSum:
        """Reasoning lost by the session up to this call."""
        return LostSum(*(self._state.get("lost") or ()))

    @property
    def head_tokens(self) -> int:
        """Token limit of the head; 0 without one."""
        return int(self._state.get("head") or 0)

    @property
    def free_seals(self) -> bool:
        """Whether bytes before sealed reasoning of its turn might change."""
        return self._state.get("reasoning") == "free"


def in_order(fields: Iterable[Mapping[str, Any]]) -> list[CallRecord]:
    return sorted(map(CallRecord, fields), key=lambda record: record.ordinal)
