"""What a call costs as it is, with nothing folded, and with a rebase. In tokens of input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foredeck.context.cache.cached import HEAD, NOTHING, CacheReach
from foredeck.context.cache.economics import (
    CollapsibleMessage,
    Ledger,
    Prices,
    PromptBill,
    RebaseOffer,
    RebaseThresholds,
    best_rebase,
)
from foredeck.context.cache.rebase import RebaseInputs, is_closing, may_change
from foredeck.context.plan.ops import PieceRef
from foredeck.context.state.branch import Branch
from foredeck.model.call_values import CHARS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What decides what the call at hand costs."""

    inputs: RebaseInputs
    prices: Prices
    first_new: int
    """How many messages were sent before."""
    fixed_chars: int
    """Characters around the messages: system prompt, tools."""
    own_chars: int
    """Those of them that are the definitions of our tools."""
    reach: CacheReach
    """What the provider's cache would find."""
    rewritten: int | None = None
    """From this message on the host has changed what it had sent before: these bytes are new to
    the provider whatever we do."""
    strips_reasoning: bool = False
    """Whether the wire lets reasoning of earlier turns be left out."""
    head_chars: int = 0
    """Characters of our own block before the chat."""

    @property
    def around_chars(self) -> int:
        """Characters around the host's messages in what goes out."""
        return self.fixed_chars + self.head_chars

    @property
    def warm(self) -> bool:
        """Whether the provider's cache may hold what was sent before."""
        return self.first_new > 0 and not self.inputs.lost

    def ledger_after(self, branch: Branch, changed_from: int) -> Ledger:
        """The branch's ledger after this call, if it changes from that message on."""
        plain, ours = _plain_bill(branch, self), _own_bill(branch, self, changed_from)
        return branch.ledger.after(self.prices, plain, ours)


def paying_rebase(
    branch: Branch,
    costs: CallCosts,
    thresholds: RebaseThresholds,
    messages: Sequence[CollapsibleMessage],
) -> RebaseOffer | None:
    """The rebase that pays at this call, by the rent that what may go has cost so far."""
    if not messages:
        return None
    if is_closing(branch.plan):
        thresholds = replace(thresholds, factor=thresholds.factor * thresholds.closing)
    so_far = costs.ledger_after(branch, costs.first_new)
    return best_rebase(messages, costs.prices, thresholds, so_far)


def priced(
    branch: Branch, costs: CallCosts, collapsible: Mapping[PieceRef, int]
) -> list[CollapsibleMessage]:
    """What may go, message by message in their order, as far back as bytes may change."""
    plan = branch.plan
    savings: dict[int, int] = {}
    rents: dict[int, float] = {}
    for ref, chars in collapsible.items():
        calls = branch.depth + 1 - branch.retention.collapsible[ref]
        saving = chars / CHARS_PER_TOKEN
        savings[ref.message] = savings.get(ref.message, 0) + chars
        rents[ref.message] = rents.get(ref.message, 0.0) + costs.prices.read * saving * calls
    before, allowed = plan.chars_before, may_change(plan, savings)
    found = max(costs.reach.hit(costs.first_new), HEAD)
    messages: list[CollapsibleMessage] = []
    for index in sorted(allowed):
        suffix = before(found) - before(max(min(costs.reach.hit(index), found), HEAD))
        saving = savings[index] / CHARS_PER_TOKEN
        messages.append(CollapsibleMessage(index, saving, rents[index], suffix / CHARS_PER_TOKEN))
    return messages


def _plain_bill(branch: Branch, costs: CallCosts) -> PromptBill:
    """With every message as the host has it, and without our tools and our cache marker."""
    plan, reach = branch.plan, costs.reach
    new = plan.items[costs.first_new if costs.first_new >= reach.nearest else HEAD :]
    total = max(0, plan.chars_host + costs.fixed_chars - costs.own_chars)
    warm = costs.warm and reach.rule != "none"
    return _bill(total, max(0, total - sum(item.chars for item in new)) if warm else 0)


def _own_bill(branch: Branch, costs: CallCosts, changed_from: int) -> PromptBill:
    """As it goes out, changed from a message on."""
    plan = branch.plan
    total = plan.chars_sent + costs.around_chars
    hit = costs.reach.hit(min(changed_from, costs.first_new))
    if hit == NOTHING:
        return _bill(total, 0)
    # The shortest prefix that a provider finds ends before our block.
    around = costs.fixed_chars if hit == HEAD else costs.around_chars
    return _bill(total, plan.chars_before(hit) + around)


def _bill(total: int, cached: int) -> PromptBill:
    return PromptBill(cached / CHARS_PER_TOKEN, (total - cached) / CHARS_PER_TOKEN)
