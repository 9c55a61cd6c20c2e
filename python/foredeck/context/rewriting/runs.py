"""One line for a run of calls of which nothing but lines is left: which runs there are.

A folded result keeps the call that it answers, a reference line and a digest. Where steps in a row
have come to that, one text stands for all of them (`run_lines.py`), in place of the last. Every
call comes back by its handle, as before. It happens only where bytes are rewritten anyway, and
never across what somebody said, an observation, or reasoning that has to stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foredeck.context.cache.rebase import first_free
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import SEALED, Part
from foredeck.context.messages.wires import Wire
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.policies.policy import UseRule
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rendering.view import names_in_view
from foredeck.context.rewriting.replacing import exchanges, let_stand
from foredeck.context.rewriting.run_lines import NAMED_SHARE, run_text
from foredeck.sources.toolpaths import WRITERS

SAID_CHARS = 300
"""A step that says more than this beside its calls stands as it is."""

SHORT_CHARS = 200
"""A result that is no longer is never folded, and goes with the rest of a run."""

FOLDED = frozenset({"reference", "same"})
"""Forms of results that show nothing by themselves."""


@dataclass(frozen=True, slots=True)
class RunRule:
    """Which steps may become one line with their neighbours."""

    after: int
    """Only those after which this many calls have been made."""
    unseals: bool
    """Whether reasoning that is bound to earlier bytes is left out where these change."""


@dataclass(frozen=True, slots=True)
class FoldedRun:
    """Messages in a row, all of which leave; the first, and the one after the last."""

    first: int
    until: int

    @property
    def messages(self) -> range:
        """Their indexes."""
        return range(self.first, self.until)


def run_rule(rule: UseRule | None, wire: Wire) -> RunRule | None:
    """By which rule runs become lines at one call; None where none does."""
    if rule is None or not rule.runs_after or not wire.arguments or wire.between_turns:
        return None
    return RunRule(rule.runs_after, wire.thinking)


def fold_runs(context: RenderContext, rule: RunRule, start: int) -> list[FoldedRun]:
    """Let a line stand for each run from message `start` on that saves something by it. Returns
    these runs; a run that was a line before and has grown is one of them."""
    runs = list(find_runs(context, rule, start))
    if not runs:
        return []
    parts = context.conversation.parts
    gone = {index for run in runs for index in run.messages}
    held = names_in_view(context.conversation, gone)
    folded: list[FoldedRun] = []
    for run in runs:
        before = sum(parts[index].chars for index in run.messages)
        text, names = run_text(context, run.messages, held, int(NAMED_SHARE * before))
        held |= names
        if before - len(text) >= context.min_saving_chars:
            let_stand(context, text, (run.first, run.until), run.messages, {"run": True})
            folded.append(run)
    return folded


def find_runs(context: RenderContext, rule: RunRule, start: int) -> Iterator[FoldedRun]:
    """Two or more steps in a row, of which nothing but lines is left, from message `start` on."""
    first, steps, end = 0, 0, -1
    for step, is_dead in _steps(context, rule, start):
        if steps > 1 and (step.first != end or not is_dead):
            yield FoldedRun(first, end)
        if step.first != end or not is_dead:
            first, steps = step.first, 0
        if is_dead:
            steps, end = steps + 1, step.until
    if steps > 1:
        yield FoldedRun(first, end)


def _steps(context: RenderContext, rule: RunRule, start: int) -> Iterator[tuple[FoldedRun, bool]]:
    """Messages with what answers them, and whether all of that may go; of runs that are lines
    already each as one step."""
    conversation, edits = context.conversation, context.branch.edits
    items, runs = conversation.items, dict(edits.runs)
    index = max(start, first_free(conversation), edits.compacted[0])
    index = max([index, *(until for first, until in runs.items() if first < index)])
    last = _last_to_go(items, conversation.last_assistant(), rule.after)
    observed = {i for first, until in edits.stretches.values() for i in range(first, until)}
    while index < last:
        if index in runs:
            yield FoldedRun(index, runs[index]), True
            index = runs[index]
            continue
        group = next(exchanges(items, index, len(items)), [index])
        step = FoldedRun(index, group[-1] + 1)
        stands = observed.isdisjoint(step.messages) and not _is_parted(context, step)
        yield step, stands and len(group) == len(step.messages) and _is_dead(context, rule, group)
        index = step.until


def _last_to_go(items: Sequence[Item], newest: int, calls: int) -> int:
    """The first message that stays, as one of the newest calls."""
    index = newest
    while calls > 1 and index > 0:
        index -= 1
        calls -= items[index].kind == "assistant" and not items[index].void
    return index


def _is_parted(context: RenderContext, step: FoldedRun) -> bool:
    """Whether a message of ours stands between its messages: it answers a call, or ends a turn."""
    inserts = context.branch.edits.inserts
    return any(index in inserts for index in step.messages if index)


def _is_dead(context: RenderContext, rule: RunRule, group: Sequence[int]) -> bool:
    """Whether nothing of a call and its results is left but lines and short texts."""
    asked, *results = group
    item, part = context.conversation.items[asked], context.conversation.parts[asked]
    if item.kind != "assistant" or item.void or not item.calls or len(results) != len(item.calls):
        return False
    is_sealed = item.signed and SEALED not in part.slots
    if is_sealed and not rule.unseals:
        return False
    if _said(item) > SAID_CHARS or not _is_folded(item, part, unseals=item.signed):
        return False
    return all(_is_dead_result(context, index) for index in results)


def _said(item: Item) -> int:
    texts = (block.get("text") or "" for block in item.blocks if block.get("type") == "text")
    return sum(map(len, texts))


def _is_folded(item: Item, part: Part, *, unseals: bool) -> bool:
    """Whether none of its long arguments, and no thinking, is left; `unseals`: thinking is, or will
    be at this rebase. Of an edit that is so short that it never folds, the new text is what the
    next edit may be of."""
    pieces = pieces_of(item)
    left = (piece for piece in pieces if piece.slot not in part.slots)
    if any(piece.kind != "thinking" or not unseals for piece in left):
        return False
    folded = {piece.call_id for piece in pieces}
    return all(call.id in folded for call in item.calls if call.tool in WRITERS)


def _is_dead_result(context: RenderContext, index: int) -> bool:
    item, part = context.conversation.items[index], context.conversation.parts[index]
    if part.subject in context.sets.pins:
        return False
    is_short = part.chars <= SHORT_CHARS and item.chars <= SHORT_CHARS
    return part.form in FOLDED or (is_short and part.form in ("host", "full", "note"))
