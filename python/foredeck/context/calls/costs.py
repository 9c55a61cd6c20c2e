"""What a call costs as it is, with nothing folded, and with a rebase. In tokens of input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from foredeck.context.cache.cached import HEAD, NOTHING, CacheReach, reach_of
from foredeck.context.cache.economics import (
    CandidateMessage,
    Ledger,
    Prices,
    PromptBill,
    RebaseOffer,
    RebaseThresholds,
    best_rebase,
    declared_chars,
)
from foredeck.context.cache.rebase import (
    DEFAULT_TTL_S,
    RebaseInputs,
    is_cold,
    may_change,
    precedes_bound_turn,
)
from foredeck.context.calls.call import CallInProgress
from foredeck.context.rewriting.foldable import Fold
from foredeck.context.rewriting.refresh import Refresh
from foredeck.context.rewriting.replacing import Cover
from foredeck.context.state.chat import Branch
from foredeck.context.state.request import Model
from foredeck.model.call_values import CHARS_PER_TOKEN

Candidate = Fold | Refresh | Cover
"""What can change at a rebase: where it is (`ref`), and how many characters that saves."""


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


def rebase_inputs(call: CallInProgress) -> RebaseInputs:
    """What makes a rebase free, or necessary."""
    session, request = call.session, call.request
    # On whichever branch: the provider's cache knows no branches, and they share a beginning.
    model, last = request.model, session.chat.newest_record
    last_ms = max(last.time_ms, request.warmed_ms) if last else None
    last_model = last.model.name if last else ""
    around = session.frame.chars + session.chat.branch.plan.head_chars
    return RebaseInputs(
        cold=is_cold(request.time_ms, last_ms, _ttl_s(call)),
        model_changed=bool(model and last_model and last_model != model.name),
        history_replaced=call.alignment.replaced,
        tokens=call.gauge.prompt(session.chat.branch.plan, around),
        window=call.window,
        layout_changed=call.layout_changed,
    )


def call_costs(call: CallInProgress, inputs: RebaseInputs) -> CallCosts:
    """What decides what a call costs, once its head is written."""
    request, frame = call.request, call.session.frame
    return CallCosts(
        inputs,
        request.model.prices if request.model else Prices(),
        call.first_new,
        frame.chars,
        declared_chars(frame.tools, call.settings.definition_chars),
        _reach(call, warm=call.first_new > 0 and not inputs.lost),
        _first_rewritten(call),
        request.wire.thinking,
        call.session.chat.branch.plan.head_chars,
    )


def paying_rebase(
    branch: Branch,
    costs: CallCosts,
    thresholds: RebaseThresholds,
    messages: Sequence[CandidateMessage],
) -> RebaseOffer | None:
    """The rebase that pays at this call, by the rent that what may go has cost so far."""
    if not messages:
        return None
    if precedes_bound_turn(branch.plan):
        thresholds = replace(thresholds, factor=thresholds.factor * thresholds.closing)
    # As if this call changed nothing: the guard asks what a rebase would add to that.
    so_far = costs.ledger_after(branch, costs.first_new)
    return best_rebase(messages, costs.prices, thresholds, so_far)


def priced(
    branch: Branch, costs: CallCosts, candidates: Iterable[Candidate]
) -> list[CandidateMessage]:
    """What may go, message by message in their order, as far back as bytes may change."""
    plan = branch.plan
    savings: dict[int, int] = {}
    rents: dict[int, float] = {}
    for candidate in candidates:
        ref = candidate.ref
        calls = branch.depth + 1 - branch.retention.candidates[ref]
        saving = candidate.saving / CHARS_PER_TOKEN
        savings[ref.message] = savings.get(ref.message, 0) + candidate.saving
        rents[ref.message] = rents.get(ref.message, 0.0) + costs.prices.read * saving * calls
    before, allowed = plan.chars_before, may_change(plan, savings)
    found = max(costs.reach.hit(costs.first_new), HEAD)
    messages: list[CandidateMessage] = []
    for index in sorted(allowed):
        suffix = before(found) - before(max(min(costs.reach.hit(index), found), HEAD))
        saving = savings[index] / CHARS_PER_TOKEN
        messages.append(CandidateMessage(index, saving, rents[index], suffix / CHARS_PER_TOKEN))
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


def _reach(call: CallInProgress, *, warm: bool) -> CacheReach:
    """What the provider's cache would find of the branch."""
    request, branch = call.request, call.session.chat.branch
    model = request.model or Model("", "")
    branch.cache_entries.warm(request.warmed_ms)
    rule = model.cache if model.prices.cached else "none"
    if call.settings.cache_rule and rule != "none":
        rule = call.settings.cache_rule
    return reach_of(
        rule,
        branch.plan,
        branch.cache_entries.alive(request.time_ms, _ttl_s(call)),
        start=call.first_new,
        warm=warm,
        marks=model.marks and call.keeps_bytes,
    )


def _first_rewritten(call: CallInProgress) -> int | None:
    """Where the host has changed what it had sent before: `first_new`, or None where it has not."""
    known = call.session.chat.log.known
    rewritten = any(item.key.address in known for item in call.items[call.first_new :])
    return call.first_new if rewritten else None


def _ttl_s(call: CallInProgress) -> float:
    """For how long the provider keeps what is not used again, in seconds."""
    if call.settings.cache_ttl_s is not None:
        return call.settings.cache_ttl_s
    model = call.request.model
    return (model.cache_ttl_s if model else None) or DEFAULT_TTL_S
