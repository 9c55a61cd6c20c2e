"""The host's requests in an open session, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.accounting.figure import session_figure
from foredeck.context.calls.feedback import unpriced
from foredeck.context.compactions import take_back
from foredeck.context.intake.early_results import store_early_result, take_answer
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.state.request import Answer
from foredeck.engine.opened import AskingTool, OpenedSession
from foredeck.errors import OutOfSync
from foredeck.hosts.outgoing import to_ops
from foredeck.hosts.pi import (
    full_output,
    to_blocks,
    to_compaction_request,
    to_history,
    to_nesting,
    to_request,
    to_tool_event,
    typed_in,
)
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
    SessionHistoryParams,
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)
from foredeck.memory.session import SessionMemory
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, CallStats, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.figures import short_count
from foredeck.model.messages import text_in
from foredeck.model.own_tools import FACILITY_TOOLS
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import WRITERS

if TYPE_CHECKING:
    from foredeck.context.tools.tools import ContextTools


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


def run_tool(opened: OpenedSession, params: ToolCallParams) -> ToolCallResult:
    if (tool := opened.facilities.tools.get(params.tool)) is not None:
        answer: ToolCallResult = {"text": tool.run(params.input, params.id), "details": {}}
        if isinstance(tool, AskingTool):
            answer["questions"] = tool.questions()
        return opened.with_status(answer)
    tool_answer = _context_tools(opened).run(params.tool, params.input, params.id)
    result: ToolCallResult = {
        "text": tool_answer.text,
        "details": {"foredeck": tool_answer.decision},
    }
    if tool_answer.images:
        result["images"] = tool_answer.images
    return result


def _context_tools(opened: OpenedSession) -> ContextTools:
    # Loads with the first request for it.
    from foredeck.context.tools.tools import ContextTools

    session, memory = opened.session, opened.facilities.part(SessionMemory)
    return ContextTools(session.objects, session.chat, session.inbox, memory)


def prepare_tool(opened: OpenedSession, params: ToolPrepareParams) -> ToolPrepareResult:
    if params.tool in FACILITY_TOOLS["context"]:
        path = _context_tools(opened).reads(params.tool, params.input)
        return {} if path is None else {"reads": path}
    guard, answer = opened.guard, ToolPrepareResult()
    if guard is not None:
        verdict = guard.prepare(params.id, params.tool, params.input)
        if verdict.block is not None:
            answer["block"] = verdict.block
        if verdict.notice is not None:
            answer["notice"] = verdict.notice
        if verdict.block is None and opened.keeper is not None:
            opened.keeper.begin(params.id, params.tool, params.input, guard.windows.known)
    if params.tool not in WRITERS:
        opened.watch.hold_all(params.id)
    return answer


def start_tool(opened: OpenedSession, params: ToolStartedParams) -> None:
    event = ToolEvent(params.tool, {"path": params.path}, "", cwd=opened.session.info.cwd)
    opened.watch.hold(params.id, event)


def observe_tool(opened: OpenedSession, params: ToolObservedParams) -> None:
    if opened.keeper is not None:
        opened.keeper.end(params.id)
    guard = opened.guard
    changed = [] if guard is None else guard.windows.end(params.id)
    event = to_tool_event(params, opened.session.info.cwd, changed)
    blocks, output = to_blocks(params), full_output(event.details)
    snapshots = store_early_result(
        opened.session.objects,
        opened.session.chat,
        opened.session.inbox,
        event,
        params.id,
        blocks,
        output,
        to_nesting(params),
    )
    if guard is not None:
        guard.observed(params.id, event, snapshots)
    if opened.keeper is not None:
        # After the result: what a command names of files that only now are stored must not
        # join the session.
        opened.keeper.store_versions()


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
