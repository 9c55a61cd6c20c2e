"""The host's requests about tools in an open session, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.context.intake.early_results import store_early_result
from foredeck.context.state.facilities import RecordReader
from foredeck.engine.hooks import AskingTool, FacilityTool
from foredeck.engine.opened import OpenedSession
from foredeck.hosts.pi import full_output, to_blocks, to_nesting, to_tool_event
from foredeck.hosts.protocol import (
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)
from foredeck.model.own_tools import FACILITY_TOOLS
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import WRITERS

if TYPE_CHECKING:
    from foredeck.context.tools.tools import ContextTools


def run_tool(opened: OpenedSession, params: ToolCallParams) -> ToolCallResult:
    tools = (tool for tool in opened.facilities.on(FacilityTool) if tool.name == params.tool)
    if (tool := next(tools, None)) is not None:
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

    session, readers = opened.session, opened.facilities.on(RecordReader)
    return ContextTools(session.objects, session.chat, session.inbox, readers)


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
