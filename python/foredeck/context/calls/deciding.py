"""Whether this call rewrites what was sent, and what the provider's cache will do with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from foredeck.context.cache.cached import CacheReach, reach_of
from foredeck.context.cache.economics import Prices, declared_chars
from foredeck.context.cache.rebase import (
    DEFAULT_TTL_S,
    RebaseInputs,
    binds,
    is_cold,
    reason_to_rebase,
)
from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.heading import must_withdraw, rebuild_head, replace_head, withdrawn_now
from foredeck.context.intake.alignment import layout_before
from foredeck.context.intake.our_messages import has_leftovers
from foredeck.context.messages.items import Item
from foredeck.context.policies.policy_run import PolicyRun, run_policy
from foredeck.context.policies.uses import Uses
from foredeck.context.rendering.layouts import make_layout
from foredeck.context.rewriting.copies import copy_finder
from foredeck.context.rewriting.costs import CallCosts
from foredeck.context.rewriting.ending import TURN_ENDED
from foredeck.context.rewriting.folding import strip_reasoning
from foredeck.context.rewriting.prediction import KEEP_CALLS, foresee, foresee_plain
from foredeck.context.rewriting.rebasing import Rebase
from foredeck.context.rewriting.refresh import RefreshFinder
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.rewriting.runs import FoldRuns, fold_runs, no_runs, run_rule
from foredeck.context.state.request import Model
from foredeck.context.window.budget import WindowBudget
from foredeck.context.window.compactions import turn_of
from foredeck.context.window.fitting import fit
from foredeck.model.call_values import CachePrediction
from foredeck.model.documents import chat_id


def choose_layout(call: CallInProgress) -> None:
    """Change to the configured layout as soon as everything may be rendered again.

    Until then the prompt goes on in the layout that it was written in.
    """
    session, configured = call.session, call.layout.name
    written_in = layout_before(session.chat) or configured
    is_other = written_in != configured or has_leftovers(session.chat.branch, call.layout)
    call.layout_changed = is_other and not binds(session.chat.branch.plan, call.items)
    if call.layout_changed:
        session.chat.go_to(session.chat.branch.without_rendering())
        call.first_new = call.first_changed_insert = 0
        call.start_rendering()
    elif is_other:
        call.layout = make_layout(written_in)


@dataclass(frozen=True, slots=True)
class DecisionBasis:
    """What a decision was made from."""

    costs: CallCosts
    policy: PolicyRun


def decide(call: CallInProgress, uses: Uses, refreshes: RefreshFinder) -> DecisionBasis:
    """Rebase where that is free, pays or must be."""
    session, request, wire = call.session, call.request, call.request.wire
    inputs = _rebase_inputs(call)
    if must_withdraw(call) and not inputs.lost:
        inputs = replace(inputs, withdrawn=True)
        price = request.model.input_price if request.model else 0.0
        session.inbox.user_messages.append(withdrawn_now(inputs.tokens, price))
    is_new_head = rebuild_head(call, inputs)
    run = run_policy(
        session.chat.branch, call.policy, uses, wire=wire, cold=inputs.lost, time_ms=request.time_ms
    )
    costs = CallCosts(
        inputs,
        request.model.prices if request.model else Prices(),
        call.first_new,
        session.frame.chars,
        declared_chars(session.frame.tools, call.settings.definition_chars),
        _reach(call, warm=call.first_new > 0 and not inputs.lost),
        _first_rewritten(call),
        wire.thinking,
        session.chat.branch.plan.head_chars,
    )
    find = refreshes.finder(call.policy.use_rule, uses, wire)
    rebase = Rebase(
        call.context,
        call.layout,
        costs,
        call.rebase,
        _replacer(call),
        _run_folder(call),
        _ending_share(call),
    )
    copies = copy_finder(call.policy.use_rule, uses, wire)
    call.decision = rebase.run(run.collapsible, find, copies)
    if call.decision.turn_ended:
        session.inbox.user_messages.append(TURN_ENDED)
    # What covers a span changes what is said and omitted from its first message on, though the
    # operations before its last one may have been `Omit` already.
    if call.decision.stand_ins:
        observed = session.chat.branch.plan.observed
        firsts = [observed[id].first for id in call.decision.stand_ins if id in observed]
        call.first_changed_insert = min([call.first_changed_insert, *firsts])
    if call.decision.runs:
        changed = call.context.changed
        firsts = [run.first for run in session.chat.branch.plan.runs if run.first in changed]
        call.first_changed_insert = min([call.first_changed_insert, *firsts])
    if is_new_head:
        _rewrite_after_head(call, inputs)
    return DecisionBasis(costs, run)


def _replacer(call: CallInProgress) -> Replacer | None:
    """What replaces spans of the chat by observations; None where they are switched off."""
    session, stand_ins = call.session, call.features.stand_ins
    if stand_ins is None:
        return None
    return Replacer(
        session.objects,
        stand_ins,
        call.context,
        call.places,
        partial(turn_of, session.chat),
    )


def _run_folder(call: CallInProgress) -> FoldRuns:
    """What replaces runs of folded calls by one text each."""
    session, rule = call.session, run_rule(call.policy.use_rule, call.request.wire)
    if rule is None:
        return no_runs

    def whole_turn(item: Item) -> tuple[int, int] | None:
        chat = session.objects.workspace.head(chat_id(session.info.id))
        return (
            (session.objects.see_head(chat).ordinal, turn_of(session.chat, item)) if chat else None
        )

    return lambda start: fold_runs(call.context, rule, start, whole_turn)


def _ending_share(call: CallInProgress) -> float:
    """Of how much a turn may be ended for; 1 where its reasoning may not be left out."""
    wire = call.request.wire
    may_end = call.keeps_bytes and wire.thinking and not wire.between_turns
    return call.settings.ending_share if may_end else 1.0


def _rewrite_after_head(call: CallInProgress, inputs: RebaseInputs) -> None:
    """The first bytes of the prompt are others now: so is every prefix that was sent before."""
    call.first_changed_insert = 0
    if not call.first_new:
        return
    reason = call.decision.reason or reason_to_rebase(inputs, call.rebase.marks)
    call.decision = call.decision._replace(kind="rebase", reason=reason, changed_from=0)
    if call.request.wire.thinking:
        strip_reasoning(call.context, 0)


def fit_window(call: CallInProgress, basis: DecisionBasis) -> None:
    """Bring the prompt into the window, where folding was not enough."""
    settings, model, window = call.settings, call.request.model, basis.costs.inputs.window
    budget = WindowBudget(
        window,
        call.gauge,
        call.session.frame.chars,
        call.rebase.marks.low,
        settings.summary_chars,
        call.request.time_ms,
        strips_reasoning=call.request.wire.thinking,
        refused=bool(model and window != model.window),
    )
    decision = fit(call.session.objects, call.session.chat, call.context, budget, _replacer(call))
    if decision is not None:
        ended = call.decision.turn_ended
        call.decision, call.first_changed_insert = decision._replace(turn_ended=ended), 0
        replace_head(call)


def predict_cache(call: CallInProgress, basis: DecisionBasis) -> CachePrediction:
    """What the provider's cache will do with the call, and where one more marker goes."""
    changed_from = min(call.first_changed_part, call.first_changed_insert, call.first_new)
    if not call.keeps_bytes:
        changed_from = 0
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


def _rebase_inputs(call: CallInProgress) -> RebaseInputs:
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


def _reach(call: CallInProgress, *, warm: bool) -> CacheReach:
    """What the provider's cache would find of the branch."""
    request, branch = call.request, call.session.chat.branch
    model = request.model or Model("", "")
    branch.entries.warm(request.warmed_ms)
    rule = model.cache if model.prices.cached else "none"
    if call.settings.cache_rule and rule != "none":
        rule = call.settings.cache_rule
    return reach_of(
        rule,
        branch.plan,
        branch.entries.alive(request.time_ms, _ttl_s(call)),
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
