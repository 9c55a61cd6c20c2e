"""Lines of foredeck's own around the chat: the head before it, and those added to its end.

The head is written at the first call, then only when nothing is cached or everything is rewritten;
what the user has taken back leaves it at the next call.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import takewhile

from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.costs import is_carried
from foredeck.context.head import (
    HeadBudget,
    WithdrawingSection,
    chars_of,
    compose,
    is_head,
    said_by,
)
from foredeck.context.messages.items import text_block
from foredeck.context.plan.ops import Say
from foredeck.context.rebase import Prices, can_afford, first_mutable
from foredeck.context.rendering import RenderContext
from foredeck.context.state.facilities import LineSource, StandIn
from foredeck.context.state.request import Zone
from foredeck.context.wording import time_now
from foredeck.model.quoting import block
from foredeck.store.clock import MINUTE_MS

WITHDRAWN_LATER = (
    "Memory that you took back, or whose files have changed, leaves the prompt when this turn has "
    "ended: until then the model's signed reasoning depends on it."
)

HORIZON_CALLS = 20
"""Calls for which a longer head is paid in advance."""


def rebuild_head(call: CallInProgress, *, cache_lost: bool) -> bool:
    """Rewrites the head if free; returns whether it changed."""
    # It comes before everything, so a byte of it that changes makes every message uncached.
    is_free = call.first_new == 0 or cache_lost
    if not is_free or first_mutable(call.context.plan):
        return False
    return _put(call, _affordable(call))


def must_withdraw(call: CallInProgress) -> bool:
    """Whether the head must drop something now, and can."""
    head, inbox = call.context.plan.head, call.session.inbox
    if head is None or not _is_withdrawn(call, head):
        inbox.withdrawal_announced = False
        return False
    # What sealed reasoning of the turn under way is bound to leaves when that turn has ended.
    bound = first_mutable(call.context.plan) > 0
    if bound and not inbox.withdrawal_announced:
        inbox.user_messages.append(WITHDRAWN_LATER)
    inbox.withdrawal_announced = bound
    return not bound


def _is_withdrawn(call: CallInProgress, head: Say) -> bool:
    text = head.blocks[0]["text"]
    return any(
        isinstance(section, WithdrawingSection)
        and section.is_withdrawn(said_by(text, section.name))
        for section in call.facilities.sections
    )


def withdrawn_now(tokens: int, price: float) -> str:
    """Tells the user; `price` per million input tokens, 0: unknown."""
    cost = f", about {tokens * price / 1e6:.2f} in the model's currency" if price else ""
    return (
        "Memory that you took back, or whose files have changed, is out of the prompt; "
        f"{tokens:,} tokens are sent anew for it{cost}."
    )


def replace_head(call: CallInProgress) -> None:
    """Rewrites the head within its limit, as all after it was rewritten."""
    _put(call, _before(call) or _budget(call).least)


def _put(call: CallInProgress, tokens: int) -> bool:
    plan, model = call.context.plan, call.request.model
    limit = chars_of(tokens, model.window if model else None)
    has_head = call.layout.keeps_bytes and not _has_carried_head(call)
    sections = call.facilities.sections if has_head else ()
    text = compose(sections, limit) if sections else ""
    head = plan.head
    if text == (head.blocks[0]["text"] if head else ""):
        return False
    plan.put_head(Say("head", [text_block(text)], head_tokens=tokens) if text else None)
    return True


def _has_carried_head(call: CallInProgress) -> bool:
    """Whether the chat begins with the head of the session that it was carried from."""
    beginning = takewhile(lambda item: item.kind != "assistant", call.items)
    texts = (block.get("text") for item in beginning for block in item.blocks)
    return any(isinstance(text, str) and is_head(text) for text in texts)


def _budget(call: CallInProgress) -> HeadBudget:
    return HeadBudget(call.config.head.tokens, call.config.head.max_tokens)


def _before(call: CallInProgress) -> int:
    record = call.session.chat.newest_record
    return 0 if record is None else min(record.head_tokens, _budget(call).most)


def _affordable(call: CallInProgress) -> int:
    budget, before = _budget(call), _before(call)
    ledger, model = call.session.chat.branch.ledger, call.request.model
    if not ledger.baseline:
        # Nothing is known of the cost, as after the host's compaction.
        return before or budget.least
    prices = model.prices if model else Prices()
    longer = budget.next(before)
    price = longer * (prices.write + HORIZON_CALLS * prices.read)
    return longer if can_afford(call.config.rebase, ledger, price) else budget.least


def attach_time(context: RenderContext, first_new: int, zone: Zone | None, minutes: int) -> None:
    """Adds date, time and zone after a pause of `minutes`; 0: never.

    Only if the host sends a zone, so recorded sessions stay the same.
    """
    items = context.plan.items
    index = len(items) - 1
    if not minutes or zone is None or index < first_new or not context.takes_lines(index):
        return
    before = next((item.time_ms for item in reversed(items[:-1]) if item.time_ms), 0)
    is_pause = before and items[index].time_ms - before >= minutes * MINUTE_MS
    if items[index].kind == "user" and is_pause:
        context.attach(index, _line(items[index].time_ms, zone))


def _line(time_ms: int, zone: Zone) -> str:
    here = timezone(timedelta(minutes=zone.offset_minutes))
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)).astimezone(here)
    return time_now(at, zone.name)


def attach_continuation(call: CallInProgress) -> None:
    """Adds once a line to go on as before, after observations replaced messages."""
    context, decision = call.context, call.decision
    is_summary = call.items[0].kind == "context" and not is_carried(call)
    summed_up = call.alignment.replaced and is_summary
    has_replaced = decision.covers or decision.compaction or summed_up
    if call.facilities.stand_ins is None or not has_replaced:
        return
    index = len(context.plan) - 1
    if not context.takes_lines(index):
        return
    if context.plan.ops[index].form == "note":
        # An answer of our own tools. It has never had the line, since records could not say that
        # such a line had not gone out; prompts stay as they were.
        return
    newest = _newest(call)
    task, suggestion = ("", "") if newest is None else (newest.task, newest.suggestion)
    is_asked = context.plan.items[index].kind == "user"
    context.attach(index, continuation(task, suggestion, is_asked=is_asked))


def continuation(task: str, suggestion: str, *, is_asked: bool) -> str:
    """The line after a replacement; `task` and `suggestion` are the last notes."""
    what = (
        "Go on from there with what this message says: no comment on the notes is needed."
        if is_asked
        else "Go on with the work: nothing new was asked, and no comment is needed."
    )
    lines = [f"[foredeck] Notes above have just replaced older messages. {what}"]
    if task:
        lines.append(f"current task:\n{block(task)}")
    if suggestion:
        lines.append(f"suggested next:\n{block(suggestion)}")
    return "\n".join(lines)


def _newest(call: CallInProgress) -> StandIn | None:
    observed = call.context.plan.observed
    stand_ins = call.facilities.stand_ins.known() if call.facilities.stand_ins else ()
    used = [each for each in stand_ins if each.id in observed]
    return max(used, key=lambda each: observed[each.id].until, default=None)


def attach_lines(context: RenderContext, sources: Sequence[LineSource]) -> None:
    """Adds what a session has to say beside its chat."""
    index = len(context.plan) - 1
    if not context.takes_lines(index):
        return
    for source in sources:
        if lines := source.take_lines():
            context.attach(index, "\n".join(f"[foredeck] {text}" for text in lines))
