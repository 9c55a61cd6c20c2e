"""When content was last used, by the model's messages alone, and what the policy lets go by that.

A use is an edit, a mention of telling identifiers, or a call with the path. A turn's reads are
*prepared*: work on one is a use of the others until the turn ends.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.pieces import Piece, PieceKind, pieces_of
from foredeck.context.policies.policy import ActiveContent, FoldablePiece, History, Policy, Rules
from foredeck.context.rebase import precedes_bound_turn
from foredeck.context.rendering import PromptNames
from foredeck.context.state.chat import Branch
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import Request
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers, inner_identifiers
from foredeck.sources.tool_calls import WRITERS, edits_of, path_argument


@dataclass(slots=True, eq=False)
class LastUse:
    """Last use of a piece of content, in model calls from 1."""

    ref: PieceRef
    last: int
    path: str = ""
    text: str = ""
    prepared: int = 0
    """The call of the turn's last read or edit of another such file; 0 after the turn."""


@dataclass(slots=True)
class Uses:
    """Last uses of a conversation's results and arguments."""

    cwd: str = ""
    rules: Rules = field(default_factory=Rules)
    exempt: frozenset[PieceKind] = frozenset()
    """Pieces that never fold."""
    names: PromptNames = field(default_factory=PromptNames)
    calls: int = 0
    """Number of answers not aborted."""
    turn_began: int = 0
    """`calls` at the newest user message."""
    read: int = 0
    """Number of messages read."""
    edited: dict[str, None] = field(default_factory=dict)
    """Paths of written files, in order of their first edit."""
    foldable: dict[PieceRef, Piece] = field(default_factory=dict)
    """Pieces neither folded nor sealed."""
    by_ref: dict[tuple[int, int], LastUse] = field(default_factory=dict)
    """By `PieceRef`, in message order."""
    _in_order: list[LastUse] = field(default_factory=list)
    """The same, by number."""
    _prepared: list[LastUse] = field(default_factory=list)
    """The newest turn's reads of files not edited since."""
    _has_edited: bool = False
    _plan: Plan | None = None
    _mark: int = 0
    # One more than `max_holders`: an identifier with as many says nothing any more.
    _holders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The first pieces with an identifier, by number."""
    _by_path: dict[str, list[PieceRef]] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)
    """Absolute paths by argument, since sessions repeat paths."""

    def follow(self, plan: Plan) -> None:
        """Reads appended messages; after a change of list all of them."""
        if self._plan is not plan or self.read > len(plan):
            self._begin(plan)
        for index in range(self.read, len(plan)):
            self._read(index, plan.items[index])
        for index in set(plan.written[self._mark :]):
            if index < self.read and plan.items[index].kind in ("assistant", "user"):
                self._note_foldable(index, pieces_of(plan.items[index]))
        self._mark, self.read = len(plan.written), len(plan)

    def _begin(self, plan: Plan) -> None:
        fresh = Uses(self.cwd, self.rules, self.exempt, self.names)
        for name in fresh.__slots__:
            setattr(self, name, getattr(fresh, name))
        self._plan = plan

    def state(
        self, message: int, slot: int = 0, *, cold: bool = True
    ) -> tuple[PieceRef, int, bool, bool]:
        """A piece's place, calls since its last use, whether the newest turn left it unused, and
        whether its file is being edited."""
        use = self.by_ref.get((message, slot))
        if use is None:
            return PieceRef(message, slot), 0, False, False
        # Not with a cold cache: to write all that is prepared anew costs more than it is worth.
        last = use.last if cold or not self.rules.prepared else max(use.last, use.prepared)
        return use.ref, self.calls - last, last <= self.turn_began, use.path in self.edited

    def age(self, ref: PieceRef) -> int:
        """Model calls since the last use; 0 if unknown."""
        return self.state(*ref)[1]

    def refs_of(self, path: str) -> Sequence[PieceRef]:
        """Results and arguments of a file, in order."""
        return self._by_path.get(path, ())

    def path_of(self, message: int) -> str:
        use = self.by_ref.get((message, 0))
        return use.path if use else ""

    def _read(self, index: int, item: Item) -> None:
        if item.kind == "user":
            self.turn_began = self.calls
            for use in self._prepared:
                use.prepared = 0
            self._prepared, self._has_edited = [], False
            self._add_pieces(index, item)
        elif item.kind == "assistant" and not item.unsent:
            self.calls += 1
            for call in item.calls:
                if call.tool in WRITERS and (path := self._path(call.arguments)):
                    self.edited[path] = None
            self._note_prepared(item)
            self._note_uses(item)
            self._add_pieces(index, item)
        elif item.kind == "result":
            plan = self._plan
            assert plan is not None
            path = self._path(item.arguments)
            self._hold(PieceRef(index), item.text, path, partial(self.names.of, plan, index))
            if item.tool == "read" and path and not item.failed:
                self._prepared.append(self.by_ref[PieceRef(index)])

    def _note_prepared(self, item: Item) -> None:
        # What a turn has read it is about to edit: a model reads several files, then edits them one
        # by one.
        edited = {self._path(call.arguments) for call in item.calls if call.tool in WRITERS}
        unedited = [use for use in self._prepared if use.path not in edited]
        self._has_edited |= bool(edited)
        reads = not self._has_edited and any(call.tool == "read" for call in item.calls)
        if reads or len(unedited) < len(self._prepared):
            for use in unedited:
                use.prepared = self.calls
        self._prepared = unedited

    def _note_uses(self, item: Item) -> None:
        used = [self._holder(old.old) for c in item.calls for old in edits_of(c.arguments)]
        for call in item.calls:
            # Of results alone: the next edit of a file goes by what shows the file, and not by the
            # arguments of the edits before.
            of_path = self._by_path.get(self._path(call.arguments), ())
            used += [self.by_ref[ref] for ref in of_path if not ref.slot]
        names = frozenset[str]().union(*map(identifiers, _words(item)))
        counts: Counter[int] = Counter()
        for name in names:
            holders = self._holders.get(name, ())
            if len(holders) <= self.rules.max_holders:
                counts.update(holders)
        enough = (number for number, count in counts.items() if count >= self.rules.min_names)
        used += [self._in_order[number] for number in enough]
        for use in used:
            if use is not None:
                use.last = self.calls

    def _add_pieces(self, index: int, item: Item) -> None:
        pieces = pieces_of(item)
        self._note_foldable(index, pieces)
        texts = [piece for piece in pieces if piece.kind != "thinking"]
        paths = {call.id: self._path(call.arguments) for call in item.calls} if texts else {}
        for piece in texts:
            ref, path = PieceRef(index, piece.slot), paths.get(piece.call_id, "")
            self._hold(ref, piece.text, path, partial(identifiers, piece.text))

    def _note_foldable(self, index: int, pieces: list[Piece]) -> None:
        assert self._plan is not None
        op = self._plan.ops[index]
        whole = op.form in ("host", "folded")
        if self._plan.items[index].kind == "user":
            # What was added to it, or taken from it to fit, stays as it is.
            whole = whole and (op.blocks is None or bool(op.folded))
        unsealed = REASONING in op.folded
        for piece in pieces:
            ref = PieceRef(index, piece.slot)
            is_gone = piece.slot in op.folded or (unsealed and piece.kind == "thinking")
            if whole and not piece.sealed and not is_gone:
                self.foldable[ref] = piece
            else:
                self.foldable.pop(ref, None)

    def _hold(self, ref: PieceRef, text: str, path: str, find: Callable[[], Iterable[str]]) -> None:
        use = self.by_ref[ref] = LastUse(ref, self.calls, path, text)
        number = len(self._in_order)
        self._in_order.append(use)
        if path:
            self._by_path.setdefault(path, []).append(ref)
        by_name, most = self._holders, self.rules.max_holders
        for name in find():
            holders = by_name.get(name)
            if holders is None:
                by_name[name] = (number,)
            elif len(holders) <= most:
                by_name[name] = (*holders, number)

    def _holder(self, text: str) -> LastUse | None:
        if not text.strip():
            return None
        possible: Iterable[LastUse] = reversed(self._in_order)
        # Nearly every text has a rare name in it, so that few pieces have to be searched.
        for name in inner_identifiers(text):
            numbers = self._holders.get(name, ())
            if len(numbers) <= self.rules.max_holders:
                possible = [self._in_order[number] for number in reversed(numbers)]
                break
        return next((use for use in possible if text in use.text), None)

    def _path(self, arguments: dict[str, object]) -> str:
        path = path_argument(arguments)
        if not path:
            return ""
        if (absolute := self._paths.get(path)) is None:
            absolute = self._paths[path] = posixpath.normpath(posixpath.join(self.cwd, path))
        return absolute


def _words(item: Item) -> Iterable[str]:
    for block in item.blocks:
        if block.get("type") == "text":
            yield str(block.get("text") or "")
    for call in item.calls:
        yield from strings_in(call.arguments)


AHEAD_CALLS = 20
"""Calls ahead for which the policy is asked."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    policy: Policy
    history: History
    foldable: frozenset[PieceRef]
    """What may go now."""

    def first_to_go(self) -> int | None:
        """The first message that may be rewritten within the next calls."""
        history = self.history
        later = replace(
            history,
            contents=[
                content._replace(age=content.age + AHEAD_CALLS) for content in history.contents
            ],
            pieces=[piece._replace(age=piece.age + AHEAD_CALLS) for piece in history.pieces],
        )
        decision = self.policy.decide(later)
        going = {ref.message for ref in decision.foldable} | decision.released
        return min(going, default=None)


def run_policy(
    branch: Branch,
    policy: Policy,
    uses: Uses,
    request: Request,
    gauge: Gauge,
    *,
    cold: bool,
    tokens: int,
    window: int | None,
) -> PolicyRun:
    """Runs the policy, and releases what it gives up."""
    plan = branch.plan
    if policy.rules:
        uses.follow(plan)
    flight = plan.last_assistant()
    floor = newest_from(plan, uses.rules.newest)
    contents = [
        content
        for content in _active_contents(branch, uses, flight, cold=cold)
        if content.message < floor
    ]
    pieces = list(_pieces(branch, uses, request.wire, flight)) if policy.rules else []
    history = History(
        contents,
        plan.turn,
        request.time_ms,
        cold,
        branch.policy_state,
        pieces=pieces,
        precedes_bound_turn=precedes_bound_turn(plan),
        tokens=tokens,
        window=window,
        chars_per_token=gauge.rate,
    )
    decision = policy.decide(history)
    branch.policy_state = decision.state
    # Only what was offered: what is pinned or answers the newest message stays.
    for index in sorted({content.message for content in contents} & decision.released):
        branch.release(index)
    choices = {content.ref for content in contents}.union(piece.ref for piece in pieces)
    return PolicyRun(policy, history, decision.foldable & choices)


def newest_from(plan: Plan, count: int) -> int:
    first = len(plan)
    while first and count:
        first -= 1
        count -= plan.items[first].kind == "result"
    return first


def _active_contents(
    branch: Branch, uses: Uses, flight: int, *, cold: bool
) -> Iterator[ActiveContent]:
    # What answers the newest assistant message has not been seen by the model yet.
    plan, pinned = branch.plan, branch.sets.pins
    items, counted = plan.items, plan.results_in_turn
    turn, last_use = plan.turn, plan.referred_at.get
    for index, ordinal in sorted(branch.kept.items()):
        if index > flight or ordinal in pinned or items[index].kind != "result":
            continue
        use = last_use(index, index)
        ref, age, idle, of_edited = uses.state(index, cold=cold)
        if use != index:
            _, again, unused, _ = uses.state(use, cold=cold)
            age, idle = min(age, again), idle and unused
        item = items[use]
        age_in_turns, recency_rank = (
            turn - item.turn,
            counted.get(item.turn, 0) - item.results_before,
        )
        chars = plan.chars[index]
        tool = items[index].tool
        yield ActiveContent(
            ref, ordinal, age_in_turns, recency_rank, chars, tool, age, idle, of_edited
        )


def _pieces(branch: Branch, uses: Uses, wire: Wire, flight: int) -> Iterator[FoldablePiece]:
    plan, pinned = branch.plan, branch.sets.pins
    if wire.between_turns and (not plan.items or plan.items[-1].kind != "user"):
        return
    for ref, piece in uses.foldable.items():
        item = plan.items[ref.message]
        earlier = item.turn < plan.turn
        if piece.kind == "thinking":
            allowed = wire.thinking
        else:
            allowed = wire.arguments or item.kind == "user"
        if piece.kind in uses.exempt or (piece.kind in ("message", "answer") and not earlier):
            continue
        op, use = plan.ops[ref.message], plan.last_use(ref.message)
        if use > flight or op.subject in pinned:
            continue
        if allowed and ref.message < flight:
            _, age, idle, of_edited = uses.state(*ref)
            if use != ref.message:
                _, again, unused, _ = uses.state(use)
                age, idle = min(age, again), idle and unused
            chars = len(piece.text)
            yield FoldablePiece(ref, piece.kind, chars, age, idle, of_edited, earlier)
