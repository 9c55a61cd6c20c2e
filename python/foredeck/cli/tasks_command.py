"""`foredeck tasks`: the tasks of a project, for people and programs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import asked_folder, check_project, resolve_config
from foredeck.cli.output import answer
from foredeck.cli.person import agent_above, check_person
from foredeck.cli.stored import made_store, opened_store
from foredeck.errors import CommandRefused, NoSuchTask, NotFound, ToolError
from foredeck.home import user_name
from foredeck.sources.projects import project_at
from foredeck.tasks.board import Actor, Task
from foredeck.tasks.tools import ToolInput
from foredeck.tasks.wording import any_line, as_json, counts_line, details
from foredeck.tasks.work import NewTask, TaskMatcher, TaskWork


def run(args: Namespace) -> int:
    """`foredeck tasks`."""
    try:
        with _work(args) as work:
            _ACTIONS[args.action](args, work)
    except ToolError as error:
        kind = NotFound if isinstance(error, NoSuchTask) else CommandRefused
        raise kind(error.for_person("foredeck tasks")) from None
    return 0


@contextmanager
def _work(args: Namespace) -> Iterator[TaskWork]:
    actor = _actor(resolve_config(args).config.home, getattr(args, "who", None))
    if args.action == "new":
        check_project(args)
    with (made_store if args.action == "new" else opened_store)(args) as store:
        project = project_at(resolve_config(args).config, str(asked_folder(args)))
        work = TaskWork(store, project.id, actor)
        work.board.refresh()
        yield work


def _actor(home: Path, who: str | None) -> Actor:
    """A person, by the name `who` or their own, or the session whose agent runs this."""
    session = agent_above(home)
    if session is None:
        return Actor(None, who or user_name())
    if who is not None:
        raise CommandRefused("--as is not allowed inside an agent's session, which acts as itself.")
    return Actor(session or None)


# Reading


def _list(args: Namespace, work: TaskWork) -> None:
    tasks = [t for t in work.board.all() if _is_wanted(t, args)]
    _print(work, tasks[: args.limit], args)


def _is_wanted(task: Task, args: Namespace) -> bool:
    if args.label and args.label.lstrip("#") not in task.labels:
        return False
    if args.status is not None:
        return args.status in ("all", task.status)
    return not task.is_closed


def _print(work: TaskWork, tasks: list[Task], args: Namespace, *, none: str = "") -> None:
    now = work.now_ms()
    ready, blocked = work.board.counts(now)
    listed = [as_json(work.board, task, now) for task in tasks]
    lines = [any_line(work.board, task, now) for task in tasks]
    if none and not tasks:
        lines.append(none)
    lines.append(counts_line(work.board, now) if work.board.all() else "No tasks.")
    answer(args, {"ready": ready, "blocked": blocked, "tasks": listed}, lines)


def _ready(args: Namespace, work: TaskWork) -> None:
    _print(work, work.board.ready(args.limit, work.now_ms()), args)


def _search(args: Namespace, work: TaskWork) -> None:
    matches = TaskMatcher(work).find(" ".join(args.query))[: args.limit]
    _print(work, matches, args, none="No task has these words.")


def _show(args: Namespace, work: TaskWork) -> None:
    _show_one(work, work.find(args.task), args, full=args.full)


def _show_one(work: TaskWork, task: Task, args: Namespace, *, full: bool = False) -> None:
    description, said, now = work.description(task), work.said_for(task), work.now_ms()
    fields = as_json(work.board, task, now)
    value = {**fields, "description": description, "worked_on_in": said}
    answer(args, value, details(work.board, task, description, now, said=said, full=full))


# Changing


def _new(args: Namespace, work: TaskWork) -> None:
    input = ToolInput("A task", {"title": args.title, "labels": args.label})
    new = NewTask(
        title=input.title("say what is to be done."),
        description=args.description,
        priority=args.priority,
        task_type=args.type,
        labels=input.labels(),
        parent=work.find(args.parent).id if args.parent else None,
        blocked_by=tuple(work.find(name).id for name in args.after),
    )
    _changed(work, work.create(new), args)


def _claim(args: Namespace, work: TaskWork) -> None:
    _changed(work, work.claim(work.find(args.task).id).task, args)


def _close(args: Namespace, work: TaskWork) -> None:
    task = _released(work, args)
    _changed(work, work.close(task.id, args.reason, args.summary), args)


def _open(args: Namespace, work: TaskWork) -> None:
    _changed(work, work.update(_released(work, args).id, {"status": "open"}), args)


def _released(work: TaskWork, args: Namespace) -> Task:
    task = work.find(args.task)
    if work.actor.name is not None and task.session is not None and task.is_held(work.now_ms()):
        check_person(resolve_config(args).config.home, "Taking a task from a session")
    return task


def _edit(args: Namespace, work: TaskWork) -> None:
    input = ToolInput("A task", {"title": args.title, "labels": args.label})
    fields: dict[str, Any] = {}
    if args.title is not None:
        fields["title"] = input.title("say what is to be done.")
    if args.label:
        fields["labels"] = list(input.labels())
    for name, field in (
        ("description", "content"),
        ("priority", "priority"),
        ("type", "task_type"),
    ):
        if (value := getattr(args, name)) is not None:
            fields[field] = value
    if not fields:
        raise CommandRefused(
            "Nothing to change: give --title, --description, --priority, --type or --label."
        )
    _changed(work, work.update(work.find(args.task).id, fields), args)


def _dep(args: Namespace, work: TaskWork) -> None:
    task, on = work.find(args.task), work.find(args.on)
    changed = work.connect(task.id, on.id, args.type, add=not args.remove)
    _changed(work, changed, args)


def _changed(work: TaskWork, task: Task, args: Namespace) -> None:
    _show_one(work, task, args)
    if work.away:
        print(
            "foredeck: XTDB does not answer; this will be delivered once it does", file=sys.stderr
        )


_ACTIONS: dict[str, Callable[[Namespace, TaskWork], None]] = {
    "list": _list,
    "ready": _ready,
    "search": _search,
    "show": _show,
    "new": _new,
    "claim": _claim,
    "close": _close,
    "open": _open,
    "edit": _edit,
    "dep": _dep,
}
