"""The block before the chat: when it is written, and how long it may be.

It stands before everything, so a byte of it that changes makes every message uncached. It is
written at a session's first call, and again only where nothing of the prompt is cached anyway or
all of it is rewritten. In between it is what the call records say.
"""

from __future__ import annotations

from foredeck.context.cache.economics import Prices
from foredeck.context.cache.rebase import RebaseInputs, first_free
from foredeck.context.calls.call import CallInProgress
from foredeck.context.head.budget import chars_of
from foredeck.context.head.composing import compose
from foredeck.context.messages.items import text_block

HORIZON_CALLS = 20
"""For how many calls a longer head is paid for in advance, when it is asked whether the session
can: so many are common from one pause to the next."""


def rebuild_head(call: CallInProgress, inputs: RebaseInputs) -> bool:
    """Write the head again where that costs nothing; returns whether it has changed."""
    is_free = call.first_new == 0 or inputs.lost
    if not is_free or not call.keeps_bytes or first_free(call.context.conversation):
        return False
    return _put(call, _affordable(call))


def replace_head(call: CallInProgress) -> None:
    """Write the head again, no longer than it could be, since all that follows was rewritten."""
    if call.keeps_bytes:
        _put(call, _before(call) or call.settings.head.least)


def _put(call: CallInProgress, tokens: int) -> bool:
    edits, model = call.context.branch.edits, call.request.model
    limit = chars_of(tokens, model.window if model else None)
    text = compose(call.sections, limit) if call.sections else ""
    standing = edits.head
    if text == (standing["blocks"][0]["text"] if standing else ""):
        return False
    head = {"kind": "user", "blocks": [text_block(text)], "head": tokens}
    edits.put_head(head if text else None)
    return True


def _before(call: CallInProgress) -> int:
    """How many tokens the head could have, on whichever branch it was written last."""
    record = call.session.newest_record
    return 0 if record is None else min(record.head_tokens, call.settings.head.most)


def _affordable(call: CallInProgress) -> int:
    """More than before as long as the session stays within what it may cost, else the least."""
    budget, before = call.settings.head, _before(call)
    ledger, model = call.session.branch.ledger, call.request.model
    if not ledger.plain:
        # Nothing is known of the cost, as after the host's compaction.
        return before or budget.least
    prices = model.prices if model else Prices()
    longer = budget.next(before)
    price = longer * (prices.write + HORIZON_CALLS * prices.read)
    return longer if ledger.allows(price, call.settings.rebase.thresholds) else budget.least
