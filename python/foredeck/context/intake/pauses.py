"""After a pause the newest message of the user says what time it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

from foredeck.context.messages.items import Item
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.request import Zone
from foredeck.context.wording import time_now
from foredeck.store.clock import MINUTE_MS


def attach_time(context: RenderContext, first_new: int, zone: Zone | None, minutes: int) -> None:
    """Put date, time and zone on the newest message.

    Only where that is a new one of the user's (from `first_new` on) that came `minutes` or more
    after the message before it, by the times that both have. 0 for never; never, too, where the
    host has sent no zone: a recorded session goes out as it did.
    """
    items = context.plan.items
    index = len(items) - 1
    if not minutes or zone is None or index < first_new or not context.takes_lines(index):
        return
    if items[index].kind == "user" and _gap_ms(items) >= minutes * MINUTE_MS:
        context.attach(index, _line(items[index].time_ms, zone))


def _gap_ms(items: Sequence[Item]) -> int:
    """How long nothing was said before the newest message; 0 where nothing was before."""
    before = next((item.time_ms for item in reversed(items[:-1]) if item.time_ms), 0)
    return items[-1].time_ms - before if before else 0


def _line(time_ms: int, zone: Zone) -> str:
    here = timezone(timedelta(minutes=zone.offset_minutes))
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)).astimezone(here)
    return time_now(at, zone.name)
