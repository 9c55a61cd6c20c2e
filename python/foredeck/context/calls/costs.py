"""What a call costs as it is, with nothing folded, and with a rebase; what is then cached.

A rebase is decided by costs that count characters. A `CachePrediction` is counted by the
model's `Gauge`: call records keep it, to be compared with what the provider reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.context.calls.call import CallInProgress
from foredeck.context.messages.items import IMAGE_CHARS, Item
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.policy_run import PolicyRun
from foredeck.context.provider_cache import HEAD, MINIMUM_TOKENS, NOTHING, CacheReach, reach_of
from foredeck.context.rebase import (
    DEFAULT_TTL_S,
    CandidateMessage,
    Prices,
    RebaseReason,
    declared_chars,
    may_change,
)
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rewriting.current import Refresh
from foredeck.context.rewriting.folding import Fold
from foredeck.context.rewriting.replacing import Cover
from foredeck.context.state.chat import Branch
from foredeck.context.state.request import Model
from foredeck.model.call_values import (
    CHARS_PER_TOKEN,
    BranchCost,
    CachePrediction,
    CalledModel,
    PromptTokens,
)

Candidate = Fold | Refresh | Cover
"""What can change at a rebase: where it is (`ref`), and how many characters that saves."""


@dataclass(frozen=True, slots=True)
class CallCosts:
    """The figures that the cost of the call at hand follows from."""

    reason: RebaseReason | None
    """Why all may be rewritten: it costs nothing, or must be."""
    tokens: int
    """Estimate of the whole prompt as it would go out without a rebase."""
    prices: Prices
    fixed_chars: int
    """Characters around the messages: system prompt, tools."""
    own_chars: int
    """Those of them that are the definitions of our tools."""
    around_chars: int
    """Characters around the host's messages in what goes out: these, and our block before them."""
    reach: CacheReach
    """What the provider's cache would find of the messages that were sent before."""

    @property
    def cache_lost(self) -> bool:
        """Whether the provider's cache holds nothing of what was sent before."""
        return self.reason not in (None, "high-water")

    def ledger_after(self, branch: Branch, changed_from: int) -> BranchCost:
        """The branch's ledger after this call, if it changes from that message on."""
        plan, reach = branch.plan, self.reach
        # With every message as the host has it, and without our tools and our cache marker.
        total = max(0, plan.chars_host + self.fixed_chars - self.own_chars)
        new = sum(item.chars for item in self.new_without_marker(plan))
        warm = reach.warm and reach.rule != "none"
        plain = self._price(total, max(0, total - new) if warm else 0)
        # As it goes out. The shortest prefix that a provider finds ends before our block.
        total = plan.chars_sent + self.around_chars
        hit = reach.hit(min(changed_from, reach.start))
        around = self.fixed_chars if hit == HEAD else self.around_chars
        ours = self._price(total, 0 if hit == NOTHING else plan.chars_before(hit) + around)
        return branch.ledger.after(plain, ours)

    def _price(self, total: int, cached: int) -> float:
        """Of a prompt of so many characters."""
        return self.prices.cost(cached / CHARS_PER_TOKEN, (total - cached) / CHARS_PER_TOKEN)

    def new_without_marker(self, plan: Plan) -> list[Item]:
        """The messages that the cache would hold nothing of without our cache marker."""
        start, nearest = self.reach.start, self.reach.nearest
        return plan.items[start if start >= nearest else HEAD :]


def why_lost(call: CallInProgress) -> RebaseReason | None:
    """Why the provider's cache holds nothing of what was sent before; None where it may."""
    # On whichever branch: the provider's cache knows no branches, and they share a beginning.
    model, last, reported = call.request.model, call.session.chat.newest_record, call.reported
    if call.layout_changed:
        return "layout"
    if call.alignment.replaced:
        return "history"
    answered = last.model if last is not None else CalledModel()
    if last is not None and reported is not None and reported.call == last.ordinal:
        answered = reported.model or answered
    if model is not None and answered.name not in ("", model.name):
        return "model"
    around = last.cache.around if last is not None else ""
    if model is not None and around not in ("", call.session.frame.before_chat(model.inline)):
        return "system"
    return "cold" if is_cold(call) else None


def is_cold(call: CallInProgress) -> bool:
    """Whether the provider's cache has expired. Unknown counts as warm, and so does a clock that
    was set back: how much time has passed is unknown then."""
    last = call.session.chat.newest_record
    if last is None:
        return False
    last_ms = max(last.time_ms, call.request.warmed_ms)
    return call.request.time_ms - last_ms > _ttl_s(call) * 1000


def call_costs(call: CallInProgress, reason: RebaseReason | None, tokens: int) -> CallCosts:
    """The figures that the cost of a call follows from. Its head must be written by then."""
    request, frame, branch = call.request, call.session.frame, call.context.branch
    model = request.model or Model("", "")
    branch.cache_entries.warm(request.warmed_ms)
    rule = model.cache if model.prices.cached else "none"
    if call.settings.cache_rule and rule != "none":
        rule = call.settings.cache_rule
    reach = reach_of(
        rule,
        branch.plan,
        branch.cache_entries.alive(request.time_ms, _ttl_s(call)),
        start=call.first_new,
        warm=call.first_new > 0 and reason in (None, "high-water"),
        marks=model.marks and call.layout.keeps_bytes,
        threads=model.threads,
    )
    own_chars = declared_chars(frame.tools, call.settings.definition_chars)
    around = frame.chars, own_chars, frame.chars + branch.plan.head_chars
    return CallCosts(reason, tokens, model.prices, *around, reach)


def priced(
    branch: Branch, costs: CallCosts, candidates: Iterable[Candidate]
) -> list[CandidateMessage]:
    """What could go, by message and in order, as far back as bytes may change."""
    plan = branch.plan
    savings: dict[int, int] = {}
    carrying: dict[int, float] = {}
    for candidate in candidates:
        ref = candidate.ref
        # None at the call at which it becomes a candidate: nothing was read in vain yet.
        calls = branch.depth + 1 - branch.candidates[ref]
        saving = candidate.saving / CHARS_PER_TOKEN
        savings[ref.message] = savings.get(ref.message, 0) + candidate.saving
        carried = costs.prices.read * saving * calls
        carrying[ref.message] = carrying.get(ref.message, 0.0) + carried
    before, allowed = plan.chars_before, may_change(plan, savings)
    # Where nothing is found, what precedes the chat is written in either case, and cancels out.
    found = max(costs.reach.hit(costs.reach.start), HEAD)
    messages: list[CandidateMessage] = []
    for index in sorted(allowed):
        suffix = before(found) - before(max(min(costs.reach.hit(index), found), HEAD))
        saving = savings[index] / CHARS_PER_TOKEN
        messages.append(CandidateMessage(index, saving, carrying[index], suffix / CHARS_PER_TOKEN))
    return messages


def _ttl_s(call: CallInProgress) -> float:
    """For how long the provider keeps what is not used again, in seconds."""
    if call.settings.cache_ttl_s is not None:
        return call.settings.cache_ttl_s
    model = call.request.model
    return (model.cache_ttl_s if model else None) or DEFAULT_TTL_S


KEEP_CALLS = 5
"""For how many calls a marker stays where it is, if it can, before its place is chosen again: that
costs asking the policy once more."""

HOST_RESERVES = 16_384
"""Tokens of the window that the host keeps free: it compacts a longer chat."""

HOST_KEEPS = 20_000 + 1_500
"""Tokens of the chat that it then keeps, and of the summary before them."""


def predict_cache(call: CallInProgress, costs: CallCosts, policy: PolicyRun) -> CachePrediction:
    """What the provider's cache is expected to do with the call, and where one more marker goes."""
    context, reach, model = call.context, costs.reach, call.request.model
    plan, gauge, changed_from = context.plan, context.gauge, call.first_changed
    hit = reach.hit(min(changed_from, reach.start))
    rebased = changed_from < reach.start
    total = after = gauge.prompt(plan, costs.around_chars)
    if hit != NOTHING:
        # The shortest prefix that a provider finds ends before our block.
        ours = costs.around_chars - costs.fixed_chars if hit == HEAD else 0
        after = gauge.tokens(plan.chars_sent - plan.chars_before(hit) + ours)
    return CachePrediction(
        reach.rule,
        hit,
        *_split(costs, total, total - after),
        marked=_mark(call, costs, policy, hit, rebased=rebased) if reach.markable else None,
        warmed_ms=call.request.warmed_ms,
        reported=call.reported,
        baseline=_foresee_plain(context, costs, model.window if model else None),
        around=call.session.frame.before_chat(model.inline if model else "none"),
    )


def _mark(
    call: CallInProgress, costs: CallCosts, policy: PolicyRun, hit: int, *, rebased: bool
) -> int | None:
    """After how many messages one more marker goes. `hit`: how many of them are found."""
    branch, record, reach = call.context.branch, call.session.chat.branch_record, costs.reach
    if rebased or reach.threads or not branch.depth % KEEP_CALLS:
        return reach.mark(hit, policy.first_to_go(), rebased=rebased)
    before = record.cache.marked if record else None
    if before is not None and before in reach.markable and before <= hit and hit >= reach.nearest:
        return before
    return reach.mark(hit, None, rebased=False)


def _foresee_plain(context: RenderContext, costs: CallCosts, window: int | None) -> PromptTokens:
    """Tokens of what the host alone would have sent: every message as it has it, without our tools,
    their calls and results, and without our cache marker."""
    plan, gauge, branch = context.plan, context.gauge, context.branch
    fixed = costs.fixed_chars - min(costs.own_chars, costs.fixed_chars)
    chat = plan.chars_host - plan.chars_own
    left = min(branch.ledger.left, chat)
    images, image_tokens = gauge.images(plan)
    pictured = image_tokens - gauge.tokens(images * IMAGE_CHARS)
    total = gauge.tokens(fixed + chat - left) + pictured
    after = sum(item.chars - item.own_chars for item in costs.new_without_marker(plan))
    # What does not fit into the window any more the host would have compacted. The branch's ledger
    # notes how much of the chat is left out from here on.
    if window is not None and total > window - min(HOST_RESERVES, window // 8):
        kept = min(HOST_KEEPS, window // 2 - window // 8) * gauge.rate
        after = max(after, min(chat - left, int(kept)))
        left = chat - after
        total = gauge.tokens(fixed + after) + pictured
    branch.ledger = branch.ledger._replace(left=left)
    is_warm = costs.reach.warm and costs.reach.rule != "none"
    return _split(costs, total, max(0, total - gauge.tokens(after)) if is_warm else 0)


def _split(costs: CallCosts, total: int, found: int) -> PromptTokens:
    """The tokens of a prompt by what becomes of them. `found`: those that the cache holds."""
    read = found if found >= MINIMUM_TOKENS else 0
    rest = total - read
    pays_for_writing = costs.reach.rule == "markers" or costs.prices.write > 1
    written = rest if pays_for_writing and total >= MINIMUM_TOKENS else 0
    return PromptTokens(read, written, rest - written)
