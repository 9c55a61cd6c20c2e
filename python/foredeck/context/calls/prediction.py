"""What the provider's cache will do with a prompt: said beforehand, compared with its report."""

from __future__ import annotations

from dataclasses import replace

from foredeck.context.cache.cached import HEAD, MINIMUM_TOKENS, NOTHING, marker_id
from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.costs import CallCosts
from foredeck.context.calls.deciding import DecisionBasis
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.plan.plan import Plan
from foredeck.context.rendering.layout import RenderContext
from foredeck.model.call_values import CachePrediction, PromptTokens

KEEP_CALLS = 5
"""For how many calls a marker stays where it is, if it can, before its place is chosen again: that
costs asking the policy once more."""

HOST_RESERVES = 16_384
"""Tokens of the window that the host keeps free: it compacts a longer chat."""

HOST_KEEPS = 20_000 + 1_500
"""Tokens of the chat that it then keeps, and of the summary before them."""


def predict_cache(call: CallInProgress, basis: DecisionBasis) -> CachePrediction:
    """What the provider's cache will do with the call, and where one more marker goes."""
    changed_from = call.first_changed if call.keeps_bytes else 0
    before, soon = None, None
    if basis.costs.reach.markable:
        record = call.session.chat.branch_record
        if call.session.chat.branch.depth % KEEP_CALLS and changed_from >= call.first_new:
            before = record.cache.marked if record else None
        else:
            soon = basis.policy.first_to_go()
    prediction = foresee(call.context, basis.costs, changed_from, soon, before=before)
    model = call.request.model
    return prediction._replace(
        reported=call.reported,
        warmed_ms=call.request.warmed_ms,
        plain=foresee_plain(call.context, basis.costs, model.window if model else None),
    )


def foresee(
    context: RenderContext,
    costs: CallCosts,
    changed_from: int,
    first_to_go: int | None,
    *,
    before: int | None,
) -> CachePrediction:
    """What is expected of the cache, without what the provider says of it.

    `changed_from`: the first message that does not go out as it did; `first_to_go`: the first
    that soon may not; `before`: where the marker is that is to stay, if it can.
    """
    reach = costs.reach
    hit = reach.hit(min(changed_from, costs.first_new))
    marked = reach.mark(hit, first_to_go, rebased=changed_from < costs.first_new)
    if before is not None and before in reach.markable and before <= hit and hit >= reach.nearest:
        marked = before
    read, written, fresh = _tokens_of(costs, *_own(context, costs, hit))
    return CachePrediction(reach.rule, hit, read, written, fresh, marked)


def foresee_plain(context: RenderContext, costs: CallCosts, window: int | None) -> PromptTokens:
    """What is expected of the cache for what the host alone would have sent: every message as it
    has it, without our tools, their calls and results, and without our cache marker.

    Where that does not fit into the window any more, the host would have compacted it: the branch's
    ledger notes how much of the chat is left out from here on.
    """
    plan, gauge, branch = context.plan, context.gauge, context.branch
    fixed = costs.fixed_chars - min(costs.own_chars, costs.fixed_chars)
    chat = plan.chars_host - plan.chars_own
    left = min(branch.ledger.left, chat)
    images, image_tokens = gauge.images(plan)
    pictured = image_tokens - gauge.tokens(images * IMAGE_CHARS)
    total = gauge.tokens(fixed + chat - left) + pictured
    new = plan.items[costs.first_new if costs.first_new >= costs.reach.nearest else HEAD :]
    after = sum(item.chars - item.own_chars for item in new)
    is_compacted = window is not None and total > default_host_limit(window)
    if window is not None and is_compacted:
        kept = min(HOST_KEEPS, window // 2 - window // 8) * gauge.rate
        after = max(after, min(chat - left, int(kept)))
        left = chat - after
        total = gauge.tokens(fixed + after) + pictured
    branch.ledger = replace(branch.ledger, left=left)
    is_warm = costs.warm and costs.reach.rule != "none"
    read = max(0, total - gauge.tokens(after)) if is_warm else 0
    return PromptTokens(*_tokens_of(costs, total, read if read >= MINIMUM_TOKENS else 0))


def default_host_limit(window: int) -> int:
    """Above how many tokens the host compacts the chat by default."""
    return window - min(HOST_RESERVES, window // 8)


def _tokens_of(costs: CallCosts, total: int, read: int) -> tuple[int, int, int]:
    """Tokens read, written, and of neither kind."""
    rest = total - read
    pays_for_writing = costs.reach.rule == "markers" or costs.prices.write > 1
    written = rest if pays_for_writing and total >= MINIMUM_TOKENS else 0
    return read, written, rest - written


def marker_of(plan: Plan, cache: CachePrediction) -> str:
    """Id of the tool call whose result the marker of a call is on, empty for none."""
    end = cache.marked
    return "" if end is None else marker_id(plan, end)


def _own(context: RenderContext, costs: CallCosts, hit: int) -> tuple[int, int]:
    """Of the whole prompt, and of the prefix that is found."""
    plan, gauge = context.plan, context.gauge
    total = gauge.prompt(plan, costs.around_chars)
    if hit == NOTHING:
        return total, 0
    after = plan.chars_sent - plan.chars_before(hit)
    if hit == HEAD:
        after += costs.head_chars
    read = total - gauge.tokens(after)
    return total, read if read >= MINIMUM_TOKENS else 0
