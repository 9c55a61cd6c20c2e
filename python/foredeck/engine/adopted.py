"""What a summary leaves out that somebody wrote while foredeck was not there to see it.

The messages that it covers were never sent to the engine. The host's session file still has them.
"""

from __future__ import annotations

import logging
from pathlib import Path

from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import Item
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import by_summary, names_of
from foredeck.context.window.losses import losses_of
from foredeck.context.window.preview import report_of
from foredeck.context.window.transcript import split_turns
from foredeck.hosts.pi.messages import to_item
from foredeck.hosts.pi.transcripts import Transcript, TranscriptError, load_transcript

log = logging.getLogger(__name__)

ADOPTED = "A summary from while foredeck was not on"


def adopted_compaction(session: Session) -> str | None:
    """The report on the summary that stands first in the chat; None where the engine has seen that
    being made, where none stands there, and where the session file does not tell."""
    summary = _summary_at_front(session)
    if summary is None or by_summary(session, summary) is not None:
        return None
    document = session.document()
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
    lost = losses_of(split_turns(items, 1), names_of(session), summary).to_text()
    return report_of(ADOPTED, summary, lost)


def _summary_at_front(session: Session) -> str | None:
    items = session.branch.conversation.items
    if not items or items[0].kind != "context" or not items[0].blocks:
        return None
    return str(items[0].blocks[0].get("text") or "") or None


def _covered(transcript: Transcript, summary: str) -> list[Item]:
    """The messages from the summary before it, or the beginning, to the first that was kept."""
    first = 0
    for compaction in transcript.compactions:
        if compaction.summary == summary:
            chosen = transcript.messages[first : compaction.kept_from]
            chat = Conversation()
            for recorded in chosen:
                chat.append(to_item(recorded.message, recorded.entry, {}))
            return chat.items
        first = compaction.kept_from
    return []
