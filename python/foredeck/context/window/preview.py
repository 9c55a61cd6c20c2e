"""For the user: what a compaction has left out, or would: `/foredeck compact`."""

from __future__ import annotations

from foredeck.context.state.chat import Chat, Compactions, host_compaction
from foredeck.context.state.objects import Objects
from foredeck.context.window.compactions import (
    SummaryRequest,
    names_of,
    summary_of,
)
from foredeck.context.window.losses import losses_of
from foredeck.context.window.transcript import split_turns
from foredeck.errors import ToolError
from foredeck.model.observations import CompactionDocument


def last_compaction(objects: Objects, compactions: Compactions) -> str:
    """The newest compaction of the session: its summary, and what that does not name."""
    ordinals = {objects.index.by_object[id]: id for id in compactions}
    for ordinal in sorted(ordinals, reverse=True):
        document = objects.store.get(ordinals[ordinal], CompactionDocument)
        if document is not None and document.lost is not None:
            return report_of(f"@{ordinal}", document.content or "", document.lost)
    raise ToolError(
        "No chat of this session was compacted while foredeck was on. /foredeck compact --preview "
        "shows what a summary would say, and what it would not."
    )


def preview(objects: Objects, chat: Chat, max_chars: int) -> str:
    """The summary that foredeck would write of all but the newest turn, and what that leaves out.

    Nothing is stored. Raises `ToolError` where there is no turn before the newest.
    """
    items = chat.branch.plan.items
    newest = max((n for n, item in enumerate(items) if item.kind == "user"), default=0)
    before = host_compaction(chat)
    stretch = items[1 if before else 0 : newest]
    if not stretch:
        raise ToolError("There is nothing to compact: the chat has one turn.")
    fields = chat.compactions.get(before or "")
    turns = split_turns(stretch, int(fields["last_turn"]) + 1 if fields else 1)
    request = SummaryRequest("user", max_chars, stretch[-1].time_ms)
    head = None if before is None else objects.workspace.head(before)
    summary = summary_of(objects, turns, len(objects.index) + 1, request, head, ()).long
    lost = losses_of(turns, names_of(objects), summary).to_text()
    return report_of("What foredeck would write", summary, lost)


def report_of(what: str, summary: str, lost: str) -> str:
    """A summary and what it leaves out, for the user."""
    return f"{what}:\n{summary}\n\nWhat it does not name:\n{lost}"
