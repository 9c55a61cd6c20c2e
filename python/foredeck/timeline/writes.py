"""A write or edit between its check and its result: what it makes of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.sources import ToolEvent
from foredeck.sources.edits import apply_edits, edits_of
from foredeck.sources.recorded import whole_text
from foredeck.timeline.knowledge import KnownState, state_of_text


@dataclass(slots=True)
class PendingWrite:
    """A write or edit that has passed and not ended: the file as it was checked."""

    object_id: str
    before: KnownState
    text: str | None
    alone: bool = True
    """Whether no other call has written the file since."""
    makes: str | None = None
    """What the call will leave in the file, where that is certain."""
    saved: str | None = None
    """Hash of what somebody else has saved since, as far as it was seen."""


def state_after(event: ToolEvent, write: PendingWrite | None) -> KnownState | None:
    """What a call must have left in its file; None where that is not certain."""
    if event.tool == "write":
        text = whole_text(event)
    elif write is not None and write.alone:
        text = result_of(event.tool, event.input, write.text)
    else:
        text = None
    return None if text is None else state_of_text(text)


def result_of(tool: str, arguments: Mapping[str, Any], before: str | None) -> str | None:
    """What a call makes of a file that holds `before`; None where that is not certain."""
    if tool == "write":
        content = arguments.get("content")
        return content if isinstance(content, str) else None
    return None if before is None else apply_edits(before, edits_of(arguments))
