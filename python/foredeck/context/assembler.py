"""From the host's messages to what the model sees: the steps of one model call, in order.

The record is committed before the answer: a prompt without one could not be repeated after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.calls.call import CallInProgress, rendering_of
from foredeck.context.calls.deciding import choose_layout, decide, fit_window
from foredeck.context.calls.feedback import Refusals, learn_bindings, seal_rule, take_report
from foredeck.context.calls.own_lines import attach_continuation, attach_lines, attach_time
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
from foredeck.context.policies.policy import make_policy
from foredeck.context.rewriting.refreshing import Finders
from foredeck.context.state.facilities import Facilities, Heir, LineSource
from foredeck.context.state.gauge import Calibrator, Gauge
from foredeck.context.state.request import Answer, CompactionRequest, Request
from foredeck.context.state.session import Session
from foredeck.model.observations import Writer

if TYPE_CHECKING:  # imported with the first compaction
    from foredeck.context.compacting import CompactionDecision


class Assembler:
    """Assembles the calls of one session."""

    def __init__(self, config: Config, session: Session, facilities: Facilities) -> None:
        self.config = config
        self.session = session
        self._objects, self._chat, self._inbox = session.objects, session.chat, session.inbox
        self.policy = make_policy(config.policy, config)
        self.finders = Finders.of_policy(session.info.cwd, self.policy, config)
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
        # Calls that went out without us come first: the provider has seen their prompts.
        record_host_calls(call)
        # The host sends the same list again if a call has failed: it gets the recorded prompt, and
        # no further call is counted.
        repeated = repeated_record(call)
        if repeated is not None:
            self._objects.workspace.commit_if_new()
            return answer_call(call, repeated, call.first_new)
        # Before anything is rendered: another layout renders the whole list anew.
        choose_layout(call)
        # New messages join the plan before anything is decided: they make the prompt longer, and
        # use what they name. All of them join before the repair, since only the whole list shows
        # what it lacks; the repair comes before rendering, since an omitted message shows nothing.
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
            turn_fields=self.facilities.turn_fields,
            pastes=self.config.pastes.objects,
        )
        follow_renames(context, self._inbox, continued=continued)
        for heir in self.facilities.on(Heir):
            heir.inherit()
        before = context.plan.chars_sent + context.plan.chars_said
        costs, policy_run = decide(call)
        put_layout_text(context, call.layout)
        fit_window(call)
        if call.decision.is_rebase:
            after = context.plan.chars_sent + context.plan.chars_said
            call.shorter_by = max(0, before - after)
        # After the window was fitted: these lines are short, and `fitting.py` leaves room for them.
        if call.first_new < len(call.items):
            attach_time(context, call.first_new, request.zone, self.config.head.pause_minutes)
            attach_continuation(call)
            attach_lines(context, self.facilities.on(LineSource))
            attach_notices(context, self._inbox)
        record = record_call(call, costs, policy_run)
        return answer_call(call, record, call.first_changed)

    def take_history(self, request: Request) -> int:
        """Takes in the chat so far before the first call; returns how many of its messages the
        branch has."""
        if self.session.frame.version is not None:
            # Both may change until the call: no record may say that these were sent.
            request.system = request.tools = None
        call = self._align(request)
        record_host_calls(call)
        count = len(self._chat.branch.plan)
        self._chat.branch.ahead = count > 0
        return count

    def prepare(self) -> None:
        """Reads uses in advance, while no call waits."""
        if self.policy.rules:
            self.finders.uses.follow(self._chat.branch.plan)

    def compact(self, request: CompactionRequest) -> CompactionDecision:
        # Loads with the first compaction.
        from foredeck.context.compacting import HostCompaction, decide_compaction

        if request.model is not None:
            self._gauge = self._calibrator.gauge(request.model.name, request.model.api)
        self._chat.take_up_newest()
        context = rendering_of(self.session, self.config, self._gauge, self.finders.uses.names)
        compaction = HostCompaction(
            context, request, self.facilities.stand_ins, self.config.rebase.high_water
        )
        authors, by_user = self.config.compaction, request.by == "user"
        author = authors.manual if by_user else authors.automatic
        return decide_compaction(compaction, self._inbox, self.finders.folds, author)

    def finish_compaction(self, summary: str, writer: Writer) -> None:
        # Loads with the first compaction.
        from foredeck.context.compacting import finish_compaction

        context = rendering_of(self.session, self.config, self._gauge, self.finders.uses.names)
        finish_compaction(context, self._inbox, self.facilities.stand_ins, summary, writer)

    def _align(self, request: Request) -> CallInProgress:
        """Goes to the branch that the list continues, and learns from the last call."""
        alignment = align(self._chat, request)
        # After aligning: a request that is out of sync must leave nothing to commit.
        take_system(self._objects, self.session.frame, request.system, request.tools)
        message = learn_bindings(self._objects.workspace, self.session.info.id, self._chat, request)
        if message is not None:
            self._inbox.user_messages.append(message)
        # Any other layout would move its blocks at every call at which they may move.
        within = self.config.rebase.within_sealed_turns and self._layout.keeps_bytes
        self._chat.branch.plan.seals = seal_rule(
            self._objects.workspace, self._chat, alignment, request.model, within=within
        )
        # Before `take_in`, which treats them like results that were reported.
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
