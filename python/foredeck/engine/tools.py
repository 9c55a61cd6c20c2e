"""Tool calls of an open session.

foredeck's own tools are run here. Of any other tool the guard says whether it may write, the watch
holds its files while it runs, and its result is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.context.intake.early_results import store_early_result
from foredeck.engine.memory import questions_of
from foredeck.engine.opened import OpenedSession
from foredeck.hosts.pi.requests import full_output, to_blocks, to_nesting, to_tool_event
from foredeck.hosts.protocol import (
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)
from foredeck.memory.session import PromoteFinding
from foredeck.model.own_tools import FACILITY_TOOLS
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import WRITERS

if TYPE_CHECKING:
    from foredeck.context.tools.tools import ContextTools


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
            opened.keeper.begin(params.id, params.tool, params.input, guard.known_files)
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
    changed = [] if guard is None else guard.changed_by(params.id, params.tool)
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
