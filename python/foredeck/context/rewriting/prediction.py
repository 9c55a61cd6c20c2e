"""What the provider's cache will do with a prompt: said beforehand, compared with its report."""

from __future__ import annotations

from foredeck.context.cache.cached import HEAD, MINIMUM_TOKENS, NOTHING, marker_id
from foredeck.context.messages.conversation import Conversation
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.costs import CallCosts
from foredeck.model.call_values import CachePrediction

KEEP_CALLS = 5
"""For how many calls a marker stays where it is, if it can, before its place is chosen again: that
costs asking the policy once more."""


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
    that soon may not; `before`: where the marker stands that is to stay, if it can.
    """
    reach = costs.reach
    hit = reach.hit(min(changed_from, costs.first_new))
    marked = reach.mark(hit, first_to_go, rebased=changed_from < costs.first_new)
    if before is not None and before in reach.markable and before <= hit and hit >= reach.nearest:
        marked = before
    total, read = _tokens(context, costs, hit)
    rest = total - read
    pays_for_writing = reach.rule == "markers" or costs.prices.write > 1
    written = rest if pays_for_writing and total >= MINIMUM_TOKENS else 0
    return CachePrediction(reach.rule, hit, read, written, rest - written, marked)


def marker_of(conversation: Conversation, cache: CachePrediction) -> str:
    """Id of the tool call on whose result the marker of a call stands, empty for none."""
    end = cache.marked
    return "" if end is None else marker_id(conversation, end)


def _tokens(context: RenderContext, costs: CallCosts, hit: int) -> tuple[int, int]:
    """Of the whole prompt, and of the prefix that is found."""
    conversation, gauge = context.conversation, context.gauge
    total = gauge.prompt(conversation, costs.around_chars)
    if hit == NOTHING:
        return total, 0
    after = conversation.chars_sent - conversation.chars_before(hit)
    if hit == HEAD:
        after += costs.head_chars
    read = total - gauge.tokens(after)
    return total, read if read >= MINIMUM_TOKENS else 0
