"""What the host is answered: how its list is to be changed."""

from __future__ import annotations

from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.prediction import marker_of
from foredeck.context.state.chat import Branch
from foredeck.context.state.request import Answer
from foredeck.model.calls import CallRecord


def answer_call(call: CallInProgress, record: CallRecord) -> Answer:
    """The answer to a call that was just recorded: what has changed since the answer before."""
    # Only what has changed crosses the wire: the shim keeps what it has of the messages before
    # `start`, so an answer does not grow with the session. It can keep that only where its list
    # continues the one of the last answer, and a layout that renders all at every call may have
    # changed any of it.
    goes_on = call.alignment.continued and call.keeps_bytes
    start = call.first_changed if goes_on else 0
    return _answer(call.session.chat.branch, record, start)


def answer_again(call: CallInProgress, record: CallRecord) -> Answer:
    """The answer that was given before: all of it, unless the host is known to have it."""
    call.session.objects.workspace.discard_known()
    return _answer(
        call.session.chat.branch, record, call.first_new if call.alignment.continued else 0
    )


def _answer(branch: Branch, record: CallRecord, start: int) -> Answer:
    plan = branch.plan
    return Answer(
        call=record.ordinal,
        start=start,
        outgoing=list(plan.outgoing(start)),
        marker=marker_of(plan, record.cache),
    )
