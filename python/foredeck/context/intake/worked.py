"""The line on a failing command's own result: in which form it has worked before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foredeck.commands import command_of
from foredeck.context.messages.items import Item
from foredeck.context.rendering.context import RenderContext
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.wording import worked_line
from foredeck.worklog.done import day
from foredeck.worklog.lessons import BranchLessons, Lesson, Run, as_typed, complains

MOST_LINES = 10
"""In one session."""


def attach_worked_lines(context: RenderContext, lessons: BranchLessons, first_new: int) -> None:
    """Put the line on each new failing result that has one. A form is named once in a session."""
    info, plan, items = context.objects.info, context.plan, context.plan.items
    # Only results of the newest round: a list that is taken in as a whole has been sent before,
    # without the line.
    first = max(first_new, plan.last_assistant() + 1)
    for index in range(first, len(items)):
        run = _run_of(info, items[index])
        # Following walks the whole list; what did not complain has no answer, and waits for it.
        if run is None or not complains(run):
            continue
        lessons.follow(_commands(info, items[:index]))
        lesson = lessons.answer(run)
        if lesson is not None and context.takes_lines(index):
            _attach(context, index, lesson)


def _commands(info: SessionInfo, items: Sequence[Item]) -> Iterator[tuple[str, Run]]:
    for item in items:
        run = _run_of(info, item)
        if run is not None:
            yield item.key.address, run


def _run_of(info: SessionInfo, item: Item) -> Run | None:
    if item.kind != "result":
        return None
    command = command_of(item.tool, item.arguments)
    if command is None:
        return None
    return Run(info.id, item.time_ms, command, item.text, item.failed)


def _attach(context: RenderContext, index: int, lesson: Lesson) -> None:
    typed = as_typed(lesson)
    if not _first_time(context.objects, typed):
        return
    is_own, now = lesson.session == context.objects.info.id, context.plan.items[index].time_ms
    when = "before" if is_own else f"on {day(lesson.time_ms, now)}"
    context.attach(index, worked_line(typed, when))


def _first_time(objects: Objects, typed: str) -> bool:
    """Whether a form has not been named in the session yet; noted in the call's transaction."""
    document = objects.document()
    if document is None:
        return False
    named = document.worked_forms or []
    if typed in named or len(named) >= MOST_LINES:
        return False
    document.worked_forms = [*named, typed]
    objects.workspace.put(document.seal())
    return True
