"""The last guard of the context window: what no folding brings inside is compacted or cut.

The newest user message and the calls in flight stay whatever happens; of a text that alone is
larger than the window, beginning and end stay.
"""

from __future__ import annotations

from foredeck.context import wording
from foredeck.context.cache.rebase import first_free
from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import text_block
from foredeck.context.messages.parts import Part
from foredeck.context.messages.says import MessageSpan, Say
from foredeck.context.rendering.layout import NewResult, RenderContext, full_part, reference_part
from foredeck.context.rewriting.folding import unseal
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.state.branch import Branch
from foredeck.context.state.session import Session
from foredeck.context.window.budget import WindowBudget
from foredeck.context.window.compactions import (
    SummaryRequest,
    compact,
    host_compaction,
    turn_number,
)
from foredeck.context.window.pinning import hold, messages_held
from foredeck.context.window.trimming import trim
from foredeck.model.call_values import Decision


def fit(
    session: Session,
    context: RenderContext,
    budget: WindowBudget,
    replacer: Replacer | None = None,
) -> Decision | None:
    """Bring the prompt into the window; returns the decision, None where it is inside already.

    What `replacer` has to put in place of chat goes before a summary does.
    """
    branch = context.branch
    if not budget.window or budget.excess(branch) <= 0:
        return None
    bound = first_free(branch.conversation) > 0
    if bound and budget.chars(branch) <= budget.bearable:
        # It may still go through, and what sealed reasoning is bound to had better stay.
        return None
    placed = []
    if replacer is not None:
        placed = replacer.place_until(lambda: budget.excess(branch) <= 0)
    stand_ins = tuple(made.stand_in.id for made in placed)
    if budget.excess(branch) <= 0:
        if budget.unseals:
            unseal(context, 0)
        return Decision("rebase", "window", 0, stand_ins=stand_ins)
    held = messages_held(context, budget.goal)
    until = _cut_point(branch, budget, held)
    compaction = _compact(session, context, until, budget, held) if until else None
    trim(session, context, budget, held)
    if bound:
        # A word of ours after the newest results ends the turn: its reasoning binds no more.
        ended = Say("turn_end", [text_block(wording.go_on())])
        branch.edits.insert(len(branch.conversation), ended)
    # Cutting may have changed the first messages: nothing sealed after them is valid any more.
    if budget.unseals:
        unseal(context, 0)
    return Decision("rebase", "window", 0, compaction=compaction, stand_ins=stand_ins)


def _cut_point(branch: Branch, budget: WindowBudget, held: frozenset[int]) -> int:
    """The first message that stays: the earliest with which the goal is reached, else the last
    that may be first. 0 where nothing can go."""
    conversation = branch.conversation
    question = _newest_question(conversation)
    done, _ = branch.edits.compacted
    excess = budget.chars(branch) + budget.summary - budget.goal
    stretches = branch.edits.replaced
    best = 0
    for index in range(last_cut_point(conversation) + 1):
        item = conversation.items[index]
        if any(first < index < until for first, until in stretches):
            pass  # What stands for a stretch stands for all of it.
        elif index > done and item.kind in ("user", "assistant", "context") and not item.void:
            best = index
            if excess <= 0:
                break
        if index != question and index not in held:
            excess -= conversation.parts[index].chars
    return best


def _newest_question(conversation: Conversation) -> int:
    """The newest user message, -1 where there is none."""
    items = conversation.items
    return next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "user"), -1)


def last_cut_point(conversation: Conversation) -> int:
    """The last message that may be the first to stay: results need the call that they answer."""
    items, flight = conversation.items, conversation.last_assistant()
    ends = (i for i in range(len(items) - 1, -1, -1) if items[i].kind not in ("result", "opaque"))
    last = next(ends, -1)
    answered = any(item.kind == "result" for item in items[flight + 1 :])
    return min(last, flight) if answered and flight > _newest_question(conversation) else last


def _compact(
    session: Session, context: RenderContext, until: int, budget: WindowBudget, held: frozenset[int]
) -> str:
    """Let a summary stand for the messages before `until`; the id of its object."""
    branch, conversation = context.branch, context.conversation
    done, previous = branch.edits.compacted
    question = _newest_question(conversation)
    summed_up = host_compaction(session)
    first = max(done, 1 if summed_up else 0)
    covered = [conversation.items[i] for i in range(first, until) if i != question]
    if all(item.kind == "opaque" for item in covered):
        # The model has seen none of it, so there is nothing to sum up.
        return previous or ""
    for index in range(until):
        stays = index == question or index in held
        if not stays and conversation.parts[index].form != "dropped":
            _leave_out(context, index)
    hold(context, held, until)
    _stand_alone(context, until)
    made = compact(
        session,
        covered,
        SummaryRequest("window", budget.summary, budget.time_ms),
        first=turn_number(session, covered[0]),
        previous=previous or summed_up,
        pinned=sorted(n for n in branch.sets.pins if not conversation.holders.get(n)),
    )
    summary = [text_block(made.summary)]
    branch.edits.summarise(Say("summary", summary, MessageSpan(0, until), made.id))
    return made.id


def _leave_out(context: RenderContext, index: int) -> None:
    part = context.conversation.parts[index]
    context.branch.release(index)
    gone = Part("dropped", [], part.subject, part.version, None, part.text_hash)
    context.render(index, gone)
    context.branch.edits.drop([index])


def _stand_alone(context: RenderContext, until: int) -> None:
    """What was said by reference to content that is gone is said in full, or not any more."""
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
            result = NewResult(index, part.subject, part.version, part.text_hash)
            context.render(index, full_part(conversation.items[index], result))
        else:
            context.render(index, reference_part(context, index))
    conversation.find_references()
