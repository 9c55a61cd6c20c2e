"""Model calls of an open session: reading what the host sends, and writing what it is answered."""

from __future__ import annotations

from foredeck.accounting.figure import session_figure
from foredeck.context.calls.feedback import unpriced
from foredeck.context.compactions import take_back
from foredeck.context.intake.early_results import take_answer
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.state.opening import Session
from foredeck.context.state.request import Answer
from foredeck.engine.memory import advise_on_rules
from foredeck.engine.opened import OpenedSession
from foredeck.errors import OutOfSync
from foredeck.hosts.outgoing import to_ops
from foredeck.hosts.pi.requests import to_compaction_request, to_history, to_request
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
    SessionHistoryParams,
)
from foredeck.model.calls import CallRecord


def take_history(opened: OpenedSession, params: SessionHistoryParams) -> int:
    """Take in what a session holds: how many of its messages the engine has now."""
    blobs, known = opened.session.objects.workspace.blobs, opened.session.chat.log.messages
    messages = opened.assembler.take_history(to_history(params, blobs, known))
    opened.prepare()
    return messages


def assemble(opened: OpenedSession, params: AssembleParams) -> Answer:
    """What the model shall see of a message list; committed before this returns."""
    blobs = opened.session.objects.workspace.blobs
    try:
        request = to_request(params, blobs, opened.session.chat.log.messages)
        opened.session.inbox.typed += params.typed
        return opened.assembler.assemble(request)
    except OutOfSync:
        blobs.clear()  # only messages are there yet, and the host sends them all again
        raise


def assembled(session: Session, answer: Answer, trouble: str | None) -> AssembleResult:
    """The answer for the host. `trouble`: of the store, for the status line."""
    objects, chat, items = session.objects, session.chat, session.chat.branch.plan.items
    record = chat.branch_record
    assert record is not None  # that of the call which was just assembled
    figure = session_figure(objects.store, session.info.id, record)
    counts = [figure.short] if figure.matters else []
    if record.stats.folded:
        counts.append(f"{record.stats.folded} folded")
    status = f"foredeck: {', '.join(counts)}" if counts else "foredeck"
    texts = session.inbox.pop_user_messages()
    if (text := unpriced(objects.workspace, chat)) is not None:
        texts.append(text)
    return {
        "call": answer.call,
        "from": answer.start,
        "ops": to_ops(answer.outgoing, lambda index: items[index].time_ms, answer.start),
        "marker": answer.marker or None,
        "status": {"text": f"{status}, {trouble}" if trouble else status},
        "notices": [{"level": "info", "text": text} for text in texts],
    }


def advise_user(opened: OpenedSession, before: CallRecord | None) -> None:
    """After a call: what its user should know of their files and rules. `before`: the newest call
    before it."""
    session, record = opened.session, opened.session.chat.branch_record
    parent = None if before is None else before.id
    # A chat that goes on from an earlier place has files from a later one.
    if opened.keeper is not None and record is not None and record.parent != parent:
        # Loads with the first chat that does.
        from foredeck.timeline.rewind_command import offer

        if (text := offer(session.objects.store, session.info, record)) is not None:
            session.inbox.user_messages.append(text)
    if before is None:
        advise_on_rules(opened)


def compact(opened: OpenedSession, params: SessionCompactParams) -> SessionCompactResult:
    """What to do about a compaction that the host has in mind."""
    decision = opened.assembler.compact(to_compaction_request(params))
    answer: SessionCompactResult = {"action": decision.action}
    if decision.notice:
        answer["notice"] = decision.notice
    if (made := decision.made) is not None:
        answer["summary"] = made.summary
        answer["details"] = {"foredeck": {"object": made.id, "ordinal": made.ordinal}}
    if decision.keep is not None:
        answer["keep"] = decision.keep
    return answer


def note_compaction(opened: OpenedSession, params: SessionEventParams) -> None:
    """The host has compacted with a summary of others, or has taken a compaction back."""
    session, summary = opened.session, params.summary
    if summary and params.kind == "compact":
        opened.assembler.finish_compaction(summary, params.by)
    elif summary:
        take_back(session.objects, session.chat.compactions, summary)


def store_answer(opened: OpenedSession, message: Message, entry: str | None) -> Item:
    """Keep the answer that ends a run, before the next call brings it."""
    session = opened.session
    answer = to_item(message, entry, session.objects.workspace.blobs)
    take_answer(session.objects, session.chat, session.inbox, answer, opened.facilities.active_task)
    return answer
