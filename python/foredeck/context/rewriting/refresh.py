"""Bringing the read of an edited file up to date at a rebase.

An old copy and ten edits of it say less than one current copy: the read takes in the newest
content that the session has seen, and the arguments that it contains fold. The text that the next
edit will name stays in view, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from foredeck.context.cache.rebase import is_immutable
from foredeck.context.messages.items import Item, text_block
from foredeck.context.messages.wires import Wire
from foredeck.context.plan.ops import CURRENT, Op, PieceRef, Rewrite, Shown
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.pieces import Piece, folded_blocks
from foredeck.context.policies.uses import Uses
from foredeck.context.rendering.layout import RenderContext, is_garbled, shown_text
from foredeck.context.wording import brought_up_to_date
from foredeck.model.canonical import hash_text
from foredeck.sources.tool_calls import parse_read_range

MAX_CHARS = 50_000
"""A longer file is never read in whole, so no read of it can be brought up to date."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """A candidate: a read, what it would show, and the arguments that need not be seen then."""

    index: int
    text: str | None
    """The newest content; None where it is what the read shows already."""
    version: int
    folds: tuple[PieceRef, ...]
    saving: int
    """Characters that the prompt becomes shorter by."""

    @property
    def ref(self) -> PieceRef:
        """By which it is known among what may go."""
        return PieceRef(self.index, CURRENT)


@dataclass(slots=True)
class RefreshFinder:
    """Finds the reads that may be brought up to date; looks at a file again once something has
    been read, written or edited there."""

    _plan: Plan | None = None
    _known: dict[str, tuple[tuple[int, Op, int, int], Refresh | None]] = field(default_factory=dict)
    """By path: the read with its operation, how much is of the file, and the newest version, with
    what was found of them."""

    def find(
        self, context: RenderContext, uses: Uses, going: Collection[PieceRef], wire: Wire
    ) -> list[Refresh]:
        """Those of one call, where the policy wants any. `going`: what folds at the next rebase in
        any case."""
        if not uses.rule.refresh or not wire.arguments or wire.between_turns:
            return []
        if self._plan is not context.plan:
            self._plan, self._known = context.plan, {}
        found: list[Refresh] = []
        shown = _results_in_view(context, uses)
        for path in uses.edited:
            refresh = self._of(context, uses, path, shown.get(path, ()))
            if refresh is None or PieceRef(refresh.index) in going:
                continue
            rest = _still_there(context, uses, refresh, going)
            if rest is not None:
                found.append(rest)
        return found

    def _of(
        self, context: RenderContext, uses: Uses, path: str, shown: Sequence[PieceRef]
    ) -> Refresh | None:
        refs, read = uses.refs_of(path), newest_read(context, shown)
        if read is None:
            return None
        op = context.plan.ops[read]
        newest = context.newest(op.subject or 0)
        key = (read, op, len(refs), newest)
        if path not in self._known or self._known[path][0] != key:
            self._known[path] = (key, _refresh(context, uses, read, newest, refs))
        return self._known[path][1]


def refresh(context: RenderContext, refreshes: Iterable[Refresh]) -> list[PieceRef]:
    """Bring these reads up to date; returns the arguments that fold with them."""
    folds: list[PieceRef] = []
    for each in refreshes:
        folds += each.folds
        if each.text is None:
            continue
        subject = context.plan.ops[each.index].subject or 0
        head = text_block(brought_up_to_date(subject, each.version))
        blocks = [head, text_block(each.text)]
        digest = hash_text(each.text)
        context.plan.write(
            each.index, Rewrite("full", blocks, Shown(subject, each.version, digest))
        )
    return folds


def _results_in_view(context: RenderContext, uses: Uses) -> dict[str, list[PieceRef]]:
    """By path, the results that show what they are of, in their order."""
    # Asked for at every call: of a long session nearly all reads of a file have folded long ago.
    found: dict[str, list[PieceRef]] = {}
    holders = context.plan.holders.values()
    for index in sorted(index for indexes in holders for index in indexes):
        if path := uses.path_of(index):
            found.setdefault(path, []).append(PieceRef(index))
    return found


def newest_read(context: RenderContext, refs: Sequence[PieceRef]) -> int | None:
    """The newest message that shows the whole of a file, and to which no difference refers. `refs`:
    what is of the file, in the order of the messages; only results that show it count."""
    plan = context.plan
    flight = plan.last_assistant()
    for ref in reversed(refs):
        op = plan.ops[ref.message]
        if ref.slot or ref.message > flight or not op.shows:
            continue
        item = plan.items[ref.message]
        if op.form != "diff" and _is_whole(item):
            referred_to = op.subject is not None and any(
                plan.ops[index].base == ref.message for index in plan.holders.get(op.subject, ())
            )
            # With other content here, the difference that refers to it would say something false.
            return None if referred_to else ref.message
    return None


def _is_whole(item: Item) -> bool:
    if item.tool != "read" or item.failed or item.has_image or is_garbled(item):
        return False
    shown = parse_read_range(item.arguments, item.text)
    return shown is not None and shown.complete


def _refresh(
    context: RenderContext, uses: Uses, read: int, newest: int, refs: Sequence[PieceRef]
) -> Refresh | None:
    """What bringing a read up to date would do, None where the file has no text to show."""
    plan = context.plan
    op, shown = plan.ops[read], shown_text(plan, read)
    text: str | None = None
    if op.version is not None and newest > op.version:
        text = context.content(op.subject or 0)
        if not text or len(text) > MAX_CHARS:
            return None
    folds = [
        ref
        for ref in refs
        if ref.slot
        and ref.message > read
        and _holds_text(uses, ref, shown if text is None else text)
    ]
    grows = 0 if text is None else len(text) - len(shown)
    return Refresh(read, text, newest, tuple(folds), -grows)


def _holds_text(uses: Uses, ref: PieceRef, text: str) -> bool:
    wanted = uses.by_ref[ref].text.strip()
    return bool(wanted) and wanted in text


def _still_there(
    context: RenderContext, uses: Uses, known: Refresh, going: Collection[PieceRef]
) -> Refresh | None:
    """With the arguments that have not folded, and what that saves; None if it is too little."""
    folds: list[PieceRef] = []
    saving = known.saving
    for ref in known.folds:
        piece = foldable_piece(context, uses, ref)
        if piece is not None and ref not in going:
            folds.append(ref)
            saving += piece.saving
    if not folds or saving < context.min_saving_chars:
        return None
    return Refresh(known.index, known.text, known.version, tuple(folds), saving)


def foldable_piece(context: RenderContext, uses: Uses, ref: PieceRef) -> Piece | None:
    """A piece that can fold now: seen by a call, not sealed, not folded."""
    piece, plan = uses.foldable.get(ref), context.plan
    if piece is None or ref.message >= plan.last_assistant():
        return None
    if is_immutable(plan, ref.message):
        return None
    slots = {*plan.ops[ref.message].folded, ref.slot}
    item = plan.items[ref.message]
    return None if folded_blocks(item, slots, context.label) is None else piece
