"""One call of the model: from the host's message list to what the model will see.

The order of steps is the contract of this module: align with what was sent before, take in what
is new, let the policy speak, rebase where that is free or must be, commit the call record, and
only then answer. A prompt whose record is not stored could not be repeated after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from foredeck.context.cache.cached import CacheReach, CacheRule, reach_of
from foredeck.context.cache.economics import Prices
from foredeck.context.cache.rebase import DEFAULT_TTL_S, RebaseInputs, binds, first_free, is_cold
from foredeck.context.digests import DigestSize
from foredeck.context.intake.adoption import ADOPTED, before_us, followed, told_of
from foredeck.context.intake.alignment import Alignment, align, layout_before
from foredeck.context.intake.ingest import Ingest, IngestedResult
from foredeck.context.intake.notices import attach_notices
from foredeck.context.intake.observing import observe_lost
from foredeck.context.intake.system import take_system
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import Part, recipe_chars
from foredeck.context.messages.repairs import repair
from foredeck.context.policies.asking import PolicyRun, ask
from foredeck.context.policies.policy import Policy, UseRule
from foredeck.context.policies.uses import Uses
from foredeck.context.recording import record_call, record_host_call
from foredeck.context.rendering.layout import Layout, NewResult, RenderContext, reference_part
from foredeck.context.rendering.render_context import render_context
from foredeck.context.reports import take_report
from foredeck.context.rewriting.prediction import KEEP_CALLS, foresee, marker_of
from foredeck.context.rewriting.refresh import RefreshFinder
from foredeck.context.rewriting.rewriting import CallContext, RebaseSettings, rewrite
from foredeck.context.state.branch import Fields
from foredeck.context.state.gauge import Calibrator, Gauge
from foredeck.context.state.request import Answer, Model, Request
from foredeck.context.state.session import Session
from foredeck.context.window.compacting import (
    CompactionDecision,
    CompactionRequest,
    CompactionSettings,
    judge,
)
from foredeck.context.window.compactions import name_summary, set_aside
from foredeck.context.window.fitting import WindowBudget, compacted_until, fit
from foredeck.context.window.pressure import usable_window

MAX_PARALLEL = 1000
"""How far behind an assistant message its results are looked for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user can change about assembling."""

    rules: RebaseSettings = field(default_factory=RebaseSettings)
    cache_ttl_s: float | None = None
    cache_rule: CacheRule | None = None
    """By which rule the provider keeps prompts, where it is not to be told from the model."""
    min_saving_chars: int = 120
    digests: DigestSize = field(default_factory=DigestSize)
    summary_chars: int = 8000


class Assembler:
    """Assembles the calls of one session."""

    def __init__(
        self, session: Session, layout: Layout, policy: Policy, settings: Settings | None = None
    ) -> None:
        self.session = session
        self.layout = layout
        self.policy = policy
        self._settings = settings or Settings()
        self.uses = Uses(session.cwd, policy.uses or UseRule())
        self._refreshes = RefreshFinder()
        self._calibrator = Calibrator(session.workspace)
        self._gauge = Gauge()
        self._laid = layout.name
        """The layout in which the prompt at hand is written; another one's until it may change."""

    def assemble(self, request: Request) -> Answer:
        """The answer to one request; its call record is committed before this returns.

        Raises `OutOfSync` where the host must send its whole list, and `StoreError` where the
        record cannot be written: then the session must be opened anew.
        """
        session = self.session
        take_system(session, request.system, request.tools)
        alignment = align(session, request)
        observe_lost(session, alignment.items, alignment.matched)
        reported = self._calibrate(request, alignment)
        start, whole = self._host_calls(alignment)
        ready = self._repeated(request, alignment, start)
        if ready is not None:
            return ready
        last = self._last_sent()
        layout = layout_before(session) or self.layout.name
        strange = layout != self.layout.name or self._has_left_over()
        relaid = strange and not binds(session.branch.conversation, alignment.items)
        self._laid = self.layout.name if relaid else layout
        if relaid:
            session.branch = session.branch.without_rendering()
            start = whole = 0
        context = self._render_context()
        rewritten = any(item.key.address in session.log.known for item in alignment.items[start:])
        self._repair(context, alignment.items, whole)
        self._take_in(context, alignment.items, start)
        moment = self._moment(request, alignment, last, relaid=relaid)
        model = request.model
        wire = request.wire
        asked = ask(
            session,
            self.policy,
            self.uses,
            wire=wire,
            cold=moment.lost,
            time_ms=request.time_ms,
        )
        prices = model.prices if model else Prices()
        changed = start if rewritten else None
        reach = self._reach(request, start, warm=start > 0 and not moment.lost)
        call = CallContext(
            moment, prices, start, self.session.frame.chars, reach, changed, wire.thinking
        )
        rules = self._settings.rules
        find = self._refreshes.finder(self.policy.uses, self.uses, wire)
        decision = rewrite(session, context, self.layout, call, rules, asked.due, find)
        self._insert_pools(context)
        fitted = self._fit(context, request, moment.window)
        if fitted is not None:
            decision, whole = fitted, 0
        if start < len(session.branch.conversation):
            attach_notices(session, context)
        cache = self._foresee(context, call, asked, whole)
        if reported is not None:
            cache["reported"] = reported
        if request.warmed_ms:
            cache["warmed_ms"] = request.warmed_ms
        return self._commit(context, request, alignment, start, whole, decision, cache)

    def compact(self, wish: CompactionRequest, manner: CompactionSettings) -> CompactionDecision:
        """What to do about a compaction that the host has in mind."""
        model = wish.model
        if model is not None:
            self._gauge = self._calibrator.gauge(model.name, model.api)
        self.session.take_up_newest()
        return judge(self.session, self._render_context(), self._gauge, wish, manner)

    def _reach(self, request: Request, start: int, *, warm: bool) -> CacheReach:
        """What the provider's cache would find of the branch."""
        model, entries = request.model or Model("", ""), self.session.branch.entries
        entries.warm(request.warmed_ms)
        rule = model.cache if model.prices.cached else "none"
        if self._settings.cache_rule and rule != "none":
            rule = self._settings.cache_rule
        return reach_of(
            rule,
            self.session.branch.conversation,
            entries.alive(request.time_ms, self._ttl_s(request)),
            start=start,
            warm=warm,
            marks=model.marks and self.layout.keeps_bytes,
        )

    def _foresee(
        self, context: RenderContext, call: CallContext, asked: PolicyRun, whole: int
    ) -> dict[str, Any]:
        """What the cache will do with the call, and where one more marker goes."""
        changed_from = min(min(context.changed, default=call.start), whole, call.start)
        if not self.layout.keeps_bytes:
            changed_from = 0
        before, soon = None, None
        if call.reach.markable:
            record = self.session.newest_record or {}
            if self.session.branch.depth % KEEP_CALLS and changed_from >= call.start:
                before = (record.get("cache") or {}).get("marked")
            else:
                soon = asked.first_to_go()
        return foresee(context, call, changed_from, soon, before=before)

    def _calibrate(self, request: Request, alignment: Alignment) -> list[int] | None:
        """Take in what was reported for the call before, and the gauge for this one."""
        reported = take_report(self.session, alignment, self._calibrator)
        model = request.model
        self._gauge = self._calibrator.gauge(model.name, model.api) if model else Gauge()
        return reported

    def _render_context(self) -> RenderContext:
        settings = self._settings
        context = render_context(
            self.session, settings.min_saving_chars, settings.digests, self._gauge
        )
        context.aside = lambda item: set_aside(self.session, item, settings.summary_chars)
        return context

    def _host_calls(self, alignment: Alignment) -> tuple[int, int]:
        """Record the calls that went out without us.

        Returns how much of the list stands, and how much of that stands with our own messages.
        """
        done = whole = alignment.matched
        for outcome in alignment.without_us or before_us(self.session, alignment):
            if outcome.messages < done:
                continue
            context = self._render_context()
            self._take_in(context, alignment.items[: outcome.messages], done)
            done, whole = outcome.messages, min(whole, outcome.edited)
            if outcome.reason == ADOPTED:
                self.session.pending.user_messages.append(told_of(alignment.items))
            layout = layout_before(self.session) or self.layout.name
            record_host_call(self.session, outcome, layout, self.policy.name)
        whole = min(done, whole)
        return done, whole if alignment.continued else self._whole(alignment.items, whole)

    def _whole(self, items: list[Item], whole: int) -> int:
        """How much of a list that was taken up again stands with the repairs that it needs.

        A call that went out without us may have left it with holes.
        """
        wanted, branch = repair(items), self.session.branch
        holes = (wanted.inserts.keys() - branch.inserts.keys()) | (wanted.drops - branch.drops)
        return min({whole, *holes})

    def _repeated(self, request: Request, alignment: Alignment, start: int) -> Answer | None:
        """The answer that was given before, where the very same list is asked for again."""
        session = self.session
        if start != len(alignment.items) or session.branch.call is None:
            return None
        record = session.log.records[session.branch.call]
        if record["decision"].get("kind") == "host" or record["layout"] != self.layout.name:
            return None
        if record["kept"] + len(record["keys"]) != start:
            return None
        if request.model is not None and record["model"].get("name") != request.model.name:
            return None
        session.workspace.discard_known()
        return self._answer(record, start if alignment.continued else 0)

    def _last_sent(self) -> Fields | None:
        """The newest call of the session, whichever branch it was on."""
        session = self.session
        newest = session.log.records.get(f"call:{session.id}:{session.log.newest}")
        if newest is None and session.branch.call is not None:
            return session.log.records.get(session.branch.call)
        return newest

    def _take_in(self, context: RenderContext, items: list[Item], start: int) -> None:
        """Append new messages, make objects of them and render them for the first time."""
        session, conversation = self.session, self.session.branch.conversation
        ingest = Ingest(session)
        for index in range(len(conversation), len(items)):
            conversation.append(items[index])
        for index in followed(session, range(_turn_start(items, start), len(items))):
            item = items[index]
            if item.kind == "assistant":
                ingest.assistant(item, _results_after(items, index), new=index >= start)
            elif item.kind != "result":
                ingest.other(item)
            elif index >= start:
                self._place(context, index, ingest.result(item))
            else:
                ingest.old_result(item)
        ingest.finish()

    def _place(self, context: RenderContext, index: int, fact: IngestedResult) -> None:
        conversation = context.conversation
        if index in self.session.branch.drops:
            self._leave_out(context, index, fact.subject)
            return
        if fact.refers_to is not None:
            self._lean(context, index, fact.refers_to)
            return
        placed = NewResult(index, fact.subject, fact.version, fact.text_hash)
        if fact.known and self._was_put_away(fact.subject, index):
            shown = conversation.parts[index]
            shown.subject, shown.version = placed.subject, placed.version
            shown.text_hash = placed.text_hash
            part = reference_part(context, index)
            if recipe_chars(part.blocks, conversation.items[index]) < shown.chars:
                context.render(index, part)
                return
        if fact.known and fact.subject is not None:
            context.sets.activate(fact.subject)
        self.layout.place(context, placed)
        if fact.subject is not None and conversation.parts[index].form != "same":
            conversation.watch(index, fact.subject)

    def _was_put_away(self, subject: int | None, index: int) -> bool:
        """Whether this branch has had an object and let it go, and nobody waits for it now."""
        sets = self.session.branch.sets
        in_flight = index > self.session.branch.conversation.last_assistant()
        return subject in sets.pool and subject not in sets.active and not in_flight

    def _lean(self, context: RenderContext, index: int, ordinal: int) -> None:
        """A context tool says that an object is in view: that is a use of what is in view."""
        base = context.conversation.newest_holder(ordinal)
        context.render(index, Part("note", base=base))
        if base is not None:
            context.conversation.lean(base, index)

    def _moment(
        self, request: Request, alignment: Alignment, last: Fields | None, *, relaid: bool
    ) -> RebaseInputs:
        model = request.model
        last_ms = max(last["time_ms"], request.warmed_ms) if last else None
        last_model = (last["model"].get("name") if last else None) or None
        return RebaseInputs(
            cold=is_cold(request.time_ms, last_ms, self._ttl_s(request)),
            model_changed=bool(model and last_model and last_model != model.name),
            history_replaced=alignment.replaced,
            tokens=self._gauge.prompt(self.session.branch.conversation, self.session.frame.chars),
            window=usable_window(self.session, model, self._gauge),
            relaid=relaid,
        )

    def _ttl_s(self, request: Request) -> float:
        """For how long the provider keeps what is not used again."""
        if self._settings.cache_ttl_s is not None:
            return self._settings.cache_ttl_s
        return (request.model.cache_ttl_s if request.model else None) or DEFAULT_TTL_S

    def _fit(
        self, context: RenderContext, request: Request, window: int | None
    ) -> dict[str, Any] | None:
        """The prompt into the window, where folding was not enough."""
        settings = self._settings
        size, low = self.session.frame.chars, settings.rules.water.low
        refused = bool(request.model and window != request.model.window)
        summary, now = settings.summary_chars, request.time_ms
        unseals = request.wire.thinking
        space = WindowBudget(window, self._gauge, size, low, summary, now, unseals, refused)
        return fit(self.session, context, space)

    def _repair(self, context: RenderContext, items: list[Item], start: int) -> None:
        """Our own messages between the host's, and what is left out of them, from `start` on."""
        session, conversation = self.session, context.conversation
        repairs = repair(items, start)
        before, session.branch.inserts = session.branch.inserts, repairs.inserts
        for index, ours in before.items():
            stay = [m for m in ours if index < start or m.get("ends") or m.get("layout")]
            if stay:
                session.branch.inserts[index] = [*session.branch.inserts.get(index, ()), *stay]
        session.branch.drops = {i for i in session.branch.drops if i < start} | repairs.drops
        name_summary(session, items, start)
        until, _ = compacted_until(session)
        parts = conversation.parts[:until]
        session.branch.drops |= {i for i, part in enumerate(parts) if part.form == "dropped"}
        for index in sorted(repairs.drops):
            if index < len(conversation):
                self._leave_out(context, index, conversation.parts[index].subject)

    def _leave_out(self, context: RenderContext, index: int, subject: int | None) -> None:
        """A message that is not sent shows nothing, and keeps nothing active."""
        context.branch.release(index, subject)
        context.render(index, Part("dropped", []))

    def _has_left_over(self) -> bool:
        """Whether another layout's text stands between the messages of one that has none."""
        ours = (m for messages in self.session.branch.inserts.values() for m in messages)
        return self.layout.keeps_bytes and any(m.get("layout") for m in ours)

    def _insert_pools(self, context: RenderContext) -> None:
        """What the layout puts between the messages: written anew, but for what sealed reasoning
        of the turn under way is bound to."""
        session, free = self.session, first_free(context.conversation)
        if self.layout.keeps_bytes:
            # What is there is another layout's, until the turn has ended and all is laid anew.
            free = len(context.conversation) + 1
        stays = {
            index: [m for m in ours if index < free or not m.get("layout")]
            for index, ours in sorted(session.branch.inserts.items())
        }
        session.branch.inserts = {index: ours for index, ours in stays.items() if ours}
        held = (m for ours in session.branch.inserts.values() for m in ours if m.get("layout"))
        standing = [block for message in held for block in message["blocks"]]
        for index, blocks in self.layout.inserts(context, standing).items():
            ours = {"kind": "user", "blocks": blocks, "layout": True}
            others = session.branch.inserts.get(index, [])
            session.branch.inserts[index] = [ours, *others] if index == 0 else [*others, ours]

    def _commit(
        self,
        context: RenderContext,
        request: Request,
        alignment: Alignment,
        start: int,
        whole: int,
        decision: dict[str, Any],
        cache: dict[str, Any],
    ) -> Answer:
        """`start`: first message that no call has held; `whole`: first whose repairs are new."""
        changed_from = min(context.changed, default=start)
        stateless = not self.layout.keeps_bytes
        record = record_call(
            self.session,
            request,
            changed=sorted(context.changed),
            changed_from=0 if stateless else whole,
            decision=decision,
            layout=self._laid,
            policy=self.policy.name,
            fixed_chars=self.session.frame.chars,
            gauge=self._gauge,
            cache=cache,
        )
        anew = stateless or decision.get("reason") == "window"
        step = min(changed_from, start) if alignment.continued and not anew else 0
        return self._answer(record, step)

    def _answer(self, record: Fields, start: int) -> Answer:
        session, conversation = self.session, self.session.branch.conversation
        edits = [
            (index, part.blocks)
            for index in range(start, len(conversation))
            if (part := conversation.parts[index]).blocks
        ]
        return Answer(
            call=record["ordinal"],
            start=start,
            edits=edits,
            inserts={i: m for i, m in session.branch.inserts.items() if i >= start},
            drops=sorted(i for i in session.branch.drops if i >= start),
            decision=dict(record["decision"]),
            marker=marker_of(session.branch.conversation, record.get("cache")),
            stats=dict(record["stats"]),
        )


def _results_after(items: list[Item], index: int) -> dict[str, Item]:
    """The results that answer the assistant message at `index`, by call id."""
    found: dict[str, Item] = {}
    for item in items[index + 1 : index + 1 + MAX_PARALLEL]:
        if item.kind == "assistant":
            break
        if item.kind == "result":
            found[item.call_id] = item
    return found


def _turn_start(items: list[Item], start: int) -> int:
    """Where to begin reading so that the turn under way is whole."""
    for index in range(start - 1, -1, -1):
        if items[index].kind == "assistant":
            return index
    return 0
