"""The last guard of the window: compacts or cuts what folding cannot fit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from foredeck.context import wording
from foredeck.context.compactions import SummaryRequest, compact, turn_number
from foredeck.context.messages.items import IMAGE_CHARS, Block, Item, text_block
from foredeck.context.plan.ops import MessageSpan, Op, Say, omit
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.rebase import WaterMarks, first_mutable
from foredeck.context.rendering import RenderContext, full, referring, render_dependents
from foredeck.context.rewriting.folding import fold_slots, strip_reasoning
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.state.chat import Compactions, host_compaction
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import Model
from foredeck.model.call_values import Decision
from foredeck.model.messages import exchange_of

AFTER_REFUSAL = 0.9
"""Share of a refused prompt that counts as the window."""

LEAST_SHARE = 0.25
"""Below this share of the window a host would compact all the time."""

STEP_SHARE, MOST_STEP = 0.15, 13_000
"""From the high-water mark to the host's limit, room for an answer and its results."""

SUMMARY_SHARE = 0.1
"""Largest share of the window for a summary."""

DOUBT = 1.25
"""Token estimates may be a fifth too high."""

LEAST_CHARS = 400


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """What one call's prompt must fit into."""

    context: RenderContext
    window: int
    """In tokens."""
    fixed_chars: int
    """Characters of system prompt and tools."""
    low_water: float
    time_ms: int
    strips_reasoning: bool = False
    refused: bool = False

    @property
    def limit(self) -> int:
        """Most characters that may go out."""
        return int(room(self.window) * self.context.gauge.rate)

    @property
    def bearable(self) -> int:
        """Characters still worth a try, as counts are estimates."""
        gauge = self.context.gauge
        doubt = 1.0 if self.refused or gauge.calls else DOUBT
        return int(self.window * gauge.rate * doubt)

    @property
    def goal(self) -> int:
        """Characters to compact down to."""
        return min(self.limit, int(self.low_water * self.window * self.context.gauge.rate))

    @property
    def summary(self) -> int:
        """Most characters of a summary."""
        share = SUMMARY_SHARE * self.window * self.context.gauge.rate
        return max(LEAST_CHARS, min(self.context.summary_chars, int(share)))

    @property
    def chars(self) -> int:
        """Characters of the prompt; images count by their tokens."""
        plan, gauge = self.context.plan, self.context.gauge
        return int(gauge.prompt(plan, self.fixed_chars + plan.chars_said) * gauge.rate)

    @property
    def excess(self) -> int:
        """Characters over the limit."""
        return self.chars - self.limit


def usable_window(compactions: Compactions, model: Model | None, gauge: Gauge) -> int | None:
    """The model's window in tokens, reduced by refusals; None if unknown."""
    if model is None or model.window is None:
        return None
    refused = [
        fields["refused"]["chars"]
        for fields in compactions.values()
        if (fields.get("refused") or {}).get("model") == model.name
    ]
    return min([model.window, *(int(AFTER_REFUSAL * gauge.tokens(chars)) for chars in refused)])


def room(window: int) -> int:
    """The window without the answer's share."""
    return window - min(window // 8, 8192)


def host_limit(window: int, reserve: int) -> int | None:
    """The largest prompt a host leaves alone; None if it should not compact at all."""
    limit = window - reserve
    return limit if limit >= LEAST_SHARE * window else None


def marks_below(high: float, model: Model | None, window: int | None) -> WaterMarks:
    """Marks low enough that content goes before the host compacts, at most at `high`."""
    marks = WaterMarks(high)
    if model is None or not (model.window and model.reserve and window):
        return marks
    limit = host_limit(model.window, model.reserve)
    if limit is None:
        return marks
    return WaterMarks(min(high, (limit - min(STEP_SHARE * limit, MOST_STEP)) / window))


def fit(budget: WindowBudget, replacer: Replacer | None) -> Decision | None:
    """Makes the prompt fit; None if it stays as it is. `replacer` goes before a summary."""
    if budget.excess <= 0:
        return None
    context, plan = budget.context, budget.context.plan
    bound = first_mutable(plan) > 0
    if bound and budget.chars <= budget.bearable:
        # It may still go through, and what sealed reasoning is bound to had better stay.
        return None
    placed = [] if replacer is None else replacer.place_until(lambda: budget.excess <= 0)
    compaction = None
    if budget.excess > 0:
        pinned_messages = messages_held(context, budget.goal)
        until = _cut_point(budget, pinned_messages)
        compaction = _compact(budget, until, pinned_messages) if until else None
        trim(budget, pinned_messages)
        if bound:
            # A message of ours after the newest results ends the turn: its reasoning binds no more.
            plan.say(len(plan), Say("turn_end", [text_block(wording.go_on())]))
    # The first messages may be others now: nothing sealed after them is valid any more.
    if budget.strips_reasoning:
        strip_reasoning(context, 0)
    covers = tuple(cover.stand_in.id for cover in placed)
    return Decision("rebase", "window", 0, compaction=compaction, covers=covers)


def _cut_point(budget: WindowBudget, held: frozenset[int]) -> int:
    """The first message to keep; 0 if nothing can go."""
    plan = budget.context.plan
    question, covered, (compacted_until, _) = plan.newest_question, plan.covered, plan.compacted
    excess = budget.chars + budget.summary - budget.goal
    best = 0
    for index in range(last_cut_point(plan) + 1):
        item = plan.items[index]
        # What covers a span covers all of it, so no cut goes through one.
        is_inside = any(first < index < until for first, until in covered)
        begins = item.kind in ("user", "assistant", "context") and not item.unsent
        if index > compacted_until and begins and not is_inside:
            best = index
            if excess <= 0:
                break
        if index != question and index not in held:
            excess -= plan.chars[index]
    return best


def last_cut_point(plan: Plan) -> int:
    items, flight = plan.items, plan.last_assistant()
    ends = (i for i in range(len(items) - 1, -1, -1) if items[i].kind not in ("result", "opaque"))
    last = next(ends, -1)
    answered = any(item.kind == "result" for item in items[flight + 1 :])
    return min(last, flight) if answered and flight > plan.newest_question else last


def _compact(budget: WindowBudget, until: int, held: frozenset[int]) -> str:
    """Covers the messages before `until`; returns the summary's object id."""
    context, plan = budget.context, budget.context.plan
    compacted_until, previous = plan.compacted
    question, summed_up = plan.newest_question, host_compaction(context.chat)
    # A summary that begins the list is not summed up: the new one names it as the one before.
    first = max(compacted_until, 1 if summed_up else 0)
    covered = [plan.items[i] for i in range(first, until) if i != question]
    if all(item.kind == "opaque" for item in covered):
        # The model has seen none of it, so there is nothing to sum up.
        return previous or ""
    for index in range(until):
        stays = index == question or index in held
        if not stays and (not plan.is_omitted(index) or plan.cover_at(index)):
            context.branch.release(index)
            plan.write(index, omit(plan.ops[index].shown))
    hold(context, held, until)
    gone = [index for index in range(until) if not plan.ops[index].shows]
    render_dependents(context, gone, until)
    compacted = compact(
        context.objects,
        context.chat,
        covered,
        SummaryRequest("window", budget.summary, budget.time_ms),
        first=turn_number(context.chat, covered[0]),
        previous=previous or summed_up,
        pinned=sorted(n for n in context.sets.pins if not plan.holders.get(n)),
    )
    summary = [text_block(compacted.summary)]
    plan.summarise(Say("summary", summary, MessageSpan(0, until), compacted.id))
    return compacted.id


# Pinned objects stay in full where the chat around them is compacted.
#
# A result cannot go out without its call: the answer that asked for it stays, and its other
# results as references.

PINNED_SHARE = 0.5
"""Share of the rest, since current work needs room."""


def messages_held(context: RenderContext, chars: int) -> frozenset[int]:
    """Messages with pinned objects that fit into `chars`, small ones first."""
    plan = context.plan
    messages: set[int] = set()
    holders = [plan.holders.get(ordinal) for ordinal in sorted(context.sets.pins)]
    newest = [indexes[-1] for indexes in holders if indexes]
    remaining = chars * PINNED_SHARE
    for index in sorted(newest, key=lambda i: (plan.items[i].chars, i)):
        remaining -= plan.items[index].chars
        if remaining < 0:
            break
        messages.update(exchange_of(plan.items, index))
    return frozenset(messages)


def hold(context: RenderContext, held: frozenset[int], until: int) -> None:
    """Renders pinned contents before `until` in full; folds the rest."""
    plan = context.plan
    for index in sorted(n for n in held if n < until):
        item, op = plan.items[index], plan.ops[index]
        if item.kind != "result":
            continue
        if op.subject not in context.sets.pins:
            if op.shows:
                context.branch.release(index)
            plan.write(index, referring(context, index))
        elif op.base is not None:
            plan.write(index, full(item, op.shown))


# Cutting long texts in the middle, where compacting chat was not enough.
#
# What is cut can be had by handle: of a result its own, any other message becomes an object
# first.

PASSES = 3
"""Attempts at cutting."""

MARKER_CHARS = 200


def trim(budget: WindowBudget, held: Collection[int]) -> None:
    """Cuts texts until the prompt fits, `held` ones last."""
    # Again where that was not enough: what an image counts depends on who counts.
    for number in range(PASSES):
        if budget.excess > 0:
            _trim_largest(budget, held if number < PASSES - 1 else ())


def _trim_largest(budget: WindowBudget, spared: Collection[int]) -> None:
    plan = budget.context.plan
    for index, item in enumerate(plan.items):
        if item.kind == "assistant" and budget.excess > 0:
            _fold_arguments(budget.context, index)
    sizes = {
        index: chars
        for index, chars in enumerate(plan.chars)
        if plan.items[index].kind in ("user", "result")
        and not (index in spared or plan.is_omitted(index))
    }
    level = max(LEAST_CHARS, _level(list(sizes.values()), budget.excess))
    for index, size in sizes.items():
        if size > level:
            _trim_message(budget, index, level)


def _level(sizes: list[int], over: int) -> int:
    ordered = sorted(sizes, reverse=True)
    total = 0
    for count, size in enumerate(ordered, start=1):
        total += size
        following = ordered[count] if count < len(ordered) else 0
        if total - count * following >= over:
            return max(0, (total - over) // count)
    return 0


def _fold_arguments(context: RenderContext, index: int) -> None:
    item, op = context.plan.items[index], context.plan.ops[index]
    arguments = ("old", "argument")
    slots = {p.slot for p in pieces_of(item) if p.kind in arguments and not p.sealed}
    if slots and op.form in ("host", "folded"):
        fold_slots(context, index, slots | {*op.folded})


def _trim_message(budget: WindowBudget, index: int, chars: int) -> None:
    context, plan = budget.context, budget.context.plan
    item, op = plan.items[index], plan.ops[index]
    assert op.form != "omitted"  # `_trim_largest` has left those out
    ordinal = op.subject
    texts = sum(1 for block in item.blocks if block.get("text"))
    if ordinal is None or (item.kind == "user" and texts > 1):
        request = SummaryRequest("window", budget.summary, budget.time_ms)
        first = turn_number(context.chat, item)
        ordinal = compact(context.objects, context.chat, [item], request, first=first).ordinal
    label = [text_block(wording.handle(ordinal))] if item.kind == "result" else []
    blocks = [*label, *trimmed(item, chars, ordinal)]
    form = "full" if op.shows else op.form
    plan.write(index, Op(form, blocks, op.shown and replace(op.shown, text_hash=None)))


def trimmed(item: Item, chars: int, ordinal: int) -> list[Block]:
    """A message's blocks in so many characters; images go first."""
    texts = [n for n, block in enumerate(item.blocks) if block.get("text")]
    images = [n for n, block in enumerate(item.blocks) if block.get("type") == "image"]
    drops_images = len(images) * IMAGE_CHARS > chars // 2
    room_left = chars - (0 if drops_images else len(images) * IMAGE_CHARS)
    text = "\n".join(str(item.blocks[n]["text"]) for n in texts)
    recipe: list[Block] = [{"keep": n} for n in texts]
    if len(text) > room_left:
        recipe = [text_block(_without_middle(text, room_left, ordinal))]
    if drops_images and images:
        return [*recipe, text_block(wording.images_left_out(len(images)))]
    return [*recipe, *({"keep": n} for n in images)] or [text_block(wording.handle(ordinal))]


def _without_middle(text: str, chars: int, ordinal: int) -> str:
    half = max(1, (chars - MARKER_CHARS) // 2)
    if len(text) <= chars or 2 * half >= len(text):
        return text
    marker = wording.left_out(ordinal, half, len(text) - half, len(text))
    return text[:half] + marker + text[len(text) - half :]
