"""Lines that join the newest message, where it is new in a call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from foredeck.context.calls.call import CallInProgress
from foredeck.context.rendering.context import RenderContext
from foredeck.context.state.features import StandIn
from foredeck.context.state.request import Zone
from foredeck.context.wording import time_now
from foredeck.model.quoting import block
from foredeck.store.clock import MINUTE_MS

if TYPE_CHECKING:  # imported where a session has tasks
    from foredeck.tasks.session import SessionTasks


def attach_time(context: RenderContext, first_new: int, zone: Zone | None, minutes: int) -> None:
    """After a pause: date, time and zone.

    Only where that is a new one of the user's (from `first_new` on) that came `minutes` or more
    after the message before it, by the times that both have. 0 for never; never, too, where the
    host has sent no zone: a recorded session goes out as it did.
    """
    items = context.plan.items
    index = len(items) - 1
    if not minutes or zone is None or index < first_new or not context.takes_lines(index):
        return
    before = next((item.time_ms for item in reversed(items[:-1]) if item.time_ms), 0)
    is_pause = before and items[index].time_ms - before >= minutes * MINUTE_MS
    if items[index].kind == "user" and is_pause:
        context.attach(index, _line(items[index].time_ms, zone))


def _line(time_ms: int, zone: Zone) -> str:
    here = timezone(timedelta(minutes=zone.offset_minutes))
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)).astimezone(here)
    return time_now(at, zone.name)


def attach_continuation(call: CallInProgress) -> None:
    """Where something has just replaced older messages: a word to go on as before.

    Once: at the call at which texts have taken the place of chat, or the window's or the host's
    summary has. Only where observations are switched on.
    """
    context, decision = call.context, call.decision
    summed_up = call.alignment.replaced and call.items[0].kind == "context"
    has_replaced = decision.covers or decision.compaction or summed_up
    if call.facilities.stand_ins is None or not has_replaced:
        return
    index = len(context.plan) - 1
    if not context.takes_lines(index):
        return
    if context.plan.ops[index].form == "note":
        # An answer of our own tools. It has never had the line, since records could not say that
        # such a line had not gone out; prompts stay as they were.
        return
    newest = _newest(call)
    task, suggestion = ("", "") if newest is None else (newest.task, newest.suggestion)
    is_asked = context.plan.items[index].kind == "user"
    context.attach(index, continuation(task, suggestion, is_asked=is_asked))


def continuation(task: str, suggestion: str, *, is_asked: bool) -> str:
    """On the newest message, once, when something has replaced older ones. `task`, `suggestion`:
    what was noted last of the work and of what would come next; empty where nothing was.
    `is_asked`: that message is the user's, so something new may be asked in it."""
    what = (
        "Go on from there with what this message says: no comment on the notes is needed."
        if is_asked
        else "Go on with the work: nothing new was asked, and no comment is needed."
    )
    lines = [f"[foredeck] Notes above have just replaced older messages. {what}"]
    if task:
        lines.append(f"current task:\n{block(task)}")
    if suggestion:
        lines.append(f"suggested next:\n{block(suggestion)}")
    return "\n".join(lines)


def _newest(call: CallInProgress) -> StandIn | None:
    """The observation or reflection that covers the newest messages."""
    observed = call.context.plan.observed
    known = call.facilities.stand_ins.known() if call.facilities.stand_ins else ()
    used = [each for each in known if each.id in observed]
    return max(used, key=lambda each: observed[each.id].until, default=None)


def attach_task_news(tasks: SessionTasks | None, context: RenderContext) -> None:
    """What has become of a provisional claim, said once."""
    news = [] if tasks is None else tasks.work.news
    index = len(context.plan) - 1
    if news and context.takes_lines(index):
        context.attach(index, "\n".join(f"[foredeck] {text}" for text in news))
        news.clear()
