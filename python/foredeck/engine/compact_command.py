"""`/foredeck compact`: what the newest compaction lost, or one would say now."""

from __future__ import annotations

import logging
from pathlib import Path

from foredeck.context.compacting import last_compaction, preview, report_of
from foredeck.context.compactions import names_of
from foredeck.context.messages.transcript import split_turns
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import by_summary
from foredeck.context.summary import losses_of
from foredeck.engine.assembling import SUMMARY_CHARS
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ForedeckError, ToolError
from foredeck.hosts.session_files import summarized

log = logging.getLogger(__name__)

ADOPTED = "A summary from while foredeck was not on"


def compact_text(opened: OpenedSession, arguments: str) -> str:
    objects, chat = opened.session.objects, opened.session.chat
    if arguments == "--preview":
        return preview(objects, chat, SUMMARY_CHARS)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now. /compact compacts."
        )
    return adopted_compaction(opened) or last_compaction(objects, chat.compactions)


def adopted_compaction(opened: OpenedSession) -> str | None:
    """Reports on the summary that begins the chat, if the engine did not see it being made."""
    objects, chat = opened.session.objects, opened.session.chat
    summary = _summary_at_front(chat.branch.plan)
    if summary is None or by_summary(chat.compactions, summary) is not None:
        return None
    document = objects.document()
    if document is None or document.host_file is None:
        return None
    try:
        items = summarized(document.harness, Path(document.host_file), summary)
    except (ForedeckError, ValueError, LookupError, TypeError) as error:
        log.info("what a summary covers is not known: %s", error)
        return None
    if not items:
        return None
    lost = losses_of(split_turns(items, 1), names_of(objects), summary)
    return report_of(ADOPTED, summary, lost)


def _summary_at_front(plan: Plan) -> str | None:
    items = plan.items
    if not items or items[0].kind != "context" or not items[0].blocks:
        return None
    return str(items[0].blocks[0].get("text") or "") or None
