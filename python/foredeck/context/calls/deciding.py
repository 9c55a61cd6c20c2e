"""Decides whether a call rewrites what was sent, and rewrites it.

Runs are made only when bytes change anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from foredeck.context import wording
from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.costs import (
    FULL,
    CallCosts,
    Candidate,
    call_costs,
    is_cold,
    priced,
    why_lost,
)
from foredeck.context.calls.feedback import reasoning_behind
from foredeck.context.calls.own_lines import (
    must_withdraw,
    rebuild_head,
    replace_head,
    withdrawn_now,
)
from foredeck.context.fitting import WindowBudget, fit
from foredeck.context.layouts import active_content, make_layout
from foredeck.context.messages.items import blocks_chars, text_block
from foredeck.context.plan.ops import PieceRef, Say
from foredeck.context.policies.uses import PolicyRun, newest_from, run_policy
from foredeck.context.rebase import (
    BOUND_TURN_FACTOR,
    best_rebase,
    calls_until,
    first_mutable,
    later_calls,
    precedes_bound_turn,
)
from foredeck.context.rendering import describe_folded
from foredeck.context.rewriting.folding import (
    Fold,
    fold_down,
    fold_pastes,
    fold_pieces,
    fold_results,
    objects_to_shed,
    strip_reasoning,
)
from foredeck.context.rewriting.refreshing import Refresh, refresh
from foredeck.context.rewriting.replacing import Cover
from foredeck.context.rewriting.runs import fold_runs
from foredeck.context.state.gauge import sent_tokens
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision

LEAST_TO_END_A_TURN = 2000
"""No turn is ended to save fewer tokens."""

TURN_ENDED = (
    "Older output was folded and the model's reasoning in this turn left out: after the pause all "
    "of the prompt is paid for again anyway."
)

TIER_SHARE = 0.98
"""Share of a price tier to stay below, as estimates run low."""

REWRITES_ALL = ("history", "layout", "withdrawn")
"""Reasons that resend everything, whatever folds."""


def choose_layout(call: CallInProgress) -> None:
    """Switches to the configured layout once everything may be rendered again."""
    session, configured, plan = call.session, call.layout.name, call.context.plan
    before = session.chat.branch_record
    written_in = before.layout if before else configured
    # A layout that keeps bytes puts no text between messages: what there is was left by another.
    has_leftovers = call.layout.keeps_bytes and plan.has_layout_text
    is_other = written_in != configured or has_leftovers
    call.layout_changed = is_other and not first_mutable(plan, call.items)
    if call.layout_changed:
        session.chat.branch = session.chat.branch.without_rendering()
        call.first_new = call.first_changed_say = 0
        call.start_rendering()
    elif is_other:
        call.layout = make_layout(written_in)


def decide(call: CallInProgress) -> tuple[CallCosts, PolicyRun]:
    """Rebases if that is free, pays or is forced; the call keeps the decision."""
    session, request, plan = call.session, call.request, call.context.plan
    # Of the prompt with nothing rewritten, the head included.
    tokens = call.gauge.prompt(plan, session.frame.chars + plan.head_chars)
    reason = why_lost(call)
    if must_withdraw(call) and reason is None:
        reason = "withdrawn"
        price = request.model.input_price if request.model else 0.0
        session.inbox.user_messages.append(withdrawn_now(tokens, price))
    cache_lost, tier = reason is not None, None
    if reason is None and call.window and tokens > call.marks.high * call.window:
        reason = "high-water"
    elif reason is None and (tier := _tier_ahead(call, tokens)):
        reason = "tier"
    run = run_policy(
        session.chat.branch,
        call.policy,
        call.finders.uses,
        request,
        call.gauge,
        cold=cache_lost,
        tokens=tokens,
        window=call.window,
    )
    keeps_reasoning = reason == "cold" and _reasoning_is_dearer(call, run)
    # Before the costs: the head counts among them.
    is_new_head = rebuild_head(call, cache_lost=cache_lost and not keeps_reasoning)
    costs = call_costs(call, reason, tokens)
    rebase = Rebase if call.layout.keeps_bytes else Shedding
    call.decision = rebase(call, costs, run.foldable, keeps_reasoning, tier).run()
    if is_new_head:
        _rewrite_after_head(call, costs)
    return costs, run


def _tier_ahead(call: CallInProgress, tokens: int) -> int | None:
    model, last = call.request.model, call.session.chat.branch_record
    before = 0 if last is None else sent_tokens(last)
    tiers = [] if model is None else [int(TIER_SHARE * tier[0]) for tier in model.tiers]
    return next((tier for tier in tiers if before <= tier < tokens), None)


def _reasoning_is_dearer(call: CallInProgress, run: PolicyRun) -> bool:
    """Whether a rebase after a pause loses reasoning worth more than it saves."""
    rebase, model = call.config.rebase, call.request.model
    # All reasoning: the head may be written anew, too.
    lost = next(iter(reasoning_behind(call)), 0.0)
    if model is None or not lost:
        return False
    if call.context.branch.calls_to_wait(rebase.gap):
        return True
    prices, folds = model.prices, call.finders.folds.find(call.context, run.foldable)
    saved = sum(fold.saving for fold in folds) / CHARS_PER_TOKEN
    worth = saved * (prices.write + later_calls(call.context.branch.depth) * prices.read)
    price = rebase.reasoning * prices.output * lost
    return worth < rebase.pause_factor * price


@dataclass(frozen=True, slots=True)
class Rebase:
    """The rebase of one call; `run` shows its order."""

    call: CallInProgress
    costs: CallCosts
    foldable: Collection[PieceRef]
    keeps_reasoning: bool = False
    """Nothing is rewritten although the cache is cold: the reasoning is worth more."""
    tier: int | None = None
    """The price tier just ahead, if the prompt is to stay below it."""

    def run(self) -> Decision:
        call, context = self.call, self.call.context
        branch, plan = context.branch, context.plan
        decision = self._decide(call.finders.folds.find(context, self.foldable))
        changed_from = min(context.changed, default=len(plan))
        branch.ledger = self.costs.ledger_after(branch, changed_from)
        return decision

    def _decide(self, folds: list[Fold]) -> Decision:
        return self._end_turn(folds) if self._ends_turn(folds) else self._rebase(folds)

    def _rebase(self, folds: list[Fold]) -> Decision:
        candidates = self._find(folds)
        self._note(candidates)
        choice = self._choose(candidates)
        if choice is None:
            return Decision()
        decision = self._write(choice, candidates)
        # Last: providers check sealed reasoning against all bytes before it.
        if decision.is_rebase and self.call.request.wire.thinking:
            strip_reasoning(self.call.context, decision.changed_from or 0)
        return decision

    def _note(self, candidates: Iterable[Candidate]) -> None:
        # Before pricing: carrying cost counts from the call at which content became a candidate.
        branch = self.call.context.branch
        since, now = branch.candidates, branch.depth + 1
        branch.candidates = {each.ref: since.get(each.ref, now) for each in candidates}

    # ------------------------------------------------ what could change

    def _find(self, folds: list[Fold]) -> list[Candidate]:
        call, context, finders = self.call, self.call.context, self.call.finders
        wire = call.request.wire
        going = {each.ref for each in folds}
        candidates: list[Candidate] = [
            *folds,
            *finders.refreshes.find(context, finders.uses, going, wire),
        ]
        if call.replacer is not None:
            savings = {each.ref: each.saving for each in candidates}
            covers = call.replacer.find(self.foldable, savings, free=not self.costs.reach.warm)
            candidates += [each for each in covers if each.saving >= context.min_saving_chars]
        return sorted(candidates, key=lambda each: each.ref)

    # ------------------------------------------------ what does

    def _choose(self, candidates: Sequence[Candidate]) -> Decision | None:
        """Picks where to rebase: forced, free, or the earliest place that pays."""
        call, costs, branch = self.call, self.costs, self.call.context.branch
        rebase = call.config.rebase
        branch.rebase_in = None
        reason = costs.reason
        if self.keeps_reasoning:
            return None
        # If sealed reasoning binds nearly everything, only the newest results could fold, one at a
        # time. A compaction does more, and is made before the window is full.
        if reason is not None and not (reason in FULL and self._is_futile(candidates)):
            return Decision("rebase", reason, 0)
        # If the host has changed messages that were sent, their bytes are new to the provider
        # whatever we do.
        addresses = call.session.chat.log.known
        if any(item.key.address in addresses for item in call.items[call.first_new :]):
            return Decision("rebase", "history", call.first_new)
        if not costs.reach.warm:
            return None
        messages = priced(branch, costs, candidates)
        if messages:
            lost = reasoning_behind(call, messages[0].index)
            messages = [replace(each, reasoning=lost[each.index]) for each in messages]
        factor = BOUND_TURN_FACTOR if precedes_bound_turn(branch.plan) else 1.0
        # As if this call changed nothing: the guard asks what a rebase would add to that.
        so_far = costs.ledger_after(branch, costs.reach.start)
        offer = best_rebase(messages, costs.prices, rebase, so_far, factor) if messages else None
        if offer is None:
            branch.rebase_in = calls_until(messages, costs.prices, rebase)
            return None
        # Bytes that the cache would not find anyway cost nothing to change.
        is_cached = costs.reach.hit(costs.reach.start) > offer.index
        reason = "pays" if is_cached else "look-back"
        if costs.reach.rule == "none":
            reason = "no-cache"
        if reason == "pays" and (wait := branch.calls_to_wait(rebase.gap)):
            branch.rebase_in = wait
            return None
        return offer.explain(Decision("rebase", reason, offer.index))

    def _is_futile(self, candidates: Sequence[Candidate]) -> bool:
        call, context, marks = self.call, self.call.context, self.call.marks
        savings = {each.ref: each.saving for each in candidates}
        chars, is_bound = call.finders.folds.most_chars(context, savings)
        remaining = self.costs.tokens - context.gauge.tokens(chars)
        if self.tier:
            return remaining > self.tier
        return is_bound and remaining > (marks.high + marks.low) / 2 * (call.window or 0)

    # ------------------------------------------------ the rewriting

    def _write(self, choice: Decision, candidates: Sequence[Candidate]) -> Decision:
        """Rewrites what was chosen and what can change with it; an append if no byte changed."""
        call, context, costs = self.call, self.call.context, self.costs
        first = choice.changed_from or 0
        folds: set[PieceRef] = set()
        refreshes: list[Refresh] = []
        covers: list[Cover] = []
        for candidate in candidates:
            if candidate.ref.message < first:
                continue
            match candidate:
                case Fold():
                    folds.add(candidate.ref)
                case Refresh():
                    refreshes.append(candidate)
                case Cover():
                    covers.append(candidate)
        covered = {index for cover in covers for index in cover.gone}
        folds = {ref for ref in folds if ref.message not in covered}
        # A read that goes is not brought up to date.
        stale = [each for each in refreshes if each.index not in covered]
        folded = fold_results(context, call.layout, {ref.message for ref in folds if not ref.slot})
        folded |= fold_pieces(context, [*folds, *refresh(context, stale)])
        # After folding: bringing a read up to date may have folded an argument in a message that
        # leaves now.
        if call.replacer is not None:
            for cover in covers:
                call.replacer.place(cover)
        more, further = self._fold_more(choice.reason)
        covers += further
        described = describe_folded(context, self._written_anew(first))
        # Last: a run is made of folded calls.
        runs = fold_runs(context, call.finders.uses.rules, call.request.wire, first)
        # A rebase that changes no byte is none.
        changes = folded or more or covers or runs or described
        if not (changes or costs.reason in REWRITES_ALL):
            return Decision()
        for index in (folded | more) - {index for cover in covers for index in cover.gone}:
            context.branch.release(index)
        # A cover changes the prompt from the first message of its span on, even if the messages
        # before its last one were omitted already.
        firsts = [*(cover.first for cover in covers), *(run.first for run in runs)]
        call.first_changed_say = min([call.first_changed_say, *firsts])
        changed_from = min(context.changed, default=costs.reach.start)
        return choice._replace(
            changed_from=0 if call.layout_changed else changed_from,
            covers=tuple(cover.stand_in.id for cover in covers),
            call_groups=len(runs) or None,
        )

    def _written_anew(self, first: int) -> range:
        """Messages the provider reads anew anyway, which may use current names."""
        plan = self.call.context.plan
        start = min(self.call.context.changed, default=len(plan))
        if self.costs.cache_lost:
            floor = max(first, first_mutable(plan))
            # No reasoning is left out for a name.
            while start > floor and not plan.seals.binds(plan.items[start - 1]):
                start -= 1
        return range(start, len(plan))

    def _fold_more(self, reason: str | None) -> tuple[set[int], list[Cover]]:
        """Folds from the high mark to the low one: results first, least recently used first, then
        spans."""
        call, context, marks = self.call, self.call.context, self.call.marks
        window, fixed = call.window, self.costs.around_chars
        tokens = context.gauge.prompt(context.plan, fixed)
        tier = self.tier if reason == "tier" else None
        if not tier and not (window and (reason == "high-water" or tokens > marks.high * window)):
            return set(), []
        room = int(marks.low / marks.high * tier if tier else marks.low * (window or 0))

        def fits() -> bool:
            return context.gauge.prompt(context.plan, fixed) <= room

        # The newest results go last.
        floor = newest_from(context.plan, call.finders.uses.rules.newest)
        results = sorted(call.finders.folds.results(context), key=lambda index: index >= floor)
        folded = fold_down(context, call.layout, results, fits)
        return folded, [] if call.replacer is None else call.replacer.place_until(fits)

    # ------------------------------------------------ ending a turn
    #
    # After a pause all of the prompt is paid for again: the user was away, or a command ran for
    # longer than the provider keeps a prompt. In a turn with sealed reasoning little of it can
    # fold. A user message with more than tool results ends a turn; so if only that reasoning keeps
    # much from folding, a message of ours follows the newest results, and the reasoning is left
    # out.

    def _ends_turn(self, folds: Sequence[Fold]) -> bool:
        """Whether to end the turn: after a pause, if its reasoning alone holds enough."""
        call, plan, wire = self.call, self.call.context.plan, self.call.request.wire
        share, items = call.config.rebase.ending_share, plan.items
        if not wire.thinking or wire.between_turns:
            return False
        if self.keeps_reasoning or (call.request.model and call.request.model.is_bound):
            return False
        if share >= 1 or not is_cold(call) or not items or items[-1].kind != "result":
            return False
        bound = first_mutable(plan)
        gained = sum(each.saving for each in folds if each.ref.message < bound)
        return gained >= max(share * plan.chars_sent, LEAST_TO_END_A_TURN * CHARS_PER_TOKEN)

    def _end_turn(self, folds: list[Fold]) -> Decision:
        context, plan = self.call.context, self.call.context.plan
        bound = first_mutable(plan)
        plan.turn_ends = True
        try:
            decision = self._rebase(folds)
        finally:
            plan.turn_ends = False
        if min(context.changed, default=bound) >= bound:
            return decision
        plan.say(len(plan), Say("turn_end", [text_block(wording.turn_ended())]))
        self.call.session.inbox.user_messages.append(TURN_ENDED)
        return decision._replace(turn_ended=True)


class Shedding(Rebase):
    """What leaves where each call renders everything: nothing has to pay, or to stay."""

    def _decide(self, folds: list[Fold]) -> Decision:
        call, context = self.call, self.call.context
        branch = context.branch
        self._note(folds)
        call.render_all()
        fold_pastes(context, [ref for ref in self.foldable if ref.slot])
        results = {ref.message for ref in self.foldable if not ref.slot}
        for index in results & branch.kept.keys():
            branch.release(index)
        if call.request.wire.thinking and not first_mutable(branch.plan):
            strip_reasoning(context, 0)
        gone = objects_to_shed(
            context,
            lambda ordinal: blocks_chars(active_content(context, ordinal)),
            fixed_chars=self.costs.around_chars,
            window=call.window,
            marks=call.marks,
        )
        for ordinal in gone:
            branch.release_object(ordinal)
        return Decision("rebase", "high-water", 0) if gone else Decision()


def _rewrite_after_head(call: CallInProgress, costs: CallCosts) -> None:
    """Accounts for a changed head: every cached prefix is lost."""
    call.first_changed_say = 0
    if not call.first_new:
        return
    reason = call.decision.reason or costs.reason
    call.decision = call.decision._replace(kind="rebase", reason=reason, changed_from=0)
    if call.request.wire.thinking:
        strip_reasoning(call.context, 0)


def fit_window(call: CallInProgress) -> None:
    model, window = call.request.model, call.window
    if model is None or not window:
        return
    budget = WindowBudget(
        call.context,
        window,
        call.session.frame.chars,
        call.marks.low,
        call.request.time_ms,
        strips_reasoning=call.request.wire.thinking,
        refused=window != model.window,
    )
    decision = fit(budget, call.replacer)
    if decision is not None:
        # A summary may be at the beginning now, so the answer has the whole list.
        ended = call.decision.turn_ended
        call.decision, call.first_changed_say = decision._replace(turn_ended=ended), 0
        replace_head(call)
