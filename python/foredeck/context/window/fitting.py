"""The last guard of the context window: what no folding brings inside is compacted or cut.

The newest user message and the calls in flight stay whatever happens; of a text that alone is
larger than the window, beginning and end stay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from foredeck.context import wording
from foredeck.context.cache.rebase import first_mutable
from foredeck.context.messages.items import IMAGE_CHARS, Block, Item, text_block
from foredeck.context.plan.ops import Keep, Omit, Rewrite
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.says import MessageSpan, Say
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.rendering.layout import RenderContext, full, referring
from foredeck.context.rewriting.folding import fold_slots, strip_reasoning
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.state.chat import Branch, host_compaction
from foredeck.context.window.budget import LEAST_CHARS, WindowBudget
from foredeck.context.window.compactions import (
    SummaryRequest,
    compact,
    turn_number,
)
from foredeck.model.call_values import Decision
from foredeck.model.messages import exchange_of


def fit(
    context: RenderContext, budget: WindowBudget, replacer: Replacer | None = None
) -> Decision | None:
    """Bring the prompt into the window; returns the decision, None where it is inside already.

    What `replacer` has to put in place of chat goes before a summary does.
    """
    branch = context.branch
    if not budget.window or budget.excess(branch) <= 0:
        return None
    bound = first_mutable(branch.plan) > 0
    if bound and budget.chars(branch) <= budget.bearable:
        # It may still go through, and what sealed reasoning is bound to had better stay.
        return None
    placed = []
    if replacer is not None:
        placed = replacer.place_until(lambda: budget.excess(branch) <= 0)
    stand_ins = tuple(made.stand_in.id for made in placed)
    if budget.excess(branch) <= 0:
        if budget.strips_reasoning:
            strip_reasoning(context, 0)
        return Decision("rebase", "window", 0, stand_ins=stand_ins)
    held = messages_held(context, budget.goal)
    until = _cut_point(branch, budget, held)
    compaction = _compact(context, until, budget, held) if until else None
    trim(context, budget, held)
    if bound:
        # A word of ours after the newest results ends the turn: its reasoning binds no more.
        ended = Say("turn_end", [text_block(wording.go_on())])
        branch.plan.say(len(branch.plan), ended)
    # Cutting may have changed the first messages: nothing sealed after them is valid any more.
    if budget.strips_reasoning:
        strip_reasoning(context, 0)
    return Decision("rebase", "window", 0, compaction=compaction, stand_ins=stand_ins)


def _cut_point(branch: Branch, budget: WindowBudget, held: frozenset[int]) -> int:
    """The first message that stays: the earliest with which the goal is reached, else the last
    that may be first. 0 where nothing can go."""
    plan = branch.plan
    question = _newest_question(plan)
    done, _ = branch.plan.compacted
    excess = budget.chars(branch) + budget.summary - budget.goal
    stretches = branch.plan.covered
    best = 0
    for index in range(last_cut_point(plan) + 1):
        item = plan.items[index]
        if any(first < index < until for first, until in stretches):
            pass  # What stands for a stretch stands for all of it.
        elif index > done and item.kind in ("user", "assistant", "context") and not item.void:
            best = index
            if excess <= 0:
                break
        if index != question and index not in held:
            excess -= plan.chars[index]
    return best


def _newest_question(plan: Plan) -> int:
    """The newest user message, -1 where there is none."""
    items = plan.items
    return next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "user"), -1)


def last_cut_point(plan: Plan) -> int:
    """The last message that may be the first to stay: results need the call that they answer."""
    items, flight = plan.items, plan.last_assistant()
    ends = (i for i in range(len(items) - 1, -1, -1) if items[i].kind not in ("result", "opaque"))
    last = next(ends, -1)
    answered = any(item.kind == "result" for item in items[flight + 1 :])
    return min(last, flight) if answered and flight > _newest_question(plan) else last


def _compact(context: RenderContext, until: int, budget: WindowBudget, held: frozenset[int]) -> str:
    """Let a summary cover the messages before `until`; the id of its object."""
    objects, chat = context.objects, context.chat
    branch, plan = context.branch, context.plan
    done, previous = branch.plan.compacted
    question = _newest_question(plan)
    summed_up = host_compaction(chat)
    first = max(done, 1 if summed_up else 0)
    covered = [plan.items[i] for i in range(first, until) if i != question]
    if all(item.kind == "opaque" for item in covered):
        # The model has seen none of it, so there is nothing to sum up.
        return previous or ""
    for index in range(until):
        stays = index == question or index in held
        if not stays and (not plan.is_omitted(index) or plan.cover_at(index)):
            _leave_out(context, index)
    hold(context, held, until)
    _stand_alone(context, until)
    made = compact(
        objects,
        chat,
        covered,
        SummaryRequest("window", budget.summary, budget.time_ms),
        first=turn_number(chat, covered[0]),
        previous=previous or summed_up,
        pinned=sorted(n for n in branch.sets.pins if not plan.holders.get(n)),
    )
    summary = [text_block(made.summary)]
    branch.plan.summarise(Say("summary", summary, MessageSpan(0, until), made.id))
    return made.id


def _leave_out(context: RenderContext, index: int) -> None:
    context.branch.release(index)
    context.plan.write(index, Omit(context.plan.ops[index].shown))


def _stand_alone(context: RenderContext, until: int) -> None:
    """What was said by reference to content that is gone is said in full, or not any more."""
    plan = context.plan
    flight = plan.last_assistant()
    for index in range(until, len(plan)):
        op = plan.ops[index]
        if op.base is None or op.base >= until or plan.ops[op.base].shows:
            continue
        if op.form == "note":
            gone = plan.ops[op.base].subject
            line = "" if gone is None else wording.no_longer_above(gone)
            plan.write(index, Rewrite("note", [text_block(line)]) if line else Keep(form="note"))
        elif op.form == "diff" or index > flight:
            plan.write(index, full(plan.items[index], op.shown))
        else:
            plan.write(index, referring(context, index))
    plan.find_references()


# Pinned objects stay in full where the chat around them is compacted.
#
# A result cannot stand without its call: the answer that asked for it stays, and its other
# results as references.

PINNED_SHARE = 0.5
"""Of what may stay, at most, for pinned objects: the work at hand needs room as well."""


def messages_held(context: RenderContext, chars: int) -> frozenset[int]:
    """The messages that stay for what is pinned, within `chars` characters; small objects first."""
    plan = context.plan
    found: set[int] = set()
    holders = [plan.holders.get(ordinal) for ordinal in sorted(context.sets.pins)]
    newest = [indexes[-1] for indexes in holders if indexes]
    left = chars * PINNED_SHARE
    for index in sorted(newest, key=lambda i: (plan.items[i].chars, i)):
        left -= plan.items[index].chars
        if left < 0:
            break
        found.update(exchange_of(plan.items, index))
    return frozenset(found)


def hold(context: RenderContext, held: frozenset[int], until: int) -> None:
    """What stays of the messages before `until`: pinned contents in full, the rest folded."""
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
"""Cutting is tried again where that was not enough: what an image counts depends on who counts."""

MARKER_CHARS = 200
"""What the line in the middle of a cut text takes, at most."""


def trim(context: RenderContext, budget: WindowBudget, held: Collection[int]) -> None:
    """Cut texts until the prompt fits. `held`: messages that are cut in the last resort only."""
    for number in range(PASSES):
        if budget.excess(context.branch) > 0:
            spared = held if number < PASSES - 1 else ()
            _trim_largest(context, budget, spared)


def _trim_largest(context: RenderContext, budget: WindowBudget, spared: Collection[int]) -> None:
    """Cut the largest texts, all to the same size, but for those of `spared`."""
    plan = context.plan
    for index, item in enumerate(plan.items):
        if item.kind == "assistant" and budget.excess(context.branch) > 0:
            _fold_arguments(context, index)
    sizes = {
        index: chars
        for index, chars in enumerate(plan.chars)
        if index not in spared and _may_trim(plan, index)
    }
    level = max(LEAST_CHARS, _level(list(sizes.values()), budget.excess(context.branch)))
    for index, size in sizes.items():
        if size > level:
            _trim_message(context, budget, index, level)


def _may_trim(plan: Plan, index: int) -> bool:
    is_text = plan.items[index].kind in ("user", "result")
    return is_text and not plan.is_omitted(index)


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


def _fold_arguments(context: RenderContext, index: int) -> None:
    """Fold the long arguments of an assistant message, whether they were used of late or not."""
    item, op = context.plan.items[index], context.plan.ops[index]
    arguments = ("old", "argument")
    slots = {p.slot for p in pieces_of(item) if p.kind in arguments and not p.sealed}
    if slots and op.form in ("host", "folded"):
        fold_slots(context, index, slots | {*op.folded})


def _trim_message(context: RenderContext, budget: WindowBudget, index: int, chars: int) -> None:
    plan, chat = context.plan, context.chat
    item, op = plan.items[index], plan.ops[index]
    assert not isinstance(op, Omit)  # `_may_trim` has left those out
    ordinal = op.subject
    texts = sum(1 for block in item.blocks if block.get("text"))
    if ordinal is None or (item.kind == "user" and texts > 1):
        request = SummaryRequest("window", budget.summary, budget.time_ms)
        first = turn_number(chat, item)
        ordinal = compact(context.objects, chat, [item], request, first=first).ordinal
    label = [text_block(wording.handle(ordinal))] if item.kind == "result" else []
    blocks = [*label, *trimmed(item, chars, ordinal)]
    form = "full" if op.shows else op.form
    plan.write(index, Rewrite(form, blocks, op.shown and replace(op.shown, text_hash=None)))


def trimmed(item: Item, chars: int, ordinal: int) -> list[Block]:
    """The blocks of a message within this many characters: images go before text does."""
    texts = [n for n, block in enumerate(item.blocks) if block.get("text")]
    images = [n for n, block in enumerate(item.blocks) if block.get("type") == "image"]
    drops_images = len(images) * IMAGE_CHARS > chars // 2
    left = chars - (0 if drops_images else len(images) * IMAGE_CHARS)
    text = "\n".join(str(item.blocks[n]["text"]) for n in texts)
    kept: list[Block] = [{"keep": n} for n in texts]
    if len(text) > left:
        kept = [text_block(_without_middle(text, left, ordinal))]
    if drops_images and images:
        return [*kept, text_block(wording.images_left_out(len(images)))]
    return [*kept, *({"keep": n} for n in images)] or [text_block(wording.handle(ordinal))]


def _without_middle(text: str, chars: int, ordinal: int) -> str:
    """A text with beginning and end, and a line that says where its middle is to be had."""
    half = max(1, (chars - MARKER_CHARS) // 2)
    if len(text) <= chars or 2 * half >= len(text):
        return text
    marker = wording.left_out(ordinal, half, len(text) - half, len(text))
    return text[:half] + marker + text[len(text) - half :]
