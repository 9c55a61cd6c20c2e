"""The last guard of the context window: what no folding brings inside is compacted or cut.

The newest user message and the calls in flight stay whatever happens; of a text that alone is
larger than the window, beginning and end stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context import wording
from foredeck.context.cache.rebase import first_free
from foredeck.context.messages.items import IMAGE_CHARS, Block, Item, text_block
from foredeck.context.messages.parts import Part
from foredeck.context.messages.repairs import Insert
from foredeck.context.policies.pieces import folded_blocks, pieces_of
from foredeck.context.rendering.layout import NewResult, RenderContext, full_part, reference_part
from foredeck.context.rewriting.folding import unseal
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import (
    SummaryRequest,
    compact,
    host_compaction,
    turn_number,
)
from foredeck.context.window.pinning import hold, messages_held
from foredeck.context.window.pressure import room
from foredeck.model.call_values import Decision

SUMMARY_SHARE = 0.1
"""Of the window, at most, for a summary."""
DOUBT = 1.25
"""An estimate of tokens may be a fifth too high."""
LEAST_CHARS = 400
"""Of a text that is cut, at least."""
PASSES = 3
"""Cutting texts is tried again where that was not enough: what an image counts depends on who
counts."""
MARKER_CHARS = 200
"""What the line in the middle of a cut text takes, at most."""


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """What the prompt must fit into."""

    window: int | None
    """In tokens."""
    gauge: Gauge
    fixed_chars: int
    low_water: float
    summary_chars: int
    time_ms: int
    unseals: bool = False
    """Whether the wire lets reasoning be left out, once its turn has ended."""
    refused: bool = False
    """Whether the window is what the provider's refusal of a prompt has shown it to be."""

    @property
    def limit(self) -> int:
        """The most characters that may go out."""
        return int(room(self.window or 0) * self.gauge.rate)

    @property
    def bearable(self) -> int:
        """The characters with which a request is still worth a try: counts are estimates, until
        the provider has reported some or refused a prompt."""
        doubt = 1.0 if self.refused or self.gauge.calls else DOUBT
        return int((self.window or 0) * self.gauge.rate * doubt)

    @property
    def goal(self) -> int:
        """The characters down to which chat is compacted, once it has to be."""
        return min(self.limit, int(self.low_water * (self.window or 0) * self.gauge.rate))

    def summary(self) -> int:
        """The most characters of a summary."""
        share = SUMMARY_SHARE * (self.window or 0) * self.gauge.rate
        return max(LEAST_CHARS, min(self.summary_chars, int(share)))


def fit(session: Session, context: RenderContext, budget: WindowBudget) -> Decision | None:
    """Bring the prompt into the window; returns the decision, None where it is inside already."""
    if not budget.window or _chars(session, budget) <= budget.limit:
        return None
    bound = first_free(session.branch.conversation) > 0
    if bound and _chars(session, budget) <= budget.bearable:
        # It may still go through, and what sealed reasoning is bound to had better stay.
        return None
    compaction = None
    held = messages_held(context, budget.goal)
    until = _cut_point(session, budget, held)
    if until:
        compaction = _compact(session, context, until, budget, held)
    for number in range(PASSES):
        if _chars(session, budget) > budget.limit:
            _trim(session, context, budget, held if number < PASSES - 1 else frozenset())
    if bound:
        _close_turn(session)
    if budget.unseals:
        unseal(context, 0)
    return Decision("rebase", "window", 0, compaction=compaction)


def _chars(session: Session, budget: WindowBudget) -> int:
    """The prompt's length; images count by their tokens."""
    around = budget.fixed_chars + session.branch.edits.chars
    tokens = budget.gauge.prompt(session.branch.conversation, around)
    return int(tokens * budget.gauge.rate)


def _kept(session: Session) -> tuple[int, int]:
    """The newest user message, and the last message that may be the first to stay."""
    items, flight = session.branch.conversation.items, session.branch.conversation.last_assistant()
    user = next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "user"), -1)
    ends = (i for i in range(len(items) - 1, -1, -1) if items[i].kind not in ("result", "opaque"))
    last = next(ends, -1)
    if flight > user and any(item.kind == "result" for item in items[flight + 1 :]):
        last = min(last, flight)
    return user, last


def _cut_point(session: Session, budget: WindowBudget, held: frozenset[int]) -> int:
    """The first message that stays: the earliest with which the goal is reached, else the last
    that may be first. 0 where nothing can go."""
    conversation = session.branch.conversation
    user, last = _kept(session)
    done, _ = session.branch.edits.compacted
    excess = _chars(session, budget) + budget.summary() - budget.goal
    best = 0
    for index in range(last + 1):
        item = conversation.items[index]
        if index > done and item.kind in ("user", "assistant", "context") and not item.void:
            best = index
            if excess <= 0:
                break
        excess -= conversation.parts[index].chars if index != user and index not in held else 0
    return best


def _compact(
    session: Session, context: RenderContext, until: int, budget: WindowBudget, held: frozenset[int]
) -> str:
    conversation = session.branch.conversation
    done, previous = session.branch.edits.compacted
    user, _ = _kept(session)
    summed_up = host_compaction(session)
    first = max(done, 1 if summed_up else 0)
    covered = [conversation.items[i] for i in range(first, until) if i != user]
    if all(item.kind == "opaque" for item in covered):
        # The model has seen none of it, so there is nothing to sum up.
        return previous or ""
    for index in range(until):
        stays = index == user or index in held
        if not stays and conversation.parts[index].form != "dropped":
            _leave_out(session, context, index)
    hold(context, held, until)
    _stand_alone(context, until)
    pinned = sorted(n for n in session.branch.sets.pins if not conversation.holders.get(n))
    request = SummaryRequest("window", budget.summary(), budget.time_ms)
    made = compact(
        session,
        covered,
        request,
        first=turn_number(session, covered[0]),
        previous=previous or summed_up,
        pinned=pinned,
    )
    block = text_block(made.summary)
    insert: Insert = {"kind": "user", "blocks": [block], "until": until, "object": made.id}
    session.branch.edits.summarise(insert)
    return made.id


def _leave_out(session: Session, context: RenderContext, index: int) -> None:
    part = context.conversation.parts[index]
    context.branch.release(index)
    gone = Part("dropped", [], part.subject, part.version, None, part.text_hash)
    context.render(index, gone)
    session.branch.edits.drops.add(index)


def _stand_alone(context: RenderContext, until: int) -> None:
    """What leaned on content that is gone says itself what it said by reference."""
    conversation = context.conversation
    flight = conversation.last_assistant()
    for index in range(until, len(conversation)):
        part = conversation.parts[index]
        if part.base is None or part.base >= until or conversation.parts[part.base].shows:
            continue
        if part.form == "note":
            ordinal = conversation.parts[part.base].subject
            blocks = None if ordinal is None else [text_block(wording.no_longer_above(ordinal))]
            context.render(index, Part("note", blocks))
        elif part.form == "diff" or index > flight:
            placed = NewResult(index, part.subject, part.version, part.text_hash)
            context.render(index, full_part(conversation.items[index], placed))
        else:
            context.render(index, reference_part(context, index))
    conversation.find_references()


def _trim(
    session: Session, context: RenderContext, budget: WindowBudget, spared: frozenset[int]
) -> None:
    """Cut the largest texts in the middle until the prompt fits, but for those of `spared`."""
    conversation = context.conversation
    for index, item in enumerate(conversation.items):
        if item.kind == "assistant" and _chars(session, budget) > budget.limit:
            _fold_arguments(context, index)
    parts = conversation.parts
    wide = [i for i in range(len(parts)) if i not in spared and _may_trim(session, i)]
    sizes = {i: parts[i].chars for i in wide}
    level = _level(list(sizes.values()), _chars(session, budget) - budget.limit)
    for index, size in sizes.items():
        if size > max(LEAST_CHARS, level):
            _trim_message(session, context, index, max(LEAST_CHARS, level), budget)


def _may_trim(session: Session, index: int) -> bool:
    conversation = session.branch.conversation
    is_text = conversation.items[index].kind in ("user", "result")
    return is_text and conversation.parts[index].form != "dropped"


def _level(sizes: list[int], over: int) -> int:
    """The size to which the largest must shrink so that all together lose `over`."""
    ordered = sorted(sizes, reverse=True)
    total = 0
    for count, size in enumerate(ordered, start=1):
        total += size
        following = ordered[count] if count < len(ordered) else 0
        if total - count * following >= over:
            return max(0, (total - over) // count)
    return 0


def _trim_message(
    session: Session, context: RenderContext, index: int, chars: int, budget: WindowBudget
) -> None:
    conversation = context.conversation
    item, part = conversation.items[index], conversation.parts[index]
    ordinal = part.subject
    if ordinal is None:
        request = SummaryRequest("window", budget.summary(), budget.time_ms)
        first = turn_number(session, item)
        ordinal = compact(session, [item], request, first=first).ordinal
    label = [text_block(wording.handle(ordinal))] if item.kind == "result" else []
    blocks = [*label, *trimmed(item, chars, ordinal)]
    form = "full" if part.shows else part.form
    context.render(index, Part(form, blocks, part.subject, part.version))


def trimmed(item: Item, chars: int, ordinal: int) -> list[Block]:
    """The blocks of a message within so many characters: images go before text does."""
    texts = [n for n, block in enumerate(item.blocks) if block.get("text")]
    images = [n for n, block in enumerate(item.blocks) if block.get("type") == "image"]
    gone = len(images) * IMAGE_CHARS > chars // 2
    left = chars - (0 if gone else len(images) * IMAGE_CHARS)
    text = "\n".join(str(item.blocks[n]["text"]) for n in texts)
    kept: list[Block] = [{"keep": n} for n in texts]
    if len(text) > left:
        kept = [text_block(_shortened(text, left, ordinal))]
    if gone and images:
        return [*kept, text_block(wording.images_left_out(len(images)))]
    return [*kept, *({"keep": n} for n in images)] or [text_block(wording.handle(ordinal))]


def _shortened(text: str, chars: int, ordinal: int) -> str:
    """A text with beginning and end, and a line that says where its middle is to be had."""
    half = max(1, (chars - MARKER_CHARS) // 2)
    if len(text) <= chars or 2 * half >= len(text):
        return text
    marker = wording.left_out(ordinal, half, len(text) - half, len(text))
    return text[:half] + marker + text[len(text) - half :]


def _fold_arguments(context: RenderContext, index: int) -> None:
    conversation = context.conversation
    item, part = conversation.items[index], conversation.parts[index]
    if part.form not in ("host", "folded"):
        return
    arguments = ("old", "argument")
    slots = {p.slot for p in pieces_of(item) if p.kind in arguments and not p.sealed}
    told = slots | {*part.slots}
    blocks = folded_blocks(item, told, context.label, context.aside) if slots else None
    if blocks is not None:
        context.render(index, Part("folded", blocks, slots=tuple(sorted(told))))


def _close_turn(session: Session) -> None:
    """A word of ours after the newest results: sealed reasoning of the turn binds no more."""
    end = len(session.branch.conversation)
    ours: Insert = {"kind": "user", "blocks": [text_block(wording.go_on())], "ends": True}
    session.branch.edits.insert(end, ours)
