"""When each piece of content was last used, read off what the model wrote.

A use is an edit of text that the piece holds, a mention of identifiers that hardly anything else
holds, or, of a result, a tool call that names its path. What a turn has read is *prepared*: each
further read, and later each edit of one of these files, counts as a use of the others until the
turn ends. Everything follows from the message list alone, so that a restarted engine comes to the
same.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.pieces import Piece, pieces_of
from foredeck.context.policies.policy import UseRule
from foredeck.context.rendering.context import PromptNames
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers, inner_identifiers
from foredeck.sources.tool_calls import WRITERS, edits_of, path_argument


@dataclass(slots=True, eq=False)
class LastUse:
    """One piece of content and its last use, counted in model calls from 1."""

    ref: PieceRef
    last: int
    path: str = ""
    text: str = ""
    prepared: int = 0
    """Of a read of a file that its turn has not edited: the call at which the turn last read or
    edited another; 0 once the turn has ended."""


RECENT_TURNS, RECENT_CALLS = 2, 20
"""How many earlier turns, and how many model calls, a file may go unedited and still be at work."""


class LastEdit(NamedTuple):
    """When a file was written last: at which model call, from 1, and in which user turn."""

    call: int
    turn: int


@dataclass(slots=True)
class Uses:
    """Last uses of the results and arguments of one conversation. `follow` brings it up to date."""

    cwd: str = ""
    rule: UseRule = field(default_factory=UseRule)
    names: PromptNames = field(default_factory=PromptNames)
    """The identifiers in its messages; the session's, where others look for them, too."""
    calls: int = 0
    """Model calls so far: answers in the list that were not aborted."""
    turn_began: int = 0
    """How many there were at the newest user message."""
    read: int = 0
    """How many messages were read so far."""
    edited: dict[str, LastEdit] = field(default_factory=dict)
    """By path, the files that the session has written."""
    foldable: dict[PieceRef, Piece] = field(default_factory=dict)
    """Pieces of messages that are not folded, and not sealed."""
    by_ref: dict[tuple[int, int], LastUse] = field(default_factory=dict)
    """By `PieceRef`, in the order of the messages."""
    _in_order: list[LastUse] = field(default_factory=list)
    """The same, by number."""
    _prepared: list[LastUse] = field(default_factory=list)
    """The newest turn's reads of files that it has not edited since."""
    _has_edited: bool = False
    """Whether that turn has edited any file."""
    _plan: Plan | None = None
    _mark: int = 0
    """How much was written into the plan by then."""
    # One more than `max_holders`: an identifier with as many says nothing any more.
    _holders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By identifier, the numbers of the first pieces that hold it."""
    _by_path: dict[str, list[PieceRef]] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)
    """Absolute paths by the arguments that name them: a session names the same files all along."""

    def follow(self, plan: Plan) -> None:
        """Read the messages that were added; all of them if this is another list."""
        if self._plan is not plan or self.read > len(plan):
            self._begin(plan)
        for index in range(self.read, len(plan)):
            self._read(index, plan.items[index])
        for index in set(plan.written[self._mark :]):
            if index < self.read and plan.items[index].kind in ("assistant", "user"):
                self._note_foldable(index, pieces_of(plan.items[index]))
        self._mark, self.read = len(plan.written), len(plan)

    def _begin(self, plan: Plan) -> None:
        """Start over with a list."""
        fresh = Uses(self.cwd, self.rule, self.names)
        for name in fresh.__slots__:
            setattr(self, name, getattr(fresh, name))
        self._plan = plan

    def state(
        self, message: int, slot: int = 0, *, cold: bool = True
    ) -> tuple[PieceRef, int, bool, bool]:
        """Of one piece of content: where it is, model calls since its last use, whether the newest
        user turn has not used it, and whether it is of a file that the session edits; 0 and no
        for what is not known."""
        use = self.by_ref.get((message, slot))
        if use is None:
            return PieceRef(message, slot), 0, False, False
        # Not with a cold cache: to write all that is prepared anew costs more than it is worth.
        last = use.last if cold or not self.rule.prepared else max(use.last, use.prepared)
        return use.ref, self.calls - last, last <= self.turn_began, use.path in self.edited

    def age(self, ref: PieceRef) -> int:
        """Model calls since the last use; 0 for what is not known."""
        return self.state(*ref)[1]

    def refs_of(self, path: str) -> Sequence[PieceRef]:
        """Results and arguments that are of a file, in their order."""
        return self._by_path.get(path, ())

    def files_named(self, names: Iterable[str]) -> list[str]:
        """The files of which something was read or written, and whose paths end in one of these
        names."""
        ends = tuple(f"/{posixpath.normpath(name).lstrip('/')}" for name in names)
        return [path for path in self._by_path if path.endswith(ends)]

    def at_work(self, turn: int) -> list[str]:
        """The files that were edited last, the newest first, as many as the rule says; `turn`: the
        newest user turn. None that has not been edited for long."""
        if not self.rule.at_work:
            return []
        turns, calls = turn - RECENT_TURNS, self.calls - RECENT_CALLS
        recent = [
            (edit, path)
            for path, edit in self.edited.items()
            if edit.turn >= turns or edit.call >= calls
        ]
        return [path for _, path in sorted(recent, reverse=True)[: self.rule.at_work]]

    def path_of(self, message: int) -> str:
        """The file that a message's content is of; empty where it is of none."""
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
                    self.edited[path] = LastEdit(self.calls, item.turn)
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
        """Find what else the turn has read and not edited, where it reads or edits a file."""
        # What a turn has read it is about to edit: a model reads several files, then edits them one
        # by one.
        edited = {self._path(call.arguments) for call in item.calls if call.tool in WRITERS}
        left = [use for use in self._prepared if use.path not in edited]
        self._has_edited |= bool(edited)
        reads = not self._has_edited and any(call.tool == "read" for call in item.calls)
        if reads or len(left) < len(self._prepared):
            for use in left:
                use.prepared = self.calls
        self._prepared = left

    def _note_uses(self, item: Item) -> None:
        used = [self._holder(old.old) for c in item.calls for old in edits_of(c.arguments)]
        for call in item.calls:
            # Of results alone: the next edit of a file goes by what shows the file, and not by the
            # arguments of the edits before.
            named = self._by_path.get(self._path(call.arguments), ())
            used += [self.by_ref[ref] for ref in named if not ref.slot]
        names = frozenset[str]().union(*map(identifiers, _words(item)))
        counts: Counter[int] = Counter()
        for name in names:
            holders = self._holders.get(name, ())
            if len(holders) <= self.rule.max_holders:
                counts.update(holders)
        enough = (number for number, count in counts.items() if count >= self.rule.min_names)
        used += [self._in_order[number] for number in enough]
        for use in used:
            if use is not None:
                use.last = self.calls

    def _add_pieces(self, index: int, item: Item) -> None:
        pieces = pieces_of(item)
        self._note_foldable(index, pieces)
        held = [piece for piece in pieces if piece.kind != "thinking"]
        paths = {call.id: self._path(call.arguments) for call in item.calls} if held else {}
        for piece in held:
            ref, path = PieceRef(index, piece.slot), paths.get(piece.call_id, "")
            self._hold(ref, piece.text, path, partial(identifiers, piece.text))

    def _note_foldable(self, index: int, pieces: list[Piece]) -> None:
        """Know which of a message's pieces can fold, as it is rendered now."""
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
        known, most = self._holders, self.rule.max_holders
        for name in find():
            holders = known.get(name)
            if holders is None:
                known[name] = (number,)
            elif len(holders) <= most:
                known[name] = (*holders, number)

    def _holder(self, text: str) -> LastUse | None:
        """The newest piece that holds a text."""
        if not text.strip():
            return None
        possible: Iterable[LastUse] = reversed(self._in_order)
        # Nearly every text has a rare name in it, so that few pieces have to be searched.
        for name in inner_identifiers(text):
            numbers = self._holders.get(name, ())
            if len(numbers) <= self.rule.max_holders:
                possible = [self._in_order[number] for number in reversed(numbers)]
                break
        return next((use for use in possible if text in use.text), None)

    def _path(self, arguments: dict[str, object]) -> str:
        path = path_argument(arguments)
        if not path:
            return ""
        if (found := self._paths.get(path)) is None:
            found = self._paths[path] = posixpath.normpath(posixpath.join(self.cwd, path))
        return found


def _words(item: Item) -> Iterable[str]:
    """What an answer says and asks for."""
    for block in item.blocks:
        if block.get("type") == "text":
            yield str(block.get("text") or "")
    for call in item.calls:
        yield from strings_in(call.arguments)
