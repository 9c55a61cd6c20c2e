"""The host's requests in an open session: reading what it sends, and writing what it is answered.

foredeck's own tools are run here. Of any other tool the guard says whether it may write, the watch
holds its files while it runs, and its result is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.accounting.figure import session_figure
from foredeck.context.calls.feedback import unpriced
from foredeck.context.compactions import take_back
from foredeck.context.intake.early_results import store_early_result, take_answer
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.state.request import Answer
from foredeck.engine.memory import advise_on_rules, questions_of
from foredeck.engine.opened import OpenedSession
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
from foredeck.memory.session import PromoteFinding
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import FACILITY_TOOLS
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import WRITERS

if TYPE_CHECKING:
    from foredeck.context.tools.tools import ContextTools


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


def assembled(
    opened: OpenedSession, answer: Answer, trouble: str | None, priced_in: str
) -> AssembleResult:
    """The answer for the host. `trouble`: of the store, for the status line; `priced_in`: where
    this host's users set prices."""
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


def run_tool(opened: OpenedSession, params: ToolCallParams) -> ToolCallResult:
    """One of the model's tools that are ours. Raises `ToolError` with a text for the model."""
    if (tool := opened.facilities.tools.get(params.tool)) is not None:
        text = tool.run(params.input, params.id)
        answer: ToolCallResult = {"text": text, "details": {}}
        if isinstance(tool, PromoteFinding):
            answer["questions"] = questions_of(opened, tool)
        about_tasks = params.tool in FACILITY_TOOLS["tasks"]
        return opened.with_tasks(answer) if about_tasks else answer
    made = _context_tools(opened).run(params.tool, params.input, params.id)
    result: ToolCallResult = {"text": made.text, "details": {"foredeck": made.decision}}
    if made.images:
        result["images"] = made.images
    return result


def _context_tools(opened: OpenedSession) -> ContextTools:
    # Loads with the first request for it.
    from foredeck.context.tools.tools import ContextTools

    session, memory = opened.session, opened.facilities.memory
    return ContextTools(session.objects, session.chat, session.inbox, memory)


def prepare_tool(opened: OpenedSession, params: ToolPrepareParams) -> ToolPrepareResult:
    """A tool that may write files is about to run: whether it may, and what it may write; or one
    that may show a file."""
    if params.tool in FACILITY_TOOLS["context"]:
        shown = _context_tools(opened).reads(params.tool, params.input)
        return {} if shown is None else {"reads": shown}
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
    """A tool that names a file is about to run: what it writes there is its own doing."""
    event = ToolEvent(params.tool, {"path": params.path}, "", cwd=opened.session.info.cwd)
    opened.watch.hold(params.id, event)


def observe_tool(opened: OpenedSession, params: ToolObservedParams) -> None:
    """A tool has run: keep its result and look at the files it touched."""
    if opened.keeper is not None:
        opened.keeper.end(params.id)
    guard = opened.guard
    changed = [] if guard is None else guard.windows.end(params.id)
    event = to_tool_event(params, opened.session.info.cwd, changed)
    blocks, output = to_blocks(params), full_output(event.details)
    found = store_early_result(
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
        guard.observed(params.id, event, found)
    if opened.keeper is not None:
        # After the result: what a command names of files that only now are stored must not
        # join the session.
        opened.keeper.store_versions()
