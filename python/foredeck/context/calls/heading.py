"""Writes the head: at the first call, then only when nothing is cached or everything is rewritten.

What the user has taken back leaves at the next call.
"""

from __future__ import annotations

from itertools import takewhile

from foredeck.context.calls.call import CallInProgress
from foredeck.context.head import WithdrawingSection, chars_of, compose, is_head, said_by
from foredeck.context.messages.items import text_block
from foredeck.context.plan.ops import Say
from foredeck.context.rebase import Prices, first_mutable

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
    if not is_free or not call.layout.keeps_bytes or first_mutable(call.context.plan):
        return False
    return _put(call, _affordable(call))


def must_withdraw(call: CallInProgress) -> bool:
    """Whether the head must drop something now, and can."""
    head, inbox = call.context.plan.head, call.session.inbox
    if head is None or not call.layout.keeps_bytes or not _is_withdrawn(call, head):
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
    if call.layout.keeps_bytes:
        _put(call, _before(call) or call.settings.head.least)


def _put(call: CallInProgress, tokens: int) -> bool:
    plan, model = call.context.plan, call.request.model
    limit = chars_of(tokens, model.window if model else None)
    sections = () if _has_carried_head(call) else call.facilities.sections
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


def _before(call: CallInProgress) -> int:
    record = call.session.chat.newest_record
    return 0 if record is None else min(record.head_tokens, call.settings.head.most)


def _affordable(call: CallInProgress) -> int:
    budget, before = call.settings.head, _before(call)
    ledger, model = call.session.chat.branch.ledger, call.request.model
    if not ledger.baseline:
        # Nothing is known of the cost, as after the host's compaction.
        return before or budget.least
    prices = model.prices if model else Prices()
    longer = budget.next(before)
    price = longer * (prices.write + HORIZON_CALLS * prices.read)
    return longer if call.settings.thresholds.allow(ledger, price) else budget.least
