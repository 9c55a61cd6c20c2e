"""The host's requests about an open session's chat, and their answers."""

from __future__ import annotations

from foredeck.accounting.figure import session_figure
from foredeck.context.calls.feedback import unpriced
from foredeck.context.compactions import take_back
from foredeck.context.intake.early_results import take_answer
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.state.request import Answer
from foredeck.engine.opened import OpenedSession
from foredeck.errors import OutOfSync
from foredeck.hosts.outgoing import to_ops
from foredeck.hosts.pi import to_compaction_request, to_history, to_request, typed_in
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
    SessionHistoryParams,
)
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, CallStats, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.figures import short_count
from foredeck.model.messages import text_in


def take_history(opened: OpenedSession, params: SessionHistoryParams) -> int:
    """Returns how many messages the engine now has."""
    blobs, messages_of_log = (
        opened.session.objects.workspace.blobs,
        opened.session.chat.log.messages,
    )
    messages = opened.assembler.take_history(to_history(params, blobs, messages_of_log))
    opened.prepare()
    return messages


def assemble(opened: OpenedSession, params: AssembleParams) -> Answer:
    """What the model sees of a message list, after committing it."""
    blobs = opened.session.objects.workspace.blobs
    try:
        request = to_request(params, blobs, opened.session.chat.log.messages)
        opened.session.inbox.typed += filter(None, map(typed_in, params.typed))
        return opened.assembler.assemble(request)
    except OutOfSync:
        blobs.clear()  # only messages are there yet, and the host sends them all again
        raise


def assembled(
    opened: OpenedSession, answer: Answer, trouble: str | None, priced_in: str
) -> AssembleResult:
    """The answer for the host; `trouble` is the store's."""
    session = opened.session
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
        texts.append(f"{text} {priced_in} sets them." if priced_in else text)
    return {
        "call": answer.call,
        "from": answer.start,
        "ops": to_ops(answer.outgoing, lambda index: items[index].time_ms, answer.start),
        "marker": answer.marker or None,
        "status": {"text": f"{status}, {trouble}" if trouble else status},
        "notices": [{"level": "info", "text": text} for text in texts],
    }


def compact(opened: OpenedSession, params: SessionCompactParams) -> SessionCompactResult:
    decision = opened.assembler.compact(to_compaction_request(params))
    answer: SessionCompactResult = {"action": decision.action}
    if decision.notice:
        answer["notice"] = decision.notice
    if (compacted := decision.made) is not None:
        answer["summary"] = compacted.summary
        answer["details"] = {"foredeck": {"object": compacted.id, "ordinal": compacted.ordinal}}
    if decision.keep is not None:
        answer["keep"] = decision.keep
    return answer


def note_compaction(opened: OpenedSession, params: SessionEventParams) -> None:
    """Takes another's compaction, or one taken back."""
    session, summary = opened.session, params.summary
    if summary and params.kind == "compact":
        opened.assembler.finish_compaction(summary, params.by)
    elif summary:
        take_back(session.objects, session.chat.compactions, summary)


def store_answer(opened: OpenedSession, message: Message, entry: str | None) -> str:
    """Stores the answer that ends a run; returns its text."""
    session = opened.session
    answer = to_item(message, entry, session.objects.workspace.blobs)
    turn_fields = opened.facilities.turn_fields
    take_answer(session.objects, session.chat, session.inbox, answer, turn_fields)
    return text_in(answer.blocks)


def advise_user(opened: OpenedSession, before: CallRecord | None) -> None:
    """Tells the user, after a call, about their files and a large fold."""
    session, record = opened.session, opened.session.chat.branch_record
    parent = None if before is None else before.id
    # A chat that goes on from an earlier place has files from a later one.
    if opened.keeper is not None and record is not None and record.parent != parent:
        # Loads with the first chat that does.
        from foredeck.timeline.rewind_command import offer

        if (text := offer(session.objects.store, session.info, record)) is not None:
            session.inbox.user_messages.append(text)
    if record is not None and (text := large_fold(record.decision, record.stats)) is not None:
        session.inbox.user_messages.append(text)


LARGE_FOLD, LARGE_TOKENS = 1 / 3, 10_000
"""A rebase that takes out more than this share of a prompt, and as many tokens, is reported."""


def large_fold(decision: Decision, stats: CallStats) -> str | None:
    """What the user reads after a large fold, with the way back."""
    rate = stats.rate or CHARS_PER_TOKEN
    before, gone = stats.chars_sent + stats.shorter_by, stats.shorter_by / rate
    if not decision.is_rebase or stats.shorter_by <= LARGE_FOLD * before or gone < LARGE_TOKENS:
        return None
    why = REASONS.get(decision.reason or "", decision.reason)
    sizes = f"{short_count(gone)} of {short_count(before / rate)} tokens"
    return (
        f"foredeck has folded {sizes}, because {why}. The model brings back what it needs; "
        "/foredeck lists and opens what is folded, /foredeck off sends all of it again."
    )
