"""Call records: what is stored of one model call, and how to read it.

`CallDocument` is the stored form, `CallRecord` the view by which everybody reads it. A session that
is opened loads thousands of records and reads few fields of each, so a view validates nothing and
makes its values when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import Field

from foredeck.model.call_values import (
    Ack,
    BranchCost,
    CachePrediction,
    CalledModel,
    CallStats,
    Decision,
    Delta,
    ModelSpending,
    OpRow,
    SetChanges,
)
from foredeck.model.lost_reasoning import LostReasoning, LostSum
from foredeck.model.messages import MessageKey
from foredeck.model.records import RecordDocument, VersionRef


class CallDocument(RecordDocument):
    """What one model call was made of; everything that a restarted engine must not recompute.

    A branch is a chain of these: `parent` is the call record that this one continues, `shared`
    how many of its messages are still there, `keys` the messages after them.
    """

    type: str = "call"
    session: str
    ordinal: int
    """From 1, in the order in which the session's calls were made, over all branches."""
    parent: str | None
    shared: int
    keys: list[list[Any]]
    """`[entry id or None, message hash]` for each message after the shared ones."""
    tip: str
    """Rolling hash over all keys: equal tips mean equal message lists."""
    ops: list[list[Any]] = Field(default_factory=list)
    """What becomes of the messages that were rendered at this call: `OpRow`."""
    changed_from: int = 0
    """Says and omissions at or after this index replace those of the parent."""
    says: list[list[Any]] = Field(default_factory=list)
    """`[index, messages]`: messages of ours that go before the host's message `index`, packed."""
    omitted: list[int] = Field(default_factory=list)
    """Indexes of host messages that are not sent."""
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
    """What a restart must find again: the `policy`'s own state, the branch's `cost`, how many
    tokens the `head` may have, where there is one, and `reasoning`: `free` in a turn in which bytes
    before signed reasoning may change. `spent`: what the session has cost so far; `lost`: how much
    reasoning, as a `LostSum`."""
    foldable: dict[str, list[list[int]]] = Field(default_factory=dict)
    """Changes of what may be folded since the parent: `+` and `-`, as pairs of a message index
    and a piece of it (`context.plan.ops.PieceRef`)."""
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
    """A field of a call record. `read` makes the value of what is stored, or of `default` where
    that is given and nothing is."""

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
    """A call record, read from the fields that a store holds of it.

    Each field builds its value at every access: keep what is needed more than once.
    """

    fields: Mapping[str, Any]

    id = _Stored("id", str)
    """Id of the document."""
    session = _Stored("session", str)
    """Id of the session in which the call was made."""
    ordinal = _Stored("ordinal", int)
    """Number of the call in its session, from 1, over all branches."""
    shared = _Stored("shared", int)
    """How many of the parent's messages are still there."""
    keys = _Stored("keys", lambda keys: [MessageKey(*key) for key in keys])
    """The messages after the shared ones."""
    tip = _Stored("tip", str)
    """Rolling hash over all keys."""
    ops = _Stored("ops", lambda rows: [*map(OpRow.from_row, rows)], ())
    """The messages that were rendered at this call."""
    changed_from = _Stored("changed_from", int, 0)
    """Says and omissions at or after this index replace those of the parent."""
    says = _Stored[dict[int, list[Any]]]("says", dict, ())
    """By index, the messages of ours that go before the host's message, packed."""
    model = _Stored("model", CalledModel.from_record, {})
    """The model that was called."""
    time_ms = _Stored("time_ms", int)
    """When the call was made, by the host's clock."""
    layout = _Stored("layout", str)
    """Name of the layout that the prompt is written in."""
    policy = _Stored("policy", str)
    """Name of the policy in force."""
    decision = _Stored("decision", Decision.from_record, {})
    """What was decided, and why."""
    sets = _Stored("sets", SetChanges.from_record, {})
    """How the sets have changed since the parent."""
    foldable = _Stored[Delta[list[int]]]("foldable", Delta.from_record, {})
    """What may be folded now and could not before, and the reverse: message index and piece."""
    stats = _Stored("stats", CallStats.from_record, {})
    """How large the prompt was, and what the session held."""
    cache = _Stored("cache", CachePrediction.from_record, {})
    """What the provider's cache was expected to do."""
    acks = _Stored("acks", lambda rows: [Ack(*row) for row in rows], ())
    """What the host has reported of earlier calls."""
    lost = _Stored("lost", LostReasoning.from_record, {})
    """Reasoning that the model lacks since this call."""
    _state = _Stored[Mapping[str, Any]]("state", dict, {})

    @property
    def parent(self) -> str | None:
        """Id of the record that this one continues; None at the root of a branch."""
        return self.fields.get("parent")

    @property
    def addresses(self) -> Iterator[str]:
        """The addresses of the messages after the shared ones."""
        return (address for _, address in self.fields["keys"])

    @property
    def length(self) -> int:
        """How many messages the host's list had."""
        return self.shared + len(self.fields["keys"])

    @property
    def stored_rows(self) -> dict[int, Sequence[Any]]:
        """The rows by message, as stored: `OpRow.from_row` reads one."""
        return {row[0]: row for row in self.fields.get("ops") or ()}

    @property
    def first_rendered(self) -> int | None:
        """The index of the first of these messages."""
        return min([row[0] for row in self.fields.get("ops") or ()], default=None)

    @property
    def omitted(self) -> Sequence[int]:
        """Indexes of host messages that are not sent."""
        return self.fields.get("omitted") or ()

    @property
    def system(self) -> VersionRef | None:
        """The version of the system prompt that the call went out with."""
        ref = self.fields.get("system")
        return VersionRef.model_validate(ref) if ref else None

    @property
    def is_host(self) -> bool:
        """Whether the call went out without foredeck."""
        return (self.fields.get("decision") or {}).get("kind") == "host"

    @property
    def policy_state(self) -> Mapping[str, Any]:
        """What the policy wants to find again after a restart."""
        return self._state.get("policy") or {}

    @property
    def cost(self) -> BranchCost:
        """What the branch has cost up to this call, by the default rate of characters per token."""
        return BranchCost.from_record(self._state.get("cost") or {})

    @property
    def spent(self) -> tuple[ModelSpending, ...]:
        """What the session has cost up to this call, over all branches, by model."""
        return tuple(ModelSpending(*row) for row in self._state.get("spent") or ())

    @property
    def lost_so_far(self) -> LostSum:
        """How much reasoning calls of the session have lost up to this one, over all branches."""
        return LostSum(*(self._state.get("lost") or ()))

    @property
    def head_tokens(self) -> int:
        """How many tokens the block before the chat might have; 0 where there is none."""
        return int(self._state.get("head") or 0)

    @property
    def free_seals(self) -> bool:
        """Whether bytes before sealed reasoning of its turn might change."""
        return self._state.get("reasoning") == "free"


def in_order(fields: Iterable[Mapping[str, Any]]) -> list[CallRecord]:
    """The records behind stored fields, in the order of the calls."""
    return sorted(map(CallRecord, fields), key=lambda record: record.ordinal)
