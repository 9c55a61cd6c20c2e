"""What the user types after `/foredeck`, and after `/context`, `/tasks` and `/search`.

Imported with the first of them: most of what answers is used for nothing else.
"""

from __future__ import annotations

from foredeck.accounting.figure import figure_lines
from foredeck.accounting.trace import trace
from foredeck.accounting.trace_lines import text_of
from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.context.tools.filling import describe_window
from foredeck.context.tools.listing import describe_entry, describe_session, name_object
from foredeck.context.tools.reasons import why
from foredeck.context.window.preview import last_compaction, preview
from foredeck.engine.adopted import adopted_compaction
from foredeck.engine.observing.command import observe_command
from foredeck.engine.opening import OpenedSession
from foredeck.engine.privacy import go_private
from foredeck.engine.settings import compaction_settings
from foredeck.engine.task_commands import search_command, tasks_command
from foredeck.errors import ToolError
from foredeck.timeline.rewind_command import rewind_command

COMMANDS = "list, context, name, describe, why, cost, observe, compact, private, rewind, trace"
"""Those of `/foredeck`."""


def run_command(opened: OpenedSession, config: Config, name: str, arguments: str) -> str:
    """The answer, for the user to read. Raises `ToolError` with what to type instead."""
    session = opened.session
    match name:
        case "list":
            return describe_session(session)
        case "context":
            return describe_window(session)
        case "name":
            return name_object(session, arguments)
        case "describe":
            return describe_entry(session, arguments)
        case "why":
            return why(session, arguments, opened.assembler.policy, opened.assembler.uses)
        case "cost":
            return _cost(session)
        case "observe":
            return observe_command(tuple(opened.facilities.workers), arguments)
        case "compact":
            return _compact(session, config, arguments)
        case "rewind":
            return rewind_command(session, config.home, arguments)
        case "private":
            return go_private(session)
        case "tasks":
            return tasks_command(opened, arguments)
        case "search":
            return search_command(opened, arguments)
        case "memory":
            from foredeck.engine.memory_commands import memory_commands

            return memory_commands(config, session, opened.switches).run(arguments)
        case "trace":
            return _trace(session, arguments)
    raise ToolError(f"foredeck has no command {name!r}. Commands: {COMMANDS}.")


def _cost(session: Session) -> str:
    lines = figure_lines(session.store, session.id, session.newest_record)
    return "\n".join([*lines, f"foredeck cost {session.id} explains it call by call."])


def _compact(session: Session, config: Config, arguments: str) -> str:
    if arguments == "--preview":
        return preview(session, compaction_settings(config).summary_chars)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now; /foredeck compact --calls A-B puts the answers of these calls away. "
            "/compact compacts."
        )
    return adopted_compaction(session) or last_compaction(session)


def _trace(session: Session, text: str) -> str:
    if not text:
        raise ToolError("Say what to look for: /foredeck trace NAME, a path or any other text.")
    return text_of(trace(session.store, session.id, text, session.branch.call))
