"""Lines added to the newest message."""

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
    """Adds date, time and zone after a pause of `minutes`; 0: never.

    Only if the host sends a zone, so recorded sessions stay the same.
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
    """Adds once a line to go on as before, after observations replaced messages."""
    context, decision = call.context, call.decision
    is_summary = call.items[0].kind == "context" and not call.is_carried
    summed_up = call.alignment.replaced and is_summary
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
    """The line after a replacement; `task` and `suggestion` are the last notes."""
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
    observed = call.context.plan.observed
    stand_ins = call.facilities.stand_ins.known() if call.facilities.stand_ins else ()
    used = [each for each in stand_ins if each.id in observed]
    return max(used, key=lambda each: observed[each.id].until, default=None)


def attach_task_news(tasks: SessionTasks | None, context: RenderContext) -> None:
    """Reports what became of a provisional claim."""
    news = [] if tasks is None else tasks.work.news
    index = len(context.plan) - 1
    if news and context.takes_lines(index):
        context.attach(index, "\n".join(f"[foredeck] {text}" for text in news))
        news.clear()
