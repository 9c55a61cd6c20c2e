"""The host wants to compact: whether it has to, and by which summary.

The host counts its own raw messages where it cannot trust the provider's count, so it asks too
early; folding often helps where it would give up chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import Item
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.folding import may_go
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import CompactionRequest
from foredeck.context.state.session import Session
from foredeck.context.window.budget import SUMMARY_SHARE
from foredeck.context.window.compactions import (
    Compacted,
    SummaryRequest,
    by_summary,
    compact,
    lines_around,
    summary_lines,
)
from foredeck.context.window.observed_summary import observed_summary
from foredeck.context.window.pressure import usable_window
from foredeck.model.compactions import Writer

SummaryAuthor = Literal["foredeck", "model"]
LEAST_SUMMARY_CHARS = 400


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """What the user can change about compactions."""

    automatic: SummaryAuthor = "foredeck"
    manual: SummaryAuthor = "model"
    summary_chars: int = 8000
    high_water: float = 0.85


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """`cancel`: there is room. `host`: the host's model shall write the summary. `summary`: it is
    written already."""

    action: Literal["cancel", "host", "summary"]
    made: Compacted | None = None


def decide_compaction(
    session: Session,
    context: RenderContext,
    gauge: Gauge,
    request: CompactionRequest,
    settings: CompactionSettings,
) -> CompactionDecision:
    """What to do. A compaction that is made here is committed before this returns; one that the
    host's model shall write, or another extension writes instead, waits for `finish_compaction`."""
    session.pending.compaction = request
    if request.by == "threshold" and _has_room(session, context, gauge, request, settings):
        return CompactionDecision("cancel")
    writer = settings.manual if request.by == "user" else settings.automatic
    if writer == "model" or request.instructions:
        return CompactionDecision("host")
    return CompactionDecision("summary", _make(session, gauge, request, settings.summary_chars))


def finish_compaction(session: Session, summary: str, writer: Writer = "model") -> Compacted | None:
    """Somebody else has written the summary: the object of what was compacted."""
    request = session.pending.take_compaction()
    if request is None or not request.items or not summary:
        return None
    return _make(session, Gauge(), request, len(summary), writer, summary)


def _has_room(
    session: Session,
    context: RenderContext,
    gauge: Gauge,
    request: CompactionRequest,
    settings: CompactionSettings,
) -> bool:
    """Whether the next prompt, with everything folded that may be, leaves the host's reserve."""
    window = usable_window(session, request.model, gauge)
    if window is None:
        return False
    limit = max(window - request.reserve, int(settings.high_water * window))
    # The engine has only been started: no request has brought the messages yet.
    if not len(session.branch.conversation):
        newest = session.log.last
        return newest is None or gauge.tokens(newest.stats.chars_sent) <= limit
    foldable = gauge.tokens(may_go(context))
    expected = gauge.prompt(session.branch.conversation, _around(session))
    expected += gauge.tokens(request.new_chars)
    if not gauge.calls:
        # Nothing but an estimate stands against the host's own count.
        expected = max(expected, request.tokens)
    return expected - foldable <= limit


def pinned_in(session: Session, items: Sequence[Item]) -> list[int]:
    """Handles of what is pinned and stands nowhere else in the chat than in these messages."""
    conversation, gone = session.branch.conversation, {item.key.address for item in items}
    return sorted(
        ordinal
        for ordinal in session.branch.sets.pins
        if all(
            conversation.items[index].key.address in gone
            for index in conversation.holders.get(ordinal, ())
        )
    )


def _around(session: Session) -> int:
    """Characters beside the messages, as the newest call had them."""
    record = session.branch_record
    if record is None:
        return 0
    return max(0, record.stats.chars_sent - session.branch.conversation.chars_sent)


def _make(
    session: Session,
    gauge: Gauge,
    request: CompactionRequest,
    chars: int,
    writer: Writer = "foredeck",
    written: str | None = None,
) -> Compacted:
    window = usable_window(session, request.model, gauge)
    share = chars if window is None else int(SUMMARY_SHARE * window * gauge.rate)
    previous = by_summary(session, request.previous) if request.previous else None
    before = session.compactions.get(previous or "")
    last = 0 if before is None else int(before["last_turn"])
    items = _as_known(session, request.items)
    begins = before is not None or (bool(items) and items[0].kind == "user")
    first, pinned = last + (1 if begins else 2), pinned_in(session, items)
    wanted = SummaryRequest(
        request.by,
        max(LEAST_SUMMARY_CHARS, min(chars, share)),
        request.time_ms,
        request.instructions,
        _refused(session, request),
    )
    if written is None and session.stand_ins is not None:
        around = lines_around(session, previous, pinned)
        summarise = partial(summary_lines, session, wanted)
        written = observed_summary(session, items, first, max(chars, share), summarise, around)
    made = compact(
        session,
        items,
        wanted,
        first=first,
        previous=previous,
        pinned=pinned,
        written=written,
        writer=writer,
    )
    session.workspace.commit()
    return made


def _as_known(session: Session, items: Sequence[Item]) -> list[Item]:
    """The items with the entry ids by which the session knows them, and with what their calls
    asked for."""
    known = {item.key.address: item.key for item in session.branch.conversation.items}
    list = Conversation()
    for item in items:
        list.append(replace(item, key=known.get(item.key.address, item.key)))
    return list.items


def _refused(session: Session, request: CompactionRequest) -> dict[str, Any]:
    """The prompt that the provider has refused as too long."""
    record = session.branch_record
    if request.by != "overflow" or record is None or request.model is None:
        return {}
    return {"model": request.model.name, "chars": record.stats.chars_sent}
