"""One current copy of a file in place of old reads and edits.

A *refresh* updates an old read; a *current copy*, when everything is rewritten, the newest result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from foredeck.context.messages.items import Item, text_block
from foredeck.context.plan.ops import CURRENT, Op, PieceRef, Shown
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.pieces import Piece, folded_blocks
from foredeck.context.policies.uses import Uses
from foredeck.context.rebase import (
    first_mutable,
    is_immutable,
    may_change,
)
from foredeck.context.rendering import (
    RenderContext,
    contains_lines,
    full,
    is_garbled,
    shown_lines,
    shown_text,
)
from foredeck.context.rewriting.folding import FoldFinder
from foredeck.context.wording import brought_up_to_date
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.documents import PASTE_CHARS
from foredeck.model.identity import hash_text
from foredeck.model.messages import texts_in
from foredeck.model.names import files_in
from foredeck.sources.tool_calls import WRITERS, parse_read_range, written_texts

MAX_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class Refresh:
    """A read, its new text, and the arguments that become redundant."""

    index: int
    text: str | None
    """None if the read shows the newest content already."""
    version: int
    folds: tuple[PieceRef, ...]
    saving: int
    """Characters saved."""

    @property
    def ref(self) -> PieceRef:
        return PieceRef(self.index, CURRENT)


@dataclass(slots=True)
class RefreshFinder:
    """Reads to bring up to date in one plan, cached by file."""

    # By the very operation, which no other plan has.

    _known: dict[str, tuple[Op, tuple[int, int], Refresh | None]] = field(default_factory=dict)
    """By path: the read's operation, the state of the file's pieces, and the result."""

    def find(
        self, context: RenderContext, uses: Uses, going: Collection[PieceRef], wire: Wire
    ) -> list[Refresh]:
        """The refreshes of one call; `going` folds at the next rebase anyway."""
        if not uses.rules.refresh or not wire.lets_calls_change:
            return []
        refreshes: list[Refresh] = []
        in_view = _results_in_view(context, uses)
        for path in uses.edited:
            refresh = self._of(context, uses, path, in_view.get(path, ()))
            if refresh is None or PieceRef(refresh.index) in going:
                continue
            rest = _still_there(context, uses, refresh, going)
            if rest is not None:
                refreshes.append(rest)
        return refreshes

    def _of(
        self, context: RenderContext, uses: Uses, path: str, shown: Sequence[PieceRef]
    ) -> Refresh | None:
        refs, read = uses.refs_of(path), newest_read(context, shown)
        if read is None:
            return None
        op = context.plan.ops[read]
        newest = context.newest(op.subject or 0)
        cached, state = self._known.get(path), (len(refs), newest)
        if cached is None or cached[0] is not op or cached[1] != state:
            cached = op, state, _refresh(context, uses, read, newest, refs)
            self._known[path] = cached
        return cached[2]


def refresh(context: RenderContext, refreshes: Sequence[Refresh]) -> list[PieceRef]:
    """Updates these reads where they may change; returns the arguments that fold with them."""
    folds: list[PieceRef] = []
    allowed = may_change(context.plan, [each.index for each in refreshes])
    for each in refreshes:
        if each.index not in allowed:
            continue
        folds += each.folds
        if each.text is None:
            continue
        subject = context.plan.ops[each.index].subject or 0
        context.plan.write(each.index, _updated(each.text, subject, each.version))
    return folds


@dataclass(frozen=True, slots=True)
class CurrentCopy:
    """A result that shows a whole file, and what becomes redundant."""

    index: int
    subject: int
    version: int
    text: str
    gone: tuple[PieceRef, ...]
    """Older results of the file, and arguments of its edits."""
    replaced: int
    """Characters of these and of the result before."""


def find_copies(
    context: RenderContext, uses: Uses, folds: FoldFinder, wire: Wire
) -> Iterator[CurrentCopy]:
    """The possible copies when nothing is cached."""
    plan, rules = context.plan, uses.rules
    if not rules.copy_chars or not wire.lets_calls_change or first_mutable(plan):
        # A copy comes further down than what it replaces: all of it must be free to change.
        return
    for path in dict.fromkeys((*_asked_about(plan, uses), *uses.at_work(plan.turn))):
        subject = context.label(path)
        if subject is None or subject in context.sets.pins:
            continue
        text = context.content(subject)
        index = _place_of(context, uses, path)
        if not text or len(text) > rules.copy_chars or index is None:
            continue
        if path not in uses.edited and plan.items[index].text != text:
            # It would say "with the later edits", and there are none.
            continue
        if _is_current(context, uses, path, text):
            gone = _replaced_by(context, uses, folds, path, index, subject)
            replaced = plan.chars[index] + sum(gone.values())
            yield CurrentCopy(index, subject, context.newest(subject), text, tuple(gone), replaced)


def place_copies(
    context: RenderContext, copies: Sequence[CurrentCopy]
) -> tuple[set[PieceRef], set[int]]:
    """Renders the copies; returns what they replace, and the results settled."""
    for copy in copies:
        # Of a result that has folded, `shown_text` still is what it once showed.
        is_in_view = context.plan.ops[copy.index].shows
        if not is_in_view or shown_text(context.plan, copy.index) != copy.text:
            _show(context, copy)
    replaced = {ref for copy in copies for ref in copy.gone}
    settled = {copy.index for copy in copies} | {ref.message for ref in replaced if not ref.slot}
    return replaced, settled


def explain_copies(decision: Decision, copies: Sequence[CurrentCopy]) -> Decision:
    """Adds the copies' figures to the decision."""
    if not copies:
        return decision
    take = sum(len(copy.text) for copy in copies)
    replaced = sum(copy.replaced for copy in copies)
    return decision._replace(
        copies=round(take / CHARS_PER_TOKEN), replaced=round(replaced / CHARS_PER_TOKEN)
    )


def _results_in_view(context: RenderContext, uses: Uses) -> dict[str, list[PieceRef]]:
    # Asked for at every call: of a long session nearly all reads of a file have folded long ago.
    results: dict[str, list[PieceRef]] = {}
    holders = context.plan.holders.values()
    for index in sorted(index for indexes in holders for index in indexes):
        if path := uses.path_of(index):
            results.setdefault(path, []).append(PieceRef(index))
    return results


def newest_read(context: RenderContext, refs: Sequence[PieceRef]) -> int | None:
    """The newest message that shows a whole file and that no difference refers to."""
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
    lines = parse_read_range(item.arguments, item.text)
    return lines is not None and lines.complete


def _refresh(
    context: RenderContext, uses: Uses, read: int, newest: int, refs: Sequence[PieceRef]
) -> Refresh | None:
    plan = context.plan
    op, text_in_view = plan.ops[read], shown_text(plan, read)
    text: str | None = None
    if op.version is not None and newest > op.version:
        text = context.content(op.subject or 0)
        if not text or len(text) > MAX_CHARS:
            return None
    newest_text = text_in_view if text is None else text
    later = (ref for ref in refs if ref.slot and ref.message > read)
    folds = [
        ref for ref in later if (part := uses.by_ref[ref].text.strip()) and part in newest_text
    ]
    return Refresh(read, text, newest, tuple(folds), len(text_in_view) - len(newest_text))


def _still_there(
    context: RenderContext, uses: Uses, known: Refresh, going: Collection[PieceRef]
) -> Refresh | None:
    folds: list[PieceRef] = []
    saving = known.saving
    for ref in known.folds:
        piece = foldable_piece(context, uses, ref)
        if piece is not None and ref not in going:
            folds.append(ref)
            saving += piece.saving
    if not folds or saving < context.min_saving_chars:
        return None
    return replace(known, folds=tuple(folds), saving=saving)


def foldable_piece(context: RenderContext, uses: Uses, ref: PieceRef) -> Piece | None:
    piece, plan = uses.foldable.get(ref), context.plan
    if piece is None or ref.message >= plan.last_assistant():
        return None
    if is_immutable(plan, ref.message):
        return None
    slots = {*plan.ops[ref.message].folded, ref.slot}
    item = plan.items[ref.message]
    return None if folded_blocks(item, slots, context.label) is None else piece


def _show(context: RenderContext, copy: CurrentCopy) -> None:
    context.branch.release(copy.index)
    item, op = context.plan.items[copy.index], _updated(copy.text, copy.subject, copy.version)
    # A file that is as it was read needs no word of later edits.
    context.plan.write(copy.index, full(item, op.shown) if item.text == copy.text else op)
    context.branch.keep(copy.index, copy.subject)
    context.sets.activate(copy.subject)


def _updated(text: str, subject: int, version: int) -> Op:
    blocks = [text_block(brought_up_to_date(subject, version)), text_block(text)]
    return Op("full", blocks, Shown(subject, version, hash_text(text)))


def _asked_about(plan: Plan, uses: Uses) -> list[str]:
    at = plan.newest_question
    blocks = plan.items[at].blocks if at >= 0 else []
    texts = [text for text in texts_in(blocks) if len(text) < PASTE_CHARS]
    return uses.files_named(files_in("\n".join(texts)))[: uses.rules.at_work]


def _place_of(context: RenderContext, uses: Uses, path: str) -> int | None:
    """A result that can take in the file: a whole read in view, else the newest."""
    read = newest_read(context, uses.refs_of(path))
    if read is not None:
        return read
    plan = context.plan
    flight = plan.last_assistant()
    for ref in sorted(uses.refs_of(path), reverse=True):
        item = plan.items[ref.message]
        if ref.slot or ref.message > flight or item.failed or item.has_image:
            continue
        if plan.is_omitted(ref.message):
            continue
        return None if ref.message in plan.referred_at else ref.message
    return None


def _is_current(context: RenderContext, uses: Uses, path: str, text: str) -> bool:
    """Whether the text has what the newest call showed or wrote."""
    items = context.plan.items
    results = (items[ref.message] for ref in reversed(uses.refs_of(path)) if not ref.slot)
    item = next((item for item in results if not item.failed), None)
    if item is None or item.tool == "read":
        return item is not None and contains_lines(text, shown_lines(item, item.text))
    new_texts = written_texts(item.arguments)
    return item.tool in WRITERS and all(new.strip() in text for new in new_texts)


def _replaced_by(
    context: RenderContext, uses: Uses, folds: FoldFinder, path: str, index: int, subject: int
) -> dict[PieceRef, int]:
    plan, flight = context.plan, context.plan.last_assistant()
    gone: dict[PieceRef, int] = {}
    for ref in uses.refs_of(path):
        op = plan.ops[ref.message]
        if ref.message == index:
            continue
        if ref.slot:
            piece = foldable_piece(context, uses, ref)
            if piece is not None:
                gone[ref] = len(piece.text)
        elif op.shows and op.subject == subject and folds.may_fold(context, ref.message, flight):
            gone[ref] = plan.chars[ref.message]
    return gone


@dataclass(slots=True)
class Finders:
    """Lookups over a plan's messages, kept from call to call."""

    uses: Uses
    folds: FoldFinder = field(default_factory=FoldFinder)
    refreshes: RefreshFinder = field(default_factory=RefreshFinder)
