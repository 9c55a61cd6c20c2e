"""Calls that are not assembled: those that went out without us, and those that are repeated."""

from __future__ import annotations

from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.recording import record_host_call
from foredeck.context.intake.alignment import ADOPTED, adopted_call, adoption_report, layout_before
from foredeck.context.intake.take_in import first_unrepaired, take_in
from foredeck.model.calls import CallRecord


def record_host_calls(call: CallInProgress) -> None:
    """Take in and record the calls of this list that went out without us.

    Moves `first_new` behind the messages that they held, and `first_changed_insert` to where the
    newest of them had none of our messages any more.
    """
    session, alignment = call.session, call.alignment
    for outcome in alignment.without_us or adopted_call(session.chat.log, alignment):
        if outcome.messages < call.first_new:
            continue
        items, active = call.items[: outcome.messages], call.facilities.active_task
        take_in(call.context, session.inbox, call.layout, items, call.first_new, active=active)
        call.first_new = outcome.messages
        call.first_changed_insert = min(call.first_changed_insert, outcome.edited)
        if outcome.reason == ADOPTED:
            session.inbox.user_messages.append(adoption_report(call.items))
        layout = layout_before(session.chat) or call.layout.name
        record_host_call(
            session.objects, session.chat, session.frame, outcome, layout, call.policy.name
        )
        call.start_rendering()
    call.first_changed_insert = min(call.first_new, call.first_changed_insert)
    if not alignment.continued:
        # A call that went out without us may have left the list with holes.
        unrepaired = first_unrepaired(session.chat.branch, call.items)
        call.first_changed_insert = min(call.first_changed_insert, unrepaired)


def repeated_record(call: CallInProgress) -> CallRecord | None:
    """The record of the call before, where the very same list is to go to the same model again."""
    session, model = call.session, call.request.model
    record = session.chat.branch_record
    if record is None or call.first_new != len(call.items):
        return None
    if record.is_host or record.layout != call.layout.name:
        return None
    if record.length != call.first_new:
        return None
    if model is not None and record.model.name != model.name:
        return None
    return record
