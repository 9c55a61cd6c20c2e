"""Brings old reads of edited files up to date, in place of the edits after them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from foredeck.config import Config
from foredeck.context.messages.items import Item, text_block
from foredeck.context.plan.ops import CURRENT, Op, PieceRef, Shown
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.pieces import Piece, PieceKind, folded_blocks
from foredeck.context.policies.policy import Policy, Rules
from foredeck.context.policies.uses import Uses
from foredeck.context.rebase import is_immutable, may_change
from foredeck.context.rendering import RenderContext, is_garbled, shown_text
from foredeck.context.rewriting.folding import FoldFinder
from foredeck.context.wording import brought_up_to_date
from foredeck.model.identity import hash_text
from foredeck.sources.tool_calls import parse_read_range

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


def _updated(text: str, subject: int, version: int) -> Op:
    blocks = [text_block(brought_up_to_date(subject, version)), text_block(text)]
    return Op("full", blocks, Shown(subject, version, hash_text(text)))


@dataclass(slots=True)
class Finders:
    """Lookups over a plan's messages, kept from call to call."""

    uses: Uses
    folds: FoldFinder = field(default_factory=FoldFinder)
    refreshes: RefreshFinder = field(default_factory=RefreshFinder)

    @classmethod
    def of_policy(cls, cwd: str, policy: Policy, config: Config) -> Finders:
        """For what the policy asks, as far as the settings allow."""
        rules, exempt = policy.rules or Rules(), set[PieceKind]()
        if not config.tools.context:
            # Nothing else brings back what was said, as a tool does what it has shown.
            rules, exempt = replace(rules, turns_after=0), {"message", "answer"}
        elif not config.pastes.objects:
            exempt = {"message"}
        return cls(Uses(cwd, rules, frozenset(exempt)))
