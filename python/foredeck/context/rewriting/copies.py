"""One current copy of each file at work, where the whole prompt is written anew anyway.

After a pause the next edits are of files that the session has edited before it, or that the user
asks about, and their text is in old reads and in the arguments of edits, each a state that is past.
The newest result of such a file takes in all of it, once; what it replaces folds. The copy folds
as a whole, by the age of its last use, once the session leaves the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from foredeck.context.cache.rebase import first_mutable
from foredeck.context.messages.items import text_block
from foredeck.context.messages.wires import Wire
from foredeck.context.plan.ops import PieceRef, Rewrite, Shown
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.uses import Uses
from foredeck.context.rendering.layout import RenderContext, full, shown_text
from foredeck.context.rendering.savings import contains_lines, shown_lines
from foredeck.context.rewriting.foldable import FoldFinder
from foredeck.context.rewriting.refresh import foldable_piece, newest_read
from foredeck.context.wording import brought_up_to_date
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.canonical import hash_text
from foredeck.model.documents import PASTE_CHARS
from foredeck.model.messages import texts_in
from foredeck.model.names import files_in
from foredeck.sources.tool_calls import WRITERS, written_texts


@dataclass(frozen=True, slots=True)
class CurrentCopy:
    """A result that shows the whole of a file, and what need not be seen beside it."""

    index: int
    subject: int
    version: int
    text: str
    gone: tuple[PieceRef, ...]
    """Older results of the file, and arguments of its edits."""
    replaced: int
    """Characters that these, and the result itself, had taken."""


def find_copies(
    context: RenderContext, uses: Uses, folds: FoldFinder, wire: Wire
) -> Iterator[CurrentCopy]:
    """The copies that there can be at a call which finds nothing in the cache."""
    plan, rule = context.plan, uses.rule
    if not rule.copies or not wire.arguments or wire.between_turns or first_mutable(plan):
        # A copy stands further down than what it replaces: all of it must be free to change.
        return
    for path in dict.fromkeys((*_asked_about(plan, uses), *uses.at_work(plan.turn))):
        subject = context.label(path)
        if subject is None or subject in context.sets.pins:
            continue
        text = context.content(subject)
        index = _place_of(context, uses, path)
        if not text or len(text) > rule.copy_chars or index is None:
            continue
        if path not in uses.edited and plan.items[index].text != text:
            # It would say "with the later edits", and there are none.
            continue
        if _is_current(context, uses, path, text):
            copy = CurrentCopy(index, subject, context.newest(subject), text, (), 0)
            yield _with_replaced(context, uses, folds, path, copy)


def place_copies(
    context: RenderContext, copies: Sequence[CurrentCopy]
) -> tuple[set[PieceRef], set[int]]:
    """Render the copies. Returns what they replace, and the results that are settled by that: those
    that show a copy now, and those that are replaced."""
    for copy in copies:
        # Of a result that has folded, `shown_text` still is what it once showed.
        is_in_view = context.plan.ops[copy.index].shows
        if not is_in_view or shown_text(context.plan, copy.index) != copy.text:
            _show(context, copy)
    replaced = {ref for copy in copies for ref in copy.gone}
    settled = {copy.index for copy in copies} | {ref.message for ref in replaced if not ref.slot}
    return replaced, settled


def explain_copies(decision: Decision, copies: Sequence[CurrentCopy]) -> Decision:
    """The decision with what the copies take, and what they replace."""
    if not copies:
        return decision
    take = sum(len(copy.text) for copy in copies)
    replaced = sum(copy.replaced for copy in copies)
    return decision._replace(
        copies=round(take / CHARS_PER_TOKEN), replaced=round(replaced / CHARS_PER_TOKEN)
    )


def _show(context: RenderContext, copy: CurrentCopy) -> None:
    context.branch.release(copy.index)
    item = context.plan.items[copy.index]
    shown = Shown(copy.subject, copy.version, hash_text(copy.text))
    if item.text == copy.text:
        context.plan.write(copy.index, full(item, shown))
    else:
        head = text_block(brought_up_to_date(copy.subject, copy.version))
        context.plan.write(copy.index, Rewrite("full", [head, text_block(copy.text)], shown))
    context.retention.keep(copy.index, copy.subject)
    context.sets.activate(copy.subject)


def _asked_about(plan: Plan, uses: Uses) -> list[str]:
    """The files that the newest message of the user names, no more than may be at work; what is
    named in a paste is not asked about."""
    said = next((item for item in reversed(plan.items) if item.kind == "user"), None)
    texts = [text for text in texts_in(said.blocks if said else []) if len(text) < PASTE_CHARS]
    return uses.files_named(files_in("\n".join(texts)))[: uses.rule.at_work]


def _place_of(context: RenderContext, uses: Uses, path: str) -> int | None:
    """The result that can take in a file, seen by a call and referred to by no other: a read of
    the whole file that is in view, else the newest result of any kind."""
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
    """Whether what the newest call has shown of a file, or written to it, is in that text:
    else the text is older."""
    items = context.plan.items
    results = (items[ref.message] for ref in reversed(uses.refs_of(path)) if not ref.slot)
    item = next((item for item in results if not item.failed), None)
    if item is None or item.tool == "read":
        return item is not None and contains_lines(text, shown_lines(item, item.text))
    written = written_texts(item.arguments)
    return item.tool in WRITERS and all(new.strip() in text for new in written)


def _with_replaced(
    context: RenderContext, uses: Uses, folds: FoldFinder, path: str, copy: CurrentCopy
) -> CurrentCopy:
    """The copy with what it replaces."""
    plan = context.plan
    flight = plan.last_assistant()
    gone: list[PieceRef] = []
    replaced = plan.chars[copy.index]
    for ref in uses.refs_of(path):
        op = plan.ops[ref.message]
        if ref.message == copy.index:
            continue
        if ref.slot:
            piece = foldable_piece(context, uses, ref)
            if piece is not None:
                gone.append(ref)
                replaced += len(piece.text)
        elif (
            op.shows and op.subject == copy.subject and folds.may_fold(context, ref.message, flight)
        ):
            gone.append(ref)
            replaced += plan.chars[ref.message]
    return replace(copy, gone=tuple(gone), replaced=replaced)
