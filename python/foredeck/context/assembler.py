"""From the host's messages to what the model sees: the steps of one model call, in order.

The record is committed before the answer: a prompt without one could not be repeated after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.calls.call import CallInProgress, rendering_of
from foredeck.context.calls.deciding import choose_layout, decide, fit_window
from foredeck.context.calls.feedback import (
    Refusals,
    learn_bindings,
    seal_rule,
    take_report,
)
from foredeck.context.calls.own_lines import attach_continuation, attach_task_news, attach_time
from foredeck.context.calls.recording import (
    answer_call,
    record_call,
    record_host_calls,
    repeated_record,
)
from foredeck.context.intake.early_results import store_lost_results
from foredeck.context.intake.file_changes import attach_notices, follow_renames
from foredeck.context.intake.take_in import (
    align,
    put_layout_text,
    repair_list,
    take_in,
    take_system,
)
from foredeck.context.layouts import make_layout
from foredeck.context.policies.built_in import make_policy
from foredeck.context.policies.uses import Uses
from foredeck.context.rewriting.current import Finders
from foredeck.context.state.gauge import Calibrator, Gauge
from foredeck.context.state.request import Answer, CompactionRequest, Request
from foredeck.context.state.session import ContextFacilities, Session
from foredeck.model.observations import Writer

if TYPE_CHECKING:  # imported with the first compaction
    from foredeck.context.compacting import CompactionDecision


class Assembler:
    """Assembles the calls of one session."""

    def __init__(self, config: Config, session: Session, facilities: ContextFacilities) -> None:
        self.config = config
        self.session = session
        self._objects, self._chat, self._inbox = session.objects, session.chat, session.inbox
        self.policy = make_policy(config.policy, config)
        self.uses = Uses.of_policy(session.info.cwd, self.policy, config)
        self.finders = Finders(self.uses)
        self._layout = make_layout(config.layout)
        self.facilities = facilities
        self._calibrator = Calibrator(session.objects.workspace)
        self.refusals = Refusals(session.objects, session.chat, session.inbox)
        self._gauge = Gauge()

    def assemble(self, request: Request) -> Answer:
        """Commits the call record, then answers.

        Raises `OutOfSync` if the host must send its whole list, and `StoreError`: reopen the
        session then.
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
        repair_list(context, call.items, call.first_changed_say)
        take_in(
            context,
            self._inbox,
            call.layout,
            call.items,
            call.first_new,
            active=self.facilities.active_task,
            pastes=self.config.pastes.objects,
        )
        follow_renames(context, self._inbox, continued=continued)
        if self.facilities.memory is not None:
            self.facilities.memory.take_over()
        before = context.plan.chars_sent + context.plan.chars_said
        costs, policy_run = decide(call)
        put_layout_text(context, call.layout)
        fit_window(call)
        if call.decision.is_rebase:
            after = context.plan.chars_sent + context.plan.chars_said
            call.shorter_by = max(0, before - after)
        # After the window was fitted: the lines are short, and `fitting.py` leaves room for them.
        if call.first_new < len(call.items):
            attach_time(context, call.first_new, request.zone, self.config.head.pause_minutes)
            attach_continuation(call)
            attach_task_news(self.facilities.tasks, context)
            attach_notices(context, self._inbox)
        record = record_call(call, costs, policy_run)
        return answer_call(call, record, call.first_changed)

    def take_history(self, request: Request) -> int:
        """Takes in older history before the first call; returns how many of the messages the branch
        holds."""
        if self.session.frame.version is not None:
            # They may change until the call: no record is to say that these were sent.
            request.system = request.tools = None
        call = self._align(request)
        record_host_calls(call)
        count = len(self._chat.branch.plan)
        self._chat.branch.ahead = count > 0
        return count

    def prepare(self) -> None:
        if self.policy.rules:
            self.uses.follow(self._chat.branch.plan)

    def compact(self, request: CompactionRequest) -> CompactionDecision:
        # Loads with the first compaction.
        from foredeck.context.compacting import HostCompaction, decide_compaction

        if request.model is not None:
            self._gauge = self._calibrator.gauge(request.model.name, request.model.api)
        self._chat.take_up_newest()
        context = rendering_of(self.session, self.config, self._gauge, self.uses.names)
        compaction = HostCompaction(
            context, request, self.facilities.stand_ins, self.config.rebase.high_water
        )
        authors, by_user = self.config.compaction, request.by == "user"
        author = authors.manual if by_user else authors.automatic
        return decide_compaction(compaction, self._inbox, self.finders.folds, author)

    def finish_compaction(self, summary: str, writer: Writer) -> None:
        # Loads with the first compaction.
        from foredeck.context.compacting import finish_compaction

        context = rendering_of(self.session, self.config, self._gauge, self.uses.names)
        finish_compaction(context, self._inbox, self.facilities.stand_ins, summary, writer)

    def _align(self, request: Request) -> CallInProgress:
        """Goes to the branch that the list continues, and learns from the last call."""
        alignment = align(self._chat, request)
        # After aligning: a request that is out of step must leave nothing to be committed.
        take_system(self._objects, self.session.frame, request.system, request.tools)
        message = learn_bindings(self._objects.workspace, self.session.info.id, self._chat, request)
        if message is not None:
            self._inbox.user_messages.append(message)
        # A layout that renders all at every call would move its blocks each time they may move.
        within = self.config.rebase.within_sealed_turns and self._layout.keeps_bytes
        self._chat.branch.plan.seals = seal_rule(
            self._objects.workspace, self._chat, alignment, request.model, within=within
        )
        # Before the list is taken in, which finds them like results that were reported.
        store_lost_results(
            self._objects, self._chat, self._inbox, alignment.items, alignment.matched
        )
        reported = take_report(self._chat, alignment, self._calibrator, request.model)
        # After the report, from which the calibrator has learned.
        model, gauge_of = request.model, self._calibrator.gauge
        self._gauge = Gauge() if model is None else gauge_of(model.name, model.api)
        return CallInProgress(
            self.session,
            request,
            self._layout,
            self.policy,
            self.config,
            self._gauge,
            alignment,
            self.finders,
            reported,
            first_new=alignment.matched,
            first_changed_say=alignment.matched,
            facilities=self.facilities,
        )
