"""The rebase of one call: whether there is one, from where, and what it cost or saved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from foredeck.context.cache.cached import HEAD, NOTHING, CacheReach
from foredeck.context.cache.economics import (
    DEFINITION_CHARS,
    CollapsibleMessage,
    Prices,
    PromptBill,
    RebaseOffer,
    RebaseThresholds,
    best_rebase,
    calls_until,
)
from foredeck.context.cache.rebase import (
    CHARS_PER_TOKEN,
    RebaseInputs,
    RebaseReason,
    WaterMarks,
    first_free,
    is_closing,
    reason_to_rebase,
)
from foredeck.context.messages.parts import PieceRef
from foredeck.context.rendering.layout import Layout, RenderContext
from foredeck.context.rewriting.folding import (
    collapsible,
    fold,
    fold_down,
    foldable_chars,
    shed,
    unseal,
)
from foredeck.context.rewriting.refresh import FindRefreshes, Refresh
from foredeck.context.state.session import Session
from foredeck.model.call_values import Decision


@dataclass(frozen=True, slots=True)
class CallContext:
    """What the decision needs to know of the call at hand."""

    moment: RebaseInputs
    prices: Prices
    start: int
    """How many messages were sent before."""
    fixed_chars: int
    """What stands around the messages: system prompt, tools."""
    reach: CacheReach
    """What the provider's cache would find."""
    rewritten: int | None = None
    """From this message on the host has changed what it had sent before: these bytes are new to
    the provider whatever we do."""
    unseals: bool = False
    """Whether the wire lets reasoning of earlier turns be left out."""

    @property
    def warm(self) -> bool:
        """Whether the provider's cache may hold what was sent before."""
        return self.start > 0 and not self.moment.lost


@dataclass(frozen=True, slots=True)
class RebaseSettings:
    """What the user can change about rebases."""

    water: WaterMarks = field(default_factory=WaterMarks)
    terms: RebaseThresholds = field(default_factory=RebaseThresholds)


def rewrite(
    session: Session,
    context: RenderContext,
    layout: Layout,
    call: CallContext,
    rules: RebaseSettings,
    wanted: Collection[PieceRef] = (),
    find: FindRefreshes | None = None,
) -> Decision:
    """Rebase if that is free, pays or must be; returns what was decided.

    `wanted`: what the policy says may go, beside what nobody wants any more. `find`: the reads that
    may be brought up to date, given what goes. The session's ledger goes on by this call.
    """
    conversation = session.branch.conversation
    due = collapsible(context, wanted)
    refreshes = find(context, due.keys()) if find and layout.keeps_bytes else {}
    if refreshes:
        savings = {ref: refresh.saving for ref, refresh in refreshes.items()}
        due = dict(sorted({**due, **savings}.items()))
    conversation.set_collapsible(due.keys(), session.branch.depth + 1)
    decision = _rebase(session, context, layout, call, rules, due, wanted, refreshes)
    if decision.is_rebase and layout.keeps_bytes and call.unseals:
        unseal(context, decision.changed_from or 0)
    changed_from = min(context.changed, default=len(conversation))
    session.branch.ledger = session.branch.ledger.after(
        call.prices, _plain_bill(session, call), _own_bill(session, call, changed_from)
    )
    return decision


def _rebase(
    session: Session,
    context: RenderContext,
    layout: Layout,
    call: CallContext,
    rules: RebaseSettings,
    due: Mapping[PieceRef, int],
    wanted: Collection[PieceRef],
    refreshes: Mapping[PieceRef, Refresh],
) -> Decision:
    if not layout.keeps_bytes:
        _let_go(session, wanted)
        if call.unseals and not first_free(session.branch.conversation):
            unseal(context, 0)
        return _shed(session, context, call, rules.water)
    reason, first = reason_to_rebase(call.moment, rules.water), 0
    if reason == "high-water" and _is_futile(context, call, rules.water, due):
        # Sealed reasoning stands behind nearly everything: what could go now, one result at a
        # time, is what came last. A compaction does more, and is made before the window is full.
        reason = None
    if reason is None and call.rewritten is not None:
        reason, first = "history", call.rewritten
    offer, session.branch.rebase_in = None, None
    if reason is None and call.warm:
        dues = _dues(session, call, due)
        offer = _offer(session, call, rules.terms, dues)
        if offer is None:
            session.branch.rebase_in = calls_until(dues, call.prices, rules.terms)
    if reason is None and offer is None:
        return Decision()
    first = first if offer is None else offer.index
    folded = fold(context, layout, [ref for ref in due if ref.message >= first], refreshes)
    folded |= _fold_more(context, layout, call, rules.water, reason)
    if not folded and not call.moment.written_anew:
        return Decision()
    for index in folded:
        session.branch.release(index)
    changed_from = 0 if call.moment.relaid else min(context.changed, default=call.start)
    if offer is not None:
        reason = _reason_of(call, offer)
    decision = Decision("rebase", reason, changed_from)
    return decision if offer is None else offer.explain(decision)


def _reason_of(call: CallContext, offer: RebaseOffer) -> RebaseReason:
    """Why a rebase pays: what it changes may not be cached in any case."""
    if call.reach.rule == "none":
        return "no-cache"
    return "pays" if call.reach.hit(call.start) > offer.index else "look-back"


def _let_go(session: Session, wanted: Collection[PieceRef]) -> None:
    """A layout that writes all anew need not wait: results that may go are no longer active."""
    results = {ref.message for ref in wanted if not ref.slot}
    for index in results & session.branch.conversation.wanted.keys():
        session.branch.release(index)


def _shed(
    session: Session, context: RenderContext, call: CallContext, water: WaterMarks
) -> Decision:
    """A stateless layout has nothing to fold: what does not fit is no longer active."""
    gone = shed(context, fixed_chars=call.fixed_chars, window=call.moment.window, water=water)
    for ordinal in gone:
        session.branch.release_object(ordinal)
    if not gone:
        return Decision()
    return Decision("rebase", "high-water", 0)


def _fold_more(
    context: RenderContext,
    layout: Layout,
    call: CallContext,
    water: WaterMarks,
    reason: RebaseReason | None,
) -> set[int]:
    """Above the high-water mark, go on down to the low one."""
    window = call.moment.window
    tokens = context.gauge.prompt(context.conversation, call.fixed_chars)
    if not window or not (reason == "high-water" or tokens > water.high * window):
        return set()
    return fold_down(context, layout, int(water.low * window), call.fixed_chars)


def _is_futile(
    context: RenderContext, call: CallContext, water: WaterMarks, due: Mapping[PieceRef, int]
) -> bool:
    """Whether what may not be changed now keeps the prompt so near the high-water mark that it
    would be there again soon: nearer than half of the way down to the low one."""
    enough = (water.high + water.low) / 2 * (call.moment.window or 0)
    chars, held = foldable_chars(context, due)
    return held and call.moment.tokens - context.gauge.tokens(chars) > enough


def _offer(
    session: Session, call: CallContext, terms: RebaseThresholds, dues: Sequence[CollapsibleMessage]
) -> RebaseOffer | None:
    """The rebase that pays at this call, by the rent that each due piece has cost."""
    if not dues:
        return None
    so_far = session.branch.ledger.after(
        call.prices, _plain_bill(session, call), _own_bill(session, call, call.start)
    )
    if is_closing(session.branch.conversation):
        terms = replace(terms, factor=terms.factor * terms.closing)
    return best_rebase(dues, call.prices, terms, so_far)


def _dues(
    session: Session, call: CallContext, due: Mapping[PieceRef, int]
) -> list[CollapsibleMessage]:
    """What may go, message by message in their order, as far back as bytes may change."""
    conversation = session.branch.conversation
    savings: dict[int, int] = {}
    rents: dict[int, float] = {}
    for ref, chars in due.items():
        calls = session.branch.depth + 1 - conversation.collapsible[ref]
        saving = chars / CHARS_PER_TOKEN
        savings[ref.message] = savings.get(ref.message, 0) + chars
        rents[ref.message] = rents.get(ref.message, 0.0) + call.prices.read * saving * calls
    before, free = conversation.chars_before, first_free(conversation)
    found = max(call.reach.hit(call.start), HEAD)
    dues: list[CollapsibleMessage] = []
    for index in sorted(index for index in savings if index >= free):
        suffix = before(found) - before(max(min(call.reach.hit(index), found), HEAD))
        saving = savings[index] / CHARS_PER_TOKEN
        dues.append(CollapsibleMessage(index, saving, rents[index], suffix / CHARS_PER_TOKEN))
    return dues


def _plain_bill(session: Session, call: CallContext) -> PromptBill:
    """What the call costs with every message as the host has it, and no marker or tool but its
    own."""
    conversation, reach = session.branch.conversation, call.reach
    new = conversation.items[call.start if call.start >= reach.nearest else HEAD :]
    total = max(0, conversation.chars_host + call.fixed_chars - DEFINITION_CHARS)
    warm = call.warm and reach.rule != "none"
    return _bill(total, max(0, total - sum(item.chars for item in new)) if warm else 0)


def _own_bill(session: Session, call: CallContext, changed_from: int) -> PromptBill:
    """What it costs as it goes out, changed from a message on."""
    conversation = session.branch.conversation
    total = conversation.chars_sent + call.fixed_chars
    hit = call.reach.hit(min(changed_from, call.start))
    if hit == NOTHING:
        return _bill(total, 0)
    return _bill(total, conversation.chars_before(hit) + call.fixed_chars)


def _bill(total: int, cached: int) -> PromptBill:
    return PromptBill(cached / CHARS_PER_TOKEN, (total - cached) / CHARS_PER_TOKEN)
