"""When each piece of content was last used, read off what the model wrote.

A use is an edit of text that the piece holds, a mention of identifiers that hardly anything else
holds, or, of a result, a tool call that names its path. What a turn has read is *prepared*: each
further read, and later each edit of one of these files, counts as a use of the others until the
turn ends. Everything follows from the message list alone, so that a restarted engine comes to the
same.
"""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.pieces import Piece, pieces_of
from foredeck.context.policies.policy import UseRule
from foredeck.context.rendering.context import PromptNames
from foredeck.model.canonical import hash_of_modules
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
    kept: KeptUses | None = None
    """What an earlier process has found of a list: where it fits, reading begins after it."""
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
    # Unpacked when it is first needed, and not while a user waits for the call with which a session
    # is resumed.
    _packed: Unpack | None = None
    """What `_holders` is made of."""
    _is_kept: bool = False
    """Whether what is read now is kept: neither uses nor identifiers need be searched for."""

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

    @property
    def holders(self) -> dict[str, tuple[int, ...]]:
        """By identifier, the first pieces that hold it, by their numbers."""
        if self._packed is not None:
            self._holders, self._packed = unpack_holders(self._packed()), None
        return self._holders

    def unpack(self) -> None:
        """Make ready what the next answer of the model will be compared with."""
        _ = self.holders

    def keep(self) -> KeptUses:
        """What another process needs to go on after the messages read so far."""
        plan = self._plan or Plan()
        names_of = self.names.found(plan)
        indexes = sorted(index for index in names_of if index < self.read)
        lines = "\n".join(_joined(names_of[index]) for index in indexes)
        return KeptUses(
            tip=plan.tips[self.read - 1] if self.read else "",
            count=self.read,
            cwd=self.cwd,
            rule=self.rule,
            last=[use.last for use in self._in_order],
            holders=partial(bytes, _pack_holders(self.holders)),
            names=partial(bytes, json.dumps([indexes, lines]).encode()),
        )

    def _begin(self, plan: Plan) -> None:
        """Start over with a list, after those of its messages that are kept."""
        kept = self.kept
        self._reset(plan)
        if kept is None or not kept.fits(plan, self.cwd, self.rule):
            return
        self.names.take_over(plan, cache(partial(unpack_names, kept.names)))
        self._is_kept = True
        for index in range(kept.count):
            self._read(index, plan.items[index])
        self._is_kept = False
        if len(kept.last) != len(self._in_order):
            self._reset(plan)
            self.kept = None
            return
        for use, last in zip(self._in_order, kept.last, strict=True):
            use.last = last
        self._packed = kept.holders
        self.read = kept.count

    def _reset(self, plan: Plan) -> None:
        fresh = Uses(self.cwd, self.rule, self.kept, self.names)
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

    def path_of(self, message: int, slot: int = 0) -> str:
        """The file that a piece of content is of; empty where it is of none."""
        use = self.by_ref.get((message, slot))
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
            if not self._is_kept:
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
            holders = self.holders.get(name, ())
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
        if self._is_kept:
            return
        known, most = self.holders, self.rule.max_holders
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
            numbers = self.holders.get(name, ())
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


def _joined(names: Iterable[str] | str) -> str:
    return names if isinstance(names, str) else " ".join(sorted(names))


# What was found is kept between processes. It follows from the messages: where it is lost, or of
# other messages, these are read again.

DECIDED_BY = (
    *("context/messages/items.py", "context/plan/ops.py"),
    "context/plan/plan.py",
    *("context/policies/pieces.py", "context/policies/uses.py", "context/rendering/context.py"),
    *("model/names.py", "sources/tool_calls.py"),
)
"""The modules that decide what counts as a use, a piece or an identifier."""

# Reading a thousand calls takes five times as long as taking over what was found in them. Most of
# that is names, which the first call after a pause may not need: they stay packed until then.
Unpack = Callable[[], bytes]
"""Gives bytes that were kept, as often as it is asked."""


def _pack_holders(holders: Mapping[str, tuple[int, ...]]) -> bytes:
    """JSON: for each number of pieces the identifiers that so many hold, in one text, and for one
    after the other the numbers of these."""
    # Few long texts and lists are read back much faster than many short ones.
    found: dict[int, tuple[list[str], list[int]]] = {}
    for name, numbers in holders.items():
        names, flat = found.setdefault(len(numbers), ([], []))
        names.append(name)
        flat.extend(numbers)
    by_count = [(count, " ".join(names), flat) for count, (names, flat) in found.items()]
    return json.dumps(by_count).encode()


def unpack_holders(packed: bytes) -> dict[str, tuple[int, ...]]:
    """By identifier, the pieces that are recognised by it, by their numbers."""
    holders: dict[str, tuple[int, ...]] = {}
    for count, names, flat in json.loads(packed):
        numbers = zip(*[iter(flat)] * count, strict=True)
        holders.update(zip(names.split(" "), numbers, strict=True))
    return holders


def unpack_names(unpack: Unpack) -> dict[int, str]:
    """Messages with all identifiers in them, spaces between these, as far as they were searched;
    the bytes are JSON: the indexes of the messages, and their lines in one text."""
    indexes, text = json.loads(unpack())
    return dict(zip(indexes, text.split("\n") if indexes else (), strict=True))


@dataclass(frozen=True, slots=True)
class KeptUses:
    """What was found of the first `count` messages of a list."""

    tip: str
    """The rolling hash over these messages."""
    count: int
    cwd: str
    rule: UseRule
    last: list[int]
    """At which model call each piece of content was last used, in the order of the pieces."""
    holders: Unpack = field(compare=False)
    """For `unpack_holders`."""
    names: Unpack = field(compare=False)
    """For `unpack_names`."""

    def fits(self, plan: Plan, cwd: str, rule: UseRule) -> bool:
        """Whether a list begins with these very messages, and would be read in the same way."""
        if (self.cwd, self.rule) != (cwd, rule) or not 0 < self.count <= len(plan):
            return False
        return plan.tips[self.count - 1] == self.tip

    def to_streams(self) -> list[bytes]:
        """As a file holds it: what is needed at once, then the names."""
        names = ("tip", "count", "cwd", "last")
        first: dict[str, Any] = {name: getattr(self, name) for name in names}
        first |= {"format": hash_of_modules(DECIDED_BY), "rule": asdict(self.rule)}
        return [json.dumps(first).encode(), self.holders(), self.names()]

    @classmethod
    def from_streams(cls, streams: Sequence[Unpack]) -> KeptUses | None:
        """The inverse of `to_streams`; None for what other code has written."""
        try:
            first, holders, names = streams
            fields = json.loads(first())
            if fields.pop("format") != hash_of_modules(DECIDED_BY):
                return None
            fields["rule"] = UseRule(**fields["rule"])
            return cls(**fields, holders=holders, names=names)
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            return None
