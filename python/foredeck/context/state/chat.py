"""A session's calls, current branch, and compactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from foredeck.context.messages.items import Item, tips_of
from foredeck.context.plan.codec import unpack_says
from foredeck.context.plan.ops import PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.provider_cache import CacheEntries
from foredeck.context.state.call_log import BranchState, CallLog, Rewritten, load_record
from foredeck.context.state.index import Sets
from foredeck.context.state.objects import SessionInfo
from foredeck.model.call_values import BranchCost, OpRow
from foredeck.model.calls import BlockSpot, CallRecord, Delta
from foredeck.model.documents import Fields
from foredeck.model.identity import hash_text
from foredeck.model.messages import marked
from foredeck.model.records import call_id
from foredeck.store.store import Store


@dataclass(slots=True)
class Branch:
    """One branch as it goes out, rebuilt from the call records by `Branch.restore`."""

    plan: Plan = field(default_factory=Plan)
    sets: Sets = field(default_factory=Sets)
    call: str | None = None
    matched: int = 0
    """Messages of that call's list that the host still has."""
    policy_state: Mapping[str, Any] = field(default_factory=dict)
    ledger: BranchCost = field(default_factory=BranchCost)
    rebase_in: int | None = None
    depth: int = 0
    """Number of calls."""
    cache_entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold."""
    applied: set[str] = field(default_factory=set)
    ahead: bool = False
    """The host has sent messages ahead of a call."""
    lost: set[BlockSpot] = field(default_factory=set)
    """Reasoning blocks that the model lacks."""
    rewritten: Rewritten = field(default_factory=Rewritten)
    shown: frozenset[tuple[int, str]] | None = None
    """Provisional branch: what its newest call showed, as handles with text hashes."""
    kept: dict[int, int] = field(default_factory=dict, init=False)
    """Messages whose content is kept, with the handle."""
    candidates: dict[PieceRef, int] = field(default_factory=dict, init=False)
    """With the depth at which each became a candidate."""
    _recorded_candidates: set[PieceRef] = field(default_factory=set, init=False)
    _recorded_released: set[int] = field(default_factory=set, init=False)
    _touched: set[int] = field(default_factory=set, init=False)
    _marks: tuple[int, int] = field(default=(0, 0), init=False)
    _lost_in_prompt: set[BlockSpot] = field(default_factory=set, init=False)
    """Lost blocks that may still go out."""
    _losses_read: int = field(default=0, init=False)
    """How much of `plan.written` that set has followed."""

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
        """`items`: the messages that remain; `tips`: their rolling hashes, if at hand."""
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
        branch._lost_in_prompt = set(state.lost)
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
        """The sets after a call, until a request brings the messages."""
        texts = frozenset(
            (row.subject, row.text_hash)
            for row in state.rows.values()
            if row.shows and row.subject and row.text_hash
        )
        return cls(sets=state.sets, shown=texts)

    def go_on(self, record: CallRecord) -> None:
        """Moves on to a call record just committed."""
        self.cache_entries.apply(record)
        self.lost |= record.lost.spots
        self._lost_in_prompt |= record.lost.spots
        self.call, self.matched = record.id, len(self.plan)
        self.depth += 1
        if record.decision.is_rebase:
            self.rewritten = Rewritten.by(record, self.depth)
        self.ahead = False

    def lost_in_prompt(self) -> set[BlockSpot]:
        """Lost reasoning whose blocks still go out."""
        # In a long session nearly all that is lost is left out: only what has changed is read.
        ops, written = self.plan.ops, self.plan.written
        changed = set(written[self._losses_read :])
        self._losses_read = len(written)
        spots = self._lost_in_prompt.union(spot for spot in self.lost if spot[0] in changed)
        self._lost_in_prompt = {
            spot for spot in spots if spot[0] < len(ops) and not ops[spot[0]].leaves_out(spot[1])
        }
        return self._lost_in_prompt

    def calls_to_wait(self, gap: int) -> int:
        """Calls left until `gap` of them lie between two rebases."""
        rebase = self.rewritten.depth
        return max(0, rebase + gap - (self.depth + 1)) if rebase else 0

    def keep(self, index: int, ordinal: int) -> None:
        """Offers the message's content to the policy."""
        self.kept[index] = ordinal
        self._touched.add(index)

    def keep_base(self, base: int) -> None:
        subject = self.plan.ops[base].subject
        if subject is not None and base not in self.kept:
            self.keep(base, subject)

    def release(self, index: int, subject: int | None = None) -> None:
        """Releases one message's content; with its last message an object becomes inactive."""
        # Nothing is rendered: the content leaves the prompt once its message is rendered again.
        if subject is None:
            subject = self.plan.ops[index].subject
        if self.kept.pop(index, None) is not None:
            self._touched.add(index)
        if subject is not None and subject not in self.kept.values():
            self.sets.expire(subject)

    def release_object(self, ordinal: int) -> None:
        """Releases an object's content in every message, which makes it inactive."""
        for index in [index for index, subject in self.kept.items() if subject == ordinal]:
            del self.kept[index]
            self._touched.add(index)
        self.sets.expire(ordinal)

    def pop_released(self) -> Delta[int]:
        """Released messages, as changes since the last call record."""
        # Restoring a branch takes each message that carries an object's content for kept unless a
        # record says otherwise, so every one that is not is named once, for whatever reason.
        plan, (start, attributed) = self.plan, self._marks
        touched = self._touched.union(plan.written[start:], plan.attributed[attributed:])
        self._touched, self._marks = set(), (len(plan.written), len(plan.attributed))
        carrying = {index for index in touched if plan.ops[index].carries}
        before = self._recorded_released
        self._recorded_released = (before | carrying) - (carrying & self.kept.keys())
        return Delta.between(before, self._recorded_released)

    def pop_candidates(self) -> Delta[PieceRef]:
        """Candidates, as changes since the last call record."""
        before, self._recorded_candidates = self._recorded_candidates, set(self.candidates)
        return Delta.between(before, self._recorded_candidates)

    def without_rendering(self) -> Branch:
        # What is active stays so: the decisions of context tools are not carried out once more.
        results = {item.call_id for item in self.plan.items if item.kind == "result"}
        # What was lost goes out anew. The record shares no message, so a replay forgets the same.
        return replace(
            self,
            plan=Plan(seals=self.plan.seals),
            matched=0,
            applied=self.applied | results,
            lost=set(),
            rewritten=self.rewritten.cut(0),
        )


Compactions = dict[str, Fields]
"""By id, oldest first, without turns."""


@dataclass(slots=True)
class Chat:
    """What a session's calls held, on all branches.

    Hold on to the chat: its branch is replaced on alignment, refusal and change of layout.
    """

    info: SessionInfo
    store: Store
    log: CallLog
    compactions: Compactions = field(default_factory=dict)
    turns: int = 0
    """Stored ones, on all branches."""
    private: bool = False
    """Its content stays out of all that others read."""
    branch: Branch = field(default_factory=Branch)

    @property
    def branch_record(self) -> CallRecord | None:
        """The branch's newest call record; None before its first call."""
        return self.log.record(self.branch.call)

    @property
    def newest_record(self) -> CallRecord | None:
        """The session's newest call record; before a fork's first call, the one it starts from."""
        return self.log.last or self.branch_record

    def chain(self, id: str | None) -> list[CallRecord]:
        """The records from the root to this call, across parent sessions."""
        return self.log.chain(id, partial(load_record, self.store))

    def replay(self, id: str | None) -> BranchState:
        """The state after a call; empty for None."""
        return self.log.replay(id, partial(load_record, self.store))

    def take_up_newest(self) -> None:
        """Resumes provisionally from the newest call that went out."""
        if self.branch.call is not None or self.branch.shown is not None:
            return
        # A call that never went out says nothing of what the model has seen.
        ids = (call_id(self.info.id, ordinal) for ordinal in range(self.log.newest, 0, -1))
        newest = next((id for id in ids if id not in self.log.unsent), None)
        self.branch = Branch.provisional(self.replay(newest))


def by_summary(compactions: Compactions, text: str) -> str | None:
    """Id of foredeck's compaction with this summary."""
    digest = hash_text(text)
    ids = [id for id, fields in compactions.items() if fields.get("text_hash") == digest]
    return ids[-1] if ids else None


def host_compaction(chat: Chat) -> str | None:
    """Id of foredeck's compaction that begins the host's list."""
    return summarised_by(chat.compactions, chat.branch.plan.items)


def summarised_by(compactions: Compactions, items: Sequence[Item]) -> str | None:
    """Id of foredeck's compaction that begins `items`."""
    first = items[0].blocks[0] if items and items[0].kind == "context" and items[0].blocks else {}
    return by_summary(compactions, str(first.get("text") or ""))


def turn_of(chat: Chat, item: Item) -> int:
    """Number of the user turn, along the branch."""
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
    # In one go: there are thousands of them in a long session.
    blobs = store.blobs(marked(packed))
    # One that is missing is asked for by itself, for the error that names it.
    return lambda digest: blobs[digest] if digest in blobs else store.blob(digest)
