"""One call of the model: from the host's message list to what the model will see.

`Assembler.assemble` has the order of the steps: align the list with what was sent before, take in
what is new, decide whether to rewrite, fit the prompt into the window, commit the call record, and
only then answer: a prompt whose record is not stored could not be repeated after a crash. The steps
themselves are in `calls/` and `intake/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.context.calls.call import AssemblySettings, CallInProgress, Finders, rendering_of
from foredeck.context.calls.costs import predict_cache
from foredeck.context.calls.deciding import choose_layout, decide, fit_window
from foredeck.context.calls.feedback import Refusals, seal_rule, take_report
from foredeck.context.calls.newest_lines import attach_continuation, attach_task_news, attach_time
from foredeck.context.calls.recording import (
    answer_call,
    record_call,
    record_host_calls,
    repeated_record,
)
from foredeck.context.intake.alignment import align
from foredeck.context.intake.early_results import store_lost_results
from foredeck.context.intake.file_changes import attach_notices, follow_renames
from foredeck.context.intake.take_in import put_layout_text, repair_list, take_in, take_system
from foredeck.context.policies.policy import Policy, UseRule
from foredeck.context.policies.uses import Uses
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.layouts import Layout
from foredeck.context.state.features import ContextFacilities
from foredeck.context.state.gauge import Calibrator, Gauge
from foredeck.context.state.opening import Session
from foredeck.context.state.request import Answer, CompactionRequest, Request
from foredeck.model.observations import Writer

if TYPE_CHECKING:  # imported with the first compaction
    from foredeck.context.compacting import CompactionDecision


class Assembler:
    """Assembles the calls of one session."""

    def __init__(
        self,
        session: Session,
        layout: Layout,
        policy: Policy,
        settings: AssemblySettings | None = None,
        facilities: ContextFacilities | None = None,
    ) -> None:
        self.session = session
        self._objects, self._chat, self._inbox = session.objects, session.chat, session.inbox
        self.policy = policy
        self.settings = settings or AssemblySettings()
        self.uses = Uses(session.info.cwd, policy.use_rule or UseRule())
        """When each piece of content was last used."""
        self.finders = Finders(self.uses)
        self._layout = layout
        self.facilities = facilities or ContextFacilities()
        self._calibrator = Calibrator(session.objects.workspace)
        self.refusals = Refusals(session.objects, session.chat, session.inbox)
        self._gauge = Gauge()
        """For the model that was called last."""

    def assemble(self, request: Request) -> Answer:
        """The answer to one request; its call record is committed before this returns.

        Raises `OutOfSync` where the host must send its whole list, and `StoreError` where the
        record cannot be written: then the session must be opened again.
        """
        call = self._align(request)
        # First what went out without us: it is part of what the provider has been sent.
        record_host_calls(call)
        # The same list again, as when the host repeats a call that has failed: the prompt that is
        # on record goes out once more, and is not counted as another call.
        repeated = repeated_record(call)
        if repeated is not None:
            self._objects.workspace.commit_if_new()
            return answer_call(call, repeated, call.first_new)
        # Before anything is rendered: another layout renders all of the list anew.
        choose_layout(call)
        # The new messages, before it is decided what folds: they make the prompt longer, and what
        # they name is in use. All of them join the plan before it is repaired, since only the whole
        # list shows what it lacks; and it is repaired before they are rendered, since what is left
        # out shows nothing.
        context, continued = call.context, call.alignment.continued
        for item in call.items[len(context.plan) :]:
            context.plan.append(item)
        repair_list(context, call.items, call.says_decided_from)
        take_in(
            context,
            self._inbox,
            call.layout,
            call.items,
            call.first_new,
            active=self.facilities.active_task,
            pastes=self.settings.pastes,
        )
        follow_renames(context, self._inbox, continued=continued)
        if self.facilities.memory is not None:
            self.facilities.memory.take_over()
        costs, policy_run = decide(call)
        put_layout_text(context, call.layout)
        fit_window(call)
        # After the window was fitted: the lines are short, and `fitting.py` leaves room for them.
        if call.first_new < len(call.items):
            attach_time(context, call.first_new, request.zone, self.settings.pause_minutes)
            attach_continuation(call)
            attach_task_news(self.facilities.tasks, context)
            attach_notices(context, self._inbox)
        record = record_call(call, predict_cache(call, costs, policy_run))
        return answer_call(call, record, call.first_changed)

    def take_history(self, request: Request) -> int:
        """Go to the branch that a session's messages continue, ahead of its first call here, and
        take in what is from before foredeck was on. Returns how many of the messages are held then:
        the first call goes on from there as if it had brought them itself.
        """
        if self.session.frame.version is not None:
            # They may change until the call: no record is to say that these were sent.
            request.system = request.tools = None
        call = self._align(request)
        record_host_calls(call)
        held = len(self._chat.branch.plan)
        self._chat.branch.ahead = held > 0
        return held

    def prepare(self) -> None:
        """Read ahead what the next call will want to know of the messages that are held."""
        if self.policy.use_rule:
            self.uses.follow(self._chat.branch.plan)

    def compact(self, request: CompactionRequest) -> CompactionDecision:
        """What to do about a compaction that the host has in mind."""
        # Loads with the first compaction.
        from foredeck.context.compacting import HostCompaction, decide_compaction

        if request.model is not None:
            self._gauge = self._calibrator.gauge(request.model.name, request.model.api)
        self._chat.take_up_newest()
        context = rendering_of(self.session, self.settings, self._gauge, self.uses.names)
        settings = self.settings
        compaction = HostCompaction(context, request, self.facilities.stand_ins, settings.marks)
        by_user = request.by == "user"
        author = settings.manual_summary if by_user else settings.automatic_summary
        return decide_compaction(compaction, self._inbox, self.finders.folds, author)

    def finish_compaction(self, summary: str, writer: Writer) -> None:
        """Another has written the summary of the compaction that was asked for last."""
        # Loads with the first compaction.
        from foredeck.context.compacting import finish_compaction

        context = RenderContext(self._objects, self._chat)
        finish_compaction(context, self._inbox, self.facilities.stand_ins, summary, writer)

    def _align(self, request: Request) -> CallInProgress:
        """Go to the branch that the list continues, and learn what became of the previous call."""
        alignment = align(self._chat, request)
        # After aligning: a request that is out of step must leave nothing to be committed.
        take_system(self._objects, self.session.frame, request.system, request.tools)
        # A layout that renders all at every call would move its blocks each time they may move.
        within = self.settings.within_sealed_turns and self._layout.keeps_bytes
        self._chat.branch.plan.seals = seal_rule(
            self._objects.workspace, self._chat, alignment, request.model, within=within
        )
        # Before the list is taken in, which finds them like results that were reported.
        store_lost_results(
            self._objects, self._chat, self._inbox, alignment.items, alignment.matched
        )
        reported = take_report(self._chat, alignment, self._calibrator, request.model)
        # After the report, from which the calibrator has learned.
        model, known = request.model, self._calibrator.gauge
        self._gauge = Gauge() if model is None else known(model.name, model.api)
        return CallInProgress(
            self.session,
            request,
            self._layout,
            self.policy,
            self.settings,
            self._gauge,
            alignment,
            self.finders,
            reported,
            first_new=alignment.matched,
            says_decided_from=alignment.matched,
            facilities=self.facilities,
        )
