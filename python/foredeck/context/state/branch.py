"""The branch that a session is on: all that changes when the host moves to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.context.cache.cached import CacheEntries
from foredeck.context.cache.economics import Ledger
from foredeck.context.messages.items import Item, tips_of
from foredeck.context.plan.codec import unpack_says
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.retention import Retention
from foredeck.context.state.branch_state import BranchState
from foredeck.context.state.sets import Sets
from foredeck.model.call_values import PartRow
from foredeck.model.calls import CallRecord
from foredeck.model.messages import marked
from foredeck.store.protocol import Store


@dataclass(slots=True)
class Branch:
    """The messages of one branch as they go out, its sets, and what its next call builds on.

    Everything here can be had from the call records, so that a session changes its branch, or
    takes it up after a restart, by `chat.go_to(Branch.restore(...))`.
    """

    plan: Plan = field(default_factory=Plan)
    sets: Sets = field(default_factory=Sets)
    call: str | None = None
    """Id of the newest call record; None before the first call."""
    matched: int = 0
    """How many messages of that call's list the host still has."""
    policy_state: Mapping[str, Any] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    """What the branch has cost so far."""
    rebase_in: int | None = None
    """In how many calls at the earliest a rebase pays, as far as the newest call could tell."""
    depth: int = 0
    """How many calls the branch has."""
    entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of the branch."""
    applied: set[str] = field(default_factory=set)
    """Ids of context tool calls whose effect is in the sets already."""
    ahead: bool = False
    """Whether the host has sent its messages ahead, and no call has been made since."""
    shown: frozenset[tuple[int, str]] | None = None
    """Of a provisional branch: what its newest call showed, as handles with hashes of texts."""
    retention: Retention = field(init=False)
    """Which contents of the plan are kept in view."""

    def __post_init__(self) -> None:
        self.retention = Retention(self.plan)

    @classmethod
    def restore(
        cls,
        state: BranchState,
        items: Sequence[Item],
        call: str | None,
        store: Store,
        applied: Iterable[str] = (),
        *,
        tips: Sequence[str] | None = None,
    ) -> Branch:
        """The branch as the call records have it. `items`: the messages that are still there;
        `tips`: the rolling hashes of this list, where they are known."""
        rows = state.rows
        tips = tips_of(item.key for item in items) if tips is None else tips
        packed = [row.packed for row in rows.values() if row.packed]
        blob = _blobs_of([*packed, state.inserts], store)
        branch = cls(
            _restored_plan(state, rows, items, tips, blob),
            state.sets,
            call,
            len(items),
            state.policy_state,
            Ledger(*state.cost),
            depth=state.depth,
            entries=state.entries,
            applied=set(applied),
        )
        branch.retention.restore(state.expired, state.candidates)
        return branch

    @classmethod
    def provisional(cls, state: BranchState) -> Branch:
        """The sets after a call, and what it showed, until a request brings the messages."""
        shown = frozenset(
            (row.subject, row.text_hash)
            for row in state.rows.values()
            if row.shows and row.subject and row.text_hash
        )
        return cls(sets=state.sets, shown=shown)

    def go_on(self, record: CallRecord) -> None:
        """Go on from the call whose record has just been committed."""
        self.entries.apply(record)
        self.call, self.matched = record.id, len(self.plan)
        self.depth += 1
        self.ahead = False

    def release(self, index: int, subject: int | None = None) -> None:
        """Let go of one message's content; with the last such message its object becomes inactive.

        Nothing is rendered: what was let go leaves the prompt once its message is rendered again.
        `subject`: the object, for a message of which the plan does not name it yet.
        """
        if subject is None:
            subject = self.plan.ops[index].subject
        self.retention.release(index)
        if subject is not None and subject not in self.retention.contents.values():
            self.sets.expire(subject)

    def release_object(self, ordinal: int) -> None:
        """Let go of all messages that carry an object's content: it becomes inactive."""
        live = self.retention.contents
        for index in [index for index, subject in live.items() if subject == ordinal]:
            self.retention.release(index)
        self.sets.expire(ordinal)

    def without_rendering(self) -> Branch:
        """The branch before any of its messages was rendered, for another layout to do so.

        What is active stays so: what context tools have decided is not decided once more.
        """
        results = {item.call_id for item in self.plan.items if item.kind == "result"}
        return replace(
            self,
            plan=Plan(seals=self.plan.seals),
            matched=0,
            applied=self.applied | results,
        )


def _restored_plan(
    state: BranchState,
    rows: Mapping[int, PartRow],
    items: Sequence[Item],
    tips: Sequence[str],
    blob: Callable[[str], bytes],
) -> Plan:
    # First what is said: what covers messages counts as the last of them.
    plan = Plan(says={index: unpack_says(says, blob) for index, says in state.inserts.items()})
    for index, (item, tip) in enumerate(zip(items, tips, strict=True)):
        row = rows.get(index)
        op = None if row is None and index not in state.drops else state.op(index, row, blob)
        plan.append(item, op, tip)
    plan.find_references()
    return plan


def _blobs_of(packed: Any, store: Store) -> Callable[[str], bytes]:
    """Gives the blobs that packed values name, which are asked for in one go."""
    found = store.blobs(marked(packed))
    return lambda digest: found[digest] if digest in found else store.blob(digest)
