"""What the user types after `/foredeck`, and after `/context`, `/tasks` and `/search`.

Imported with the first of them: most of what answers is used for nothing else.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from foredeck.accounting.figure import figure_lines
from foredeck.accounting.trace import text_of, trace
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import name_of, to_item
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import by_summary
from foredeck.context.tools.listing import (
    before_the_chat,
    change_state,
    content_for_user,
    describe_entry,
    name_object,
)
from foredeck.context.tools.reasons import why
from foredeck.context.window.compactions import names_of
from foredeck.context.window.losses import losses_of
from foredeck.context.window.preview import last_compaction, preview, report_of
from foredeck.context.window.stretch import compact_calls
from foredeck.context.window.transcript import split_turns
from foredeck.context.wording import handle
from foredeck.engine.command_line import put_on_path
from foredeck.engine.memory_commands import memory_commands
from foredeck.engine.observing.command import observe_command
from foredeck.engine.opened import OpenedSession
from foredeck.engine.privacy import go_private
from foredeck.engine.settings import compaction_settings
from foredeck.engine.task_commands import tasks_command, tasks_of
from foredeck.engine.views import (
    memory_view,
    objects_text,
    search_command,
    tasks_view,
    window_command,
)
from foredeck.errors import ToolError
from foredeck.histories.pi import load_transcript
from foredeck.histories.records import Transcript, TranscriptError
from foredeck.hosts.protocol import CommandResult
from foredeck.timeline.rewind_command import rewind_command

log = logging.getLogger(__name__)

SHORT_ID = 13
"""Characters of a session's id that tell it from all others: the moment at which it began."""

COMMANDS = (
    "list, context, open, pin, unpin, fold, name, describe, why, cost, observe, compact, private, "
    "rewind, trace"
)
"""Those of `/foredeck`."""


def run_command(opened: OpenedSession, name: str, args: str) -> CommandResult:
    """The answer, for the user to read. Raises `ToolError` with what to type instead."""
    session = opened.session
    if name in ("view", "context") and not args:
        saved = figure_lines(session.objects.store, session.info.id, session.chat.newest_record)[0]
        return window_command(session.objects, session.chat, saved, largest=name == "context")
    if name == "compact" and args.startswith(FLAG):
        return compact_stretch(opened, args)
    if name == "private":
        return {"text": go_private(session.objects, session.chat), "private": True}
    if name == "search":
        return search_command(opened, args)
    if name == "tasks" and not args:
        return tasks_view(tasks_of(opened))
    if name == "memory" and not args:
        return memory_view(memory_commands(opened))
    if name == "complete":
        # Loads with the first line that is completed.
        from foredeck.engine.completing import choices

        return {"text": "", "choices": choices(opened, args)}
    return {"text": _text(opened, name, args)}


def _text(opened: OpenedSession, name: str, arguments: str) -> str:
    session = opened.session
    match name:
        case "list":
            return objects_text(session.objects, session.chat)
        case "context":
            if arguments != "head":
                raise ToolError("/context takes no words; /foredeck why @12 is about one object.")
            return before_the_chat(session.chat.branch) or "Nothing stands before the chat."
        case "open":
            return content_for_user(session.objects, session.chat, arguments)
        case "pin" | "unpin" | "fold":
            return change_state(session.objects, session.chat.branch, name, arguments)
        case "name":
            return name_object(session.objects, arguments)
        case "describe":
            return describe_entry(session.objects, arguments)
        case "why":
            return why(
                session.objects,
                session.chat,
                arguments,
                opened.assembler.policy,
                opened.assembler.uses,
            )
        case "cost":
            return _cost(opened)
        case "observe":
            return observe_command(tuple(opened.facilities.workers), arguments)
        case "compact":
            return _compact(opened, arguments)
        case "rewind":
            return rewind_command(
                session.objects.store, session.info, opened.config.home, arguments
            )
        case "tasks":
            return tasks_command(opened, arguments)
        case "memory":
            return memory_commands(opened).run(arguments)
        case "trace":
            return _trace(opened, arguments)
        case "command":
            return put_on_path(opened.config.home)
    raise ToolError(f"foredeck has no command {name!r}. Commands: {COMMANDS}.")


def _cost(opened: OpenedSession) -> str:
    chat = opened.session.chat
    lines = figure_lines(chat.store, chat.info.id, chat.newest_record)
    by_call = f"`foredeck cost {chat.info.id[:SHORT_ID]}` explains it call by call."
    return "\n".join([*lines[:2], by_call])


def _compact(opened: OpenedSession, arguments: str) -> str:
    objects, chat = opened.session.objects, opened.session.chat
    if arguments == "--preview":
        return preview(objects, chat, compaction_settings(opened.config).summary_chars)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now; /foredeck compact --calls A-B puts the answers of these calls away. "
            "/compact compacts."
        )
    return adopted_compaction(opened) or last_compaction(objects, chat.compactions)


def _trace(opened: OpenedSession, text: str) -> str:
    if not text:
        raise ToolError("Say what to look for: /foredeck trace NAME, a path or any other text.")
    chat = opened.session.chat
    return text_of(trace(chat.store, chat.info.id, text, chat.branch.call))


# What a summary leaves out that somebody wrote while foredeck was not there to see it.
#
# The messages that it covers were never sent to the engine. The host's session file still has
# them.

ADOPTED = "A summary from while foredeck was not on"


def adopted_compaction(opened: OpenedSession) -> str | None:
    """The report on the summary that the chat begins with; None where the engine has seen that
    being made, where there is none, and where the session file does not say."""
    objects, chat = opened.session.objects, opened.session.chat
    summary = _summary_at_front(chat.branch.plan)
    if summary is None or by_summary(chat.compactions, summary) is not None:
        return None
    document = objects.document()
    file = None if document is None else document.host_file
    if file is None:
        return None
    try:
        items = _covered(load_transcript(Path(file)), summary)
    except (TranscriptError, ValueError, LookupError, TypeError) as error:
        log.info("what a summary covers is not known: %s", error)
        return None
    if not items:
        return None
    lost = losses_of(split_turns(items, 1), names_of(objects), summary).to_text()
    return report_of(ADOPTED, summary, lost)


def _summary_at_front(plan: Plan) -> str | None:
    items = plan.items
    if not items or items[0].kind != "context" or not items[0].blocks:
        return None
    return str(items[0].blocks[0].get("text") or "") or None


def _covered(transcript: Transcript, summary: str) -> list[Item]:
    """The messages from the summary before it, or the beginning, to the first that was kept."""
    first = 0
    for compaction in transcript.compactions:
        if compaction.summary == summary:
            chosen = transcript.messages[first : compaction.kept_from]
            chat = Plan()
            for recorded in chosen:
                chat.append(to_item(recorded.message, recorded.entry, {}))
            return chat.items
        first = compaction.kept_from
    return []


FLAG = "--calls"

_CALLS = re.compile(r"--calls[ =](\d{1,9})(?:-(\d{1,9}))?")


def compact_stretch(opened: OpenedSession, arguments: str) -> CommandResult:
    """The answer, with the stretch that the host is to leave out. Raises `ToolError`."""
    asked = _CALLS.fullmatch(arguments)
    if asked is None:
        raise ToolError("It is /foredeck compact --calls A-B, with the numbers of two calls.")
    first, last = int(asked[1]), int(asked[2] or asked[1])
    session, most = opened.session, compaction_settings(opened.config).summary_chars
    stretch = compact_calls(session.objects, session.chat, first, last, most)
    name = handle(stretch.made.ordinal)
    calls = f"call {first}" if first == last else f"calls {first} to {last}"
    return {
        "text": f"A summary, {name}, replaces the answers of {calls} from the next call on. "
        "/foredeck compact shows what it leaves out, /foredeck uncompact takes it back.",
        "stretch": {
            "first": name_of(stretch.first),
            "last": name_of(stretch.last),
            "summary": stretch.made.summary,
            "time_ms": stretch.last.time_ms,
        },
    }
