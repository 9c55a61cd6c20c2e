"""The chat of a session: its calls, the branch that is at hand, and what was compacted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from foredeck.context.messages.items import Item, tips_of
from foredeck.context.plan.codec import unpack_says
from foredeck.context.plan.ops import PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.provider_cache import CacheEntries
from foredeck.context.state.call_log import BranchState, CallLog, Rewritten, load_record
from foredeck.context.state.objects import SessionInfo
from foredeck.context.state.sets import Sets
from foredeck.model.call_values import BranchCost, Delta, OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.canonical import hash_text
from foredeck.model.documents import Fields
from foredeck.model.lost_reasoning import BlockSpot
from foredeck.model.messages import marked
from foredeck.model.records import call_id
from foredeck.store.protocol import Store


@dataclass(slots=True)
class Branch:
    """The messages of one branch as they go out, its sets, which contents are still kept in view,
    and what its next call builds on.

    All of it follows from the call records: a session changes its branch, or takes it up after a
    restart, by `chat.branch = Branch.restore(...)`.
    """

    plan: Plan = field(default_factory=Plan)
    sets: Sets = field(default_factory=Sets)
    call: str | None = None
    """Id of the newest call record; None before the first call."""
    matched: int = 0
    """How many messages of that call's list the host still has."""
    policy_state: Mapping[str, Any] = field(default_factory=dict)
    ledger: BranchCost = field(default_factory=BranchCost)
    """What the branch has cost so far."""
    rebase_in: int | None = None
    """In how many calls at the earliest a rebase pays, as far as the newest call could tell."""
    depth: int = 0
    """How many calls the branch has."""
    cache_entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of the branch."""
    applied: set[str] = field(default_factory=set)
    """Ids of context tool calls whose effect is in the sets already."""
    ahead: bool = False
    """Whether the host has sent its messages ahead, and no call has been made since."""
    lost: set[BlockSpot] = field(default_factory=set)
    """Blocks of reasoning that the model lacks."""
    rewritten: Rewritten = field(default_factory=Rewritten)
    shown: frozenset[tuple[int, str]] | None = None
    """Of a provisional branch: what its newest call showed, as handles with hashes of texts."""
    kept: dict[int, int] = field(default_factory=dict, init=False)
    """Messages whose content is kept in view, with the object's handle."""
    candidates: dict[PieceRef, int] = field(default_factory=dict, init=False)
    """What the next rebase may change, and at which call of the branch that was first so."""
    _recorded_candidates: set[PieceRef] = field(default_factory=set, init=False)
    """The candidates as the call records have them."""
    _recorded_released: set[int] = field(default_factory=set, init=False)
    """Messages of which the call records say already that their content is no longer kept."""
    _touched: set[int] = field(default_factory=set, init=False)
    """Messages that were kept or released since the last call record."""
    _marks: tuple[int, int] = field(default=(0, 0), init=False)
    """How much was written into the plan and attributed by then."""

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
        blob = _blobs_of([*packed, state.says], store)
        branch = cls(
            _restored_plan(state, rows, items, tips, blob),
            state.sets,
            call,
            len(items),
            state.policy_state,
            state.cost,
            depth=state.depth,
            cache_entries=state.cache_entries,
            applied=set(applied),
            lost=set(state.lost),
            rewritten=state.rewritten,
        )
        branch.candidates = dict(state.candidates)
        branch._recorded_candidates = set(state.candidates)
        branch._recorded_released = set(state.released)
        # `pop_released` counts on this: records name only what is not kept.
        for index, op in enumerate(branch.plan.ops):
            if op.carries and op.subject is not None and index not in state.released:
                branch.kept[index] = op.subject
        branch._marks = len(branch.plan.written), len(branch.plan.attributed)
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
        self.cache_entries.apply(record)
        self.lost |= record.lost.spots
        self.call, self.matched = record.id, len(self.plan)
        self.depth += 1
        if record.decision.is_rebase:
            self.rewritten = Rewritten.by(record, self.depth)
        self.ahead = False

    def calls_to_wait(self, gap: int) -> int:
        """How many calls there still are until `gap` of them lie between two rebases."""
        rebase = self.rewritten.depth
        return max(0, rebase + gap - (self.depth + 1)) if rebase else 0

    def keep(self, index: int, ordinal: int) -> None:
        """Offer a message's content to the policy from now on."""
        self.kept[index] = ordinal
        self._touched.add(index)

    def keep_base(self, base: int) -> None:
        """A later message says that its content is that of `base`: so that is kept."""
        subject = self.plan.ops[base].subject
        if subject is not None and base not in self.kept:
            self.keep(base, subject)

    def release(self, index: int, subject: int | None = None) -> None:
        """Release one message's content; with the last such message its object becomes inactive.

        `subject`: the object, for a message of which the plan does not name it yet.
        """
        # Nothing is rendered: the content leaves the prompt once its message is rendered again.
        if subject is None:
            subject = self.plan.ops[index].subject
        if self.kept.pop(index, None) is not None:
            self._touched.add(index)
        if subject is not None and subject not in self.kept.values():
            self.sets.expire(subject)

    def release_object(self, ordinal: int) -> None:
        """Release an object's content in all messages that carry it: it becomes inactive."""
        for index in [index for index, subject in self.kept.items() if subject == ordinal]:
            del self.kept[index]
            self._touched.add(index)
        self.sets.expire(ordinal)

    def pop_released(self) -> Delta[int]:
        """Changes since the last call of which messages' content is not kept."""
        # Restoring a branch takes each message that carries an object's content for kept unless a
        # record says otherwise, so every one that is not is named once, for whatever reason.
        plan, (written, attributed) = self.plan, self._marks
        touched = self._touched.union(plan.written[written:], plan.attributed[attributed:])
        self._touched, self._marks = set(), (len(plan.written), len(plan.attributed))
        carrying = {index for index in touched if plan.ops[index].carries}
        before = self._recorded_released
        self._recorded_released = (before | carrying) - (carrying & self.kept.keys())
        return Delta.between(before, self._recorded_released)

    def set_candidates(self, refs: AbstractSet[PieceRef]) -> None:
        """At the call that is being decided these are the candidates, and no others."""
        self.candidates = {ref: self.candidates.get(ref, self.depth + 1) for ref in refs}

    def pop_candidates(self) -> Delta[PieceRef]:
        """Changes of the candidates since the last call."""
        before, self._recorded_candidates = self._recorded_candidates, set(self.candidates)
        return Delta.between(before, self._recorded_candidates)

    def without_rendering(self) -> Branch:
        """The branch before any of its messages was rendered, for another layout to do so."""
        # What is active stays so: the decisions of context tools are not carried out once more.
        results = {item.call_id for item in self.plan.items if item.kind == "result"}
        return replace(
            self,
            plan=Plan(seals=self.plan.seals),
            matched=0,
            applied=self.applied | results,
        )


Compactions = dict[str, Fields]
"""What was compacted, by id, oldest first; without its turns."""


@dataclass(slots=True)
class Chat:
    """What a session's calls have held, on all branches.

    What outlives a call keeps the chat, and not its branch: another takes its place when a list of
    messages is aligned, a refused call is taken back, or the layout changes.
    """

    info: SessionInfo
    store: Store
    log: CallLog
    compactions: Compactions = field(default_factory=dict)
    turns: int = 0
    """How many turns are stored, those of all branches together."""
    private: bool = False
    """Whether nothing that is said in it is kept or found outside it."""
    branch: Branch = field(default_factory=Branch)
    """The branch at hand."""

    @property
    def branch_record(self) -> CallRecord | None:
        """The newest call record of the branch; None before its first call."""
        return self.log.record(self.branch.call)

    @property
    def newest_record(self) -> CallRecord | None:
        """The newest call record of the session; before a fork's first, the one it goes on from."""
        return self.log.last or self.branch_record

    def chain(self, id: str | None) -> list[CallRecord]:
        """The records from the first call to this one, those of parent sessions included
        (`CallLog.chain`)."""
        return self.log.chain(id, partial(load_record, self.store))

    def replay(self, id: str | None) -> BranchState:
        """The state after a call; an empty one for None."""
        return self.log.replay(id, partial(load_record, self.store))

    def take_up_newest(self) -> None:
        """Before a first request: go on from the newest call, until that request brings the
        messages of the branch that the host is on."""
        if self.branch.call is not None or self.branch.shown is not None:
            return
        # A call that never went out says nothing of what the model has seen.
        ids = (call_id(self.info.id, ordinal) for ordinal in range(self.log.newest, 0, -1))
        newest = next((id for id in ids if id not in self.log.unsent), None)
        self.branch = Branch.provisional(self.replay(newest))


def by_summary(compactions: Compactions, text: str) -> str | None:
    """Id of the compaction whose summary this is; None for a summary of another's."""
    digest = hash_text(text)
    ids = [id for id, fields in compactions.items() if fields.get("text_hash") == digest]
    return ids[-1] if ids else None


def host_compaction(chat: Chat) -> str | None:
    """Id of the compaction whose summary is first in the host's list; None for none of ours."""
    return summarised_by(chat.compactions, chat.branch.plan.items)


def summarised_by(compactions: Compactions, items: Sequence[Item]) -> str | None:
    """Id of the compaction whose summary begins this list; None for none of ours."""
    first = items[0].blocks[0] if items and items[0].kind == "context" and items[0].blocks else {}
    return by_summary(compactions, str(first.get("text") or ""))


def turn_of(chat: Chat, item: Item) -> int:
    """The number of the user turn that this item of the list belongs to, along the branch."""
    before = chat.compactions.get(host_compaction(chat) or "")
    offset = 0 if before is None else int(before["last_turn"])
    return offset + item.turn


def _restored_plan(
    state: BranchState,
    rows: Mapping[int, OpRow],
    items: Sequence[Item],
    tips: Sequence[str],
    blob: Callable[[str], bytes],
) -> Plan:
    # First what is said: what covers messages counts as the last of them when these are appended.
    plan = Plan(says={index: unpack_says(says, blob) for index, says in state.says.items()})
    for index, (item, tip) in enumerate(zip(items, tips, strict=True)):
        row = rows.get(index)
        op = None if row is None and index not in state.omitted else state.op(index, row, blob)
        plan.append(item, op, tip)
    plan.find_references()
    return plan


def _blobs_of(packed: Any, store: Store) -> Callable[[str], bytes]:
    """Gives the blobs that packed values name."""
    # In one go: there are thousands of them in a long session.
    found = store.blobs(marked(packed))
    # One that is missing is asked for by itself, for the error that names it.
    return lambda digest: found[digest] if digest in found else store.blob(digest)
