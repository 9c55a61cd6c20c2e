"""What a call costs as it is, fully folded and after a rebase.

Rebases are decided by characters; a `CachePrediction` uses the model's `Gauge`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.context.calls.call import CallInProgress
from foredeck.context.head import MOST_WRAPPING
from foredeck.context.messages.items import IMAGE_CHARS, Item
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.uses import PolicyRun
from foredeck.context.provider_cache import HEAD, MINIMUM_TOKENS, NOTHING, CacheReach, reach_of
from foredeck.context.rebase import CandidateMessage, Prices, RebaseReason, may_change
from foredeck.context.rendering import RenderContext
from foredeck.context.rewriting.folding import Fold
from foredeck.context.rewriting.refreshing import Refresh
from foredeck.context.rewriting.replacing import Cover
from foredeck.context.state.chat import Branch
from foredeck.context.state.request import Model
from foredeck.context.wording import CARRIED
from foredeck.model.call_values import (
    CHARS_PER_TOKEN,
    DEFAULT_TTL_S,
    BranchCost,
    CachePrediction,
    CalledModel,
    PromptTokens,
)
from foredeck.model.messages import text_in
from foredeck.model.own_tools import declared_chars, definition_chars

Candidate = Fold | Refresh | Cover
"""A possible change: its place (`ref`) and the characters saved."""


FULL = ("high-water", "tier")
"""Rebase reasons: the prompt is too long."""


@dataclass(frozen=True, slots=True)
class CallCosts:
    reason: RebaseReason | None
    """Why everything may be rewritten."""
    tokens: int
    prices: Prices
    fixed_chars: int
    """Characters of system prompt and tools."""
    own_chars: int
    """Those in definitions of foredeck's tools."""
    around_chars: int
    """As `fixed_chars`, with foredeck's head."""
    reach: CacheReach
    """How far the cache finds earlier messages."""

    @property
    def cache_lost(self) -> bool:
        return self.reason not in (None, *FULL)

    def ledger_after(self, branch: Branch, changed_from: int) -> BranchCost:
        """The branch's ledger after a call that changes from that message on."""
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
        return self.prices.cost(cached / CHARS_PER_TOKEN, (total - cached) / CHARS_PER_TOKEN)

    def new_without_marker(self, plan: Plan) -> list[Item]:
        """Messages left uncached without foredeck's marker."""
        start, nearest = self.reach.start, self.reach.nearest
        return plan.items[start if start >= nearest else HEAD :]


def why_lost(call: CallInProgress) -> RebaseReason | None:
    """Why the cache holds nothing that was sent; None if it may."""
    # On whichever branch: the provider's cache knows no branches, and they share a beginning.
    model, last = call.request.model, call.session.chat.newest_record
    if call.layout_changed:
        return "layout"
    if is_carried(call):
        return None  # it was folded when it was carried, and its price was said
    if call.alignment.replaced:
        return "history"
    if (other := _other_model(call)) and not _ends_alive(call):
        return "model"
    around = last.cache.around if last is not None else ""
    if other:
        around, _ = call.context.branch.cache_entries.others[other]
    if model is not None and around not in ("", call.session.frame.before_chat(model.inline)):
        return "system"
    return "cold" if is_cold(call) else None


def is_carried(call: CallInProgress) -> bool:
    """Whether the session was carried over from another agent, and this is its first call."""
    text = text_in(call.items[0].blocks) if call.alignment.replaced and call.items else ""
    return CARRIED in text[: len(CARRIED) + MOST_WRAPPING]


def is_cold(call: CallInProgress) -> bool:
    """Whether the cache has expired; unknown counts as warm."""
    last = call.session.chat.newest_record
    if last is None:
        return False
    last_ms = max(last.time_ms, call.request.warmed_ms)
    return call.request.time_ms - last_ms > _ttl_s(call) * 1000


def _other_model(call: CallInProgress) -> str:
    """The called model, unless it has answered the newest call, or nobody knows; else empty."""
    model, last, reported = call.request.model, call.session.chat.newest_record, call.reported
    answered = last.model if last is not None else CalledModel()
    if last is not None and reported is not None and reported.call == last.ordinal:
        answered = reported.model or answered
    return "" if model is None or answered.name in ("", model.name) else model.name


def _ends_alive(call: CallInProgress) -> list[int]:
    """Ends of earlier requests that the called model's cache still holds."""
    entries, other = call.context.branch.cache_entries, _other_model(call)
    return entries.alive(call.request.time_ms, _ttl_s(call), other)


def call_costs(call: CallInProgress, reason: RebaseReason | None, tokens: int) -> CallCosts:
    request, frame, branch = call.request, call.session.frame, call.context.branch
    model = request.model or Model("", "")
    branch.cache_entries.warm(request.warmed_ms)
    rule = model.cache if model.prices.cached else "none"
    if call.config.rebase.cache != "auto" and rule != "none":
        rule = call.config.rebase.cache
    ends, start = _ends_alive(call), call.first_new
    if _other_model(call):
        # It has been sent no more than at its last call.
        start = min(start, max(ends, default=0))
    reach = reach_of(
        rule,
        branch.plan,
        ends,
        start=start,
        warm=call.first_new > 0 and reason in (None, *FULL),
        marks=model.marks and call.layout.keeps_bytes,
        threads=model.threads,
    )
    # A host may have sent no tools.
    declared = call.config.tools.declared()
    own_chars = declared_chars(frame.tools) if frame.tools else definition_chars(*declared)
    around = frame.chars, own_chars, frame.chars + branch.plan.head_chars
    return CallCosts(reason, tokens, model.prices, *around, reach)


def priced(
    branch: Branch, costs: CallCosts, candidates: Iterable[Candidate]
) -> list[CandidateMessage]:
    """What could leave, in order, as far back as bytes may change."""
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
    cached = max(costs.reach.hit(costs.reach.start), HEAD)
    messages: list[CandidateMessage] = []
    for index in sorted(allowed):
        next_cached = costs.reach.hit(index)
        suffix = before(cached) - before(max(min(next_cached, cached), HEAD))
        if next_cached == NOTHING and costs.reach.hit(costs.reach.start) != NOTHING:
            # Nothing at all is found then, not even what precedes the chat.
            suffix += costs.fixed_chars
        saving = savings[index] / CHARS_PER_TOKEN
        messages.append(CandidateMessage(index, saving, carrying[index], suffix / CHARS_PER_TOKEN))
    return messages


def _ttl_s(call: CallInProgress) -> float:
    if call.config.rebase.cache_ttl_s is not None:
        return call.config.rebase.cache_ttl_s
    model = call.request.model
    return (model.cache_ttl_s if model else None) or DEFAULT_TTL_S


KEEP_CALLS = 5
"""Calls for which a marker keeps its place: choosing anew costs another policy run."""

HOST_RESERVES = 16_384
"""Tokens a host leaves free before it compacts."""

HOST_KEEPS = 20_000 + 1_500
"""Tokens of chat it then keeps, with the summary."""


def predict_cache(
    call: CallInProgress, costs: CallCosts, policy: PolicyRun, withheld: int
) -> CachePrediction:
    """Predicts the cache, and places one more marker."""
    context, reach, model = call.context, costs.reach, call.request.model
    plan, gauge, changed_from = context.plan, context.gauge, call.first_resent
    hit = reach.hit(min(changed_from, reach.start))
    rebased = changed_from < reach.start
    total = after = gauge.prompt(plan, costs.around_chars - withheld)
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
    """Messages before one more marker; `hit` of them are cached."""
    branch, record, reach = call.context.branch, call.session.chat.branch_record, costs.reach
    if rebased or reach.threads or not branch.depth % KEEP_CALLS:
        return reach.mark(hit, policy.first_to_go(), rebased=rebased)
    before = record.cache.marked if record else None
    if before is not None and before in reach.markable and before <= hit and hit >= reach.nearest:
        return before
    return reach.mark(hit, None, rebased=False)


def _foresee_plain(context: RenderContext, costs: CallCosts, window: int | None) -> PromptTokens:
    """Tokens without foredeck: its tools, results and marker."""
    plan, gauge, branch = context.plan, context.gauge, context.branch
    fixed = costs.fixed_chars - min(costs.own_chars, costs.fixed_chars)
    chat = plan.chars_host - plan.chars_own
    dropped = min(branch.ledger.left, chat)
    images, image_tokens = gauge.images(plan)
    pictured = image_tokens - gauge.tokens(images * IMAGE_CHARS)
    total = gauge.tokens(fixed + chat - dropped) + pictured
    after = sum(item.chars - item.own_chars for item in costs.new_without_marker(plan))
    # What does not fit into the window any more the host would have compacted. The branch's ledger
    # notes how much of the chat is left out from here on.
    if window is not None and total > window - min(HOST_RESERVES, window // 8):
        recent = min(HOST_KEEPS, window // 2 - window // 8) * gauge.rate
        after = max(after, min(chat - dropped, int(recent)))
        dropped = chat - after
        total = gauge.tokens(fixed + after) + pictured
    branch.ledger = branch.ledger._replace(left=dropped)
    is_warm = costs.reach.warm and costs.reach.rule != "none"
    return _split(costs, total, max(0, total - gauge.tokens(after)) if is_warm else 0)


def _split(costs: CallCosts, total: int, found: int) -> PromptTokens:
    read = found if found >= MINIMUM_TOKENS else 0
    rest = total - read
    pays_for_writing = costs.reach.rule in ("markers", "breakpoints") or costs.prices.write > 1
    stored = rest if pays_for_writing and total >= MINIMUM_TOKENS else 0
    return PromptTokens(read, stored, rest - stored)
