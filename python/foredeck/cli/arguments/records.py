"""The arguments of commands with actions, about what a project keeps: tasks and memory."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.cli.arguments import add_flags_of_actions, positive
from foredeck.cli.registry import Command, later


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a command: what it does, its arguments, and an example."""

    text: str
    configure: Callable[[ArgumentParser], None]
    example: str = ""


def _add_actions(
    parser: ArgumentParser,
    actions: Mapping[str, Action],
    flags: Callable[..., None] = add_flags_of_actions,
) -> None:
    """A parser for each action. `flags` adds options that go before an action and after it."""
    subparsers = parser.add_subparsers(
        dest="action", metavar="ACTION", help="what to do; each has its own --help (default: list)"
    )
    flags(parser, is_action=False)
    listing = ArgumentParser()
    actions["list"].configure(listing)
    parser.set_defaults(action="list", **vars(listing.parse_args([])))
    for name, action in actions.items():
        subparser = subparsers.add_parser(
            name,
            help=action.text,
            description=f"{action.text[0].upper()}{action.text[1:]}.",
            epilog=f"example: {action.example}" if action.example else None,
        )
        action.configure(subparser)
        flags(subparser, is_action=True)


# Tasks


def _tasks(parser: ArgumentParser) -> None:
    _add_actions(parser, TASK_ACTIONS, _task_flags)


TASKS = Command(
    description="""
    Show and change the tasks of the current folder's project: a git repository with its worktrees,
    or the folder itself. Agents see and change the same tasks (`task-query`, `task-mutate`). Name a
    task by its key (t-k3f9) or the start of it. A task is blocked while a task that it depends on,
    or a part of it, is open; only one agent or person at a time can claim it.
    """,
    example='foredeck tasks new "Fix the login redirect" --priority 1',
    configure=_tasks,
    run=later("tasks_command"),
)


def _task_flags(parser: ArgumentParser, *, is_action: bool) -> None:
    add_flags_of_actions(parser, is_action=is_action)
    if not is_action:
        parser.add_argument(
            "--markdown",
            action="store_true",
            help="print all tasks as a Markdown page",
        )


def _tasks_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        choices=("open", "in_progress", "closed", "all"),
        help="only tasks with this status (default: all that are not closed)",
    )
    parser.add_argument("--label", metavar="L", help="only tasks with this label")
    parser.add_argument("--limit", metavar="N", type=positive, help="how many (default: all)")


def _tasks_ready(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=5, help="how many (default: %(default)s)"
    )


def _tasks_search(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="WORD", nargs="+", help="words in any order")
    _tasks_ready(parser)


def _tasks_show(parser: ArgumentParser) -> None:
    _task(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="include the description; a week after a task is closed, only its summary is shown",
    )


def _tasks_new(parser: ArgumentParser) -> None:
    parser.add_argument("title", metavar="TITLE", help="what to do, in one line")
    _task_fields(parser, priority=2, type="task")
    parser.add_argument("--parent", metavar="TASK", help="the epic that it belongs to")
    parser.add_argument(
        "--after",
        metavar="TASK",
        action="append",
        default=[],
        help="a task that must be closed first; may be repeated",
    )


def _task_fields(parser: ArgumentParser, **defaults: Any) -> None:
    parser.add_argument(
        "--description", metavar="TEXT", help="details that do not fit in the title"
    )
    parser.add_argument(
        "--priority",
        type=int,
        choices=range(5),
        default=defaults.get("priority"),
        help="0 is the most urgent" + (" (default: 2)" if defaults else ""),
    )
    parser.add_argument(
        "--type",
        choices=("bug", "feature", "task", "epic", "chore"),
        default=defaults.get("type"),
        help="what kind of work it is" + (" (default: task)" if defaults else ""),
    )
    parser.add_argument(
        "--label", metavar="L", action="append", default=[], help="a label; may be repeated"
    )


def _tasks_claim(parser: ArgumentParser) -> None:
    _task(parser)
    parser.add_argument(
        "--as", dest="who", metavar="NAME", help="who claims it (default: your user name)"
    )


def _tasks_close(parser: ArgumentParser) -> None:
    _task(parser)
    parser.add_argument("summary", metavar="SUMMARY", help="what the outcome was")
    parser.add_argument(
        "--reason",
        choices=("completed", "wontfix", "duplicate"),
        default="completed",
        help="why (default: %(default)s)",
    )


def _tasks_edit(parser: ArgumentParser) -> None:
    _task(parser)
    parser.add_argument("--title", metavar="TITLE", help="what to do, in one line")
    _task_fields(parser)


def _tasks_dep(parser: ArgumentParser) -> None:
    _task(parser)
    parser.add_argument("on", metavar="OTHER", help="the task that it depends on")
    parser.add_argument(
        "--type",
        choices=("blocks", "parent-child", "related", "supersedes", "duplicates"),
        default="blocks",
        help="blocks: TASK waits for OTHER; parent-child: TASK is a part of OTHER; the others are "
        "only recorded (default: %(default)s)",
    )
    parser.add_argument("--remove", action="store_true", help="remove this dependency")


def _task(parser: ArgumentParser) -> None:
    """Which task an action is about."""
    parser.add_argument("task", metavar="TASK", help="its key (t-k3f9), the start of it, or its id")


# Memory


def _memory(parser: ArgumentParser) -> None:
    _add_actions(parser, MEMORY_ACTIONS)


MEMORY = Command(
    description="""
    Show and change what is remembered: about you, your projects, single sessions, and findings in
    their data. Name an entry by its key (m-k3f9) or the start of it. [user-stated] marks what you
    said or accepted yourself, [derived] everything else. A deleted entry is gone from prompts at
    the next call; `foredeck purge` also removes it from history.
    """,
    example='foredeck memory add "Tests use pytest, without mocks" --category preference',
    configure=_memory,
    run=later("memory_command"),
)


def _memory_list(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="SESSION", help="only what belongs to this session")
    which.add_argument(
        "--proposed", action="store_true", help="only what you have not accepted or refused yet"
    )
    which.add_argument(
        "--all",
        action="store_true",
        help="everything, including entries that were removed, and why",
    )
    parser.add_argument("--tag", metavar="T", help="only entries with this tag")


def _entry(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", help="its key (m-k3f9), the start of it, or its id"
    )


def _entries(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", nargs="+", help="their keys (m-k3f9), the starts of them, or ids"
    )


def _memory_add(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to remember, in one line")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context", "finding"),
        default="preference",
        help="a preference applies everywhere, a decision to this project, the others to a "
        "session (default: %(default)s)",
    )
    parser.add_argument("--session", metavar="SESSION", help="the session that it belongs to")
    parser.add_argument(
        "--everywhere", action="store_true", help="a decision that applies to all projects"
    )
    parser.add_argument(
        "--ground",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that it is based on, or git:COMMIT: once that changes, the entry is left out "
        "of prompts until you confirm it; may be repeated",
    )
    parser.add_argument("--native", metavar="TEXT", help="the text in your own language")


def _memory_edit(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="its new text")
    parser.add_argument("--native", metavar="TEXT", help="the text in your own language")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context"),
        help="its new category; `pin` and `demote` move an entry",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--everywhere", action="store_true", help="it applies to all projects")
    where.add_argument("--here", action="store_true", help="it applies to this project only")


def _memory_accept(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--text", metavar="TEXT", help="a new text for it")


def _memory_pin(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--category",
        choices=("preference", "decision"),
        help="its category; if it is not given, you are asked",
    )
    parser.add_argument(
        "--everywhere", action="store_true", help="a decision that applies to all projects"
    )


def _memory_demote(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="the session that it belongs to (default: the one it was learned in)",
    )


def _memory_delete(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


TASK_ACTIONS = {
    "list": Action("list tasks by priority, then by age", _tasks_list),
    "ready": Action("list the tasks that can be started now", _tasks_ready),
    "search": Action(
        "find tasks by words in their title, labels, summary or description", _tasks_search
    ),
    "show": Action("show everything about a task", _tasks_show),
    "new": Action(
        "create a task",
        _tasks_new,
        'foredeck tasks new "Fix the login redirect" --priority 1 --label auth',
    ),
    "claim": Action(
        "claim a task, so that no one else can until you close it or open it again", _tasks_claim
    ),
    "close": Action(
        "close a task, with its outcome",
        _tasks_close,
        'foredeck tasks close t-k3f9 "Redirects once; see auth.ts"',
    ),
    "open": Action("reopen a closed task, or release a claimed one", _task),
    "edit": Action("change a task's title, description, priority, type or labels", _tasks_edit),
    "dep": Action(
        "add or remove a dependency on another task",
        _tasks_dep,
        "foredeck tasks dep t-k3f9 t-m2xd            # t-k3f9 waits for t-m2xd",
    ),
}

MEMORY_ACTIONS = {
    "list": Action(
        "list what applies here, and what you have not accepted or refused yet", _memory_list
    ),
    "show": Action("show everything about an entry", _entry),
    "add": Action("remember something", _memory_add),
    "edit": Action("change an entry's text or category, or where it applies", _memory_edit),
    "accept": Action("accept proposed entries", _memory_accept),
    "refuse": Action("refuse proposed entries", _entries),
    "pin": Action("keep a session's entry, or a finding, beyond the session", _memory_pin),
    "demote": Action("limit an entry to one session", _memory_demote),
    "confirm": Action("confirm an entry whose basis has changed", _entry),
    "delete": Action("delete entries and everything derived from them", _memory_delete),
    "audit": Action("trace an entry back to the words that it came from", _entry),
}
