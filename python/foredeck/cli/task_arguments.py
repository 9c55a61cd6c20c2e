"""The arguments of `foredeck tasks` and its actions."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from foredeck.cli.common import add_flags_of_actions, positive


def common(parser: ArgumentParser, *, is_action: bool = False) -> None:
    """The flags that all actions have, and the command by itself, which has one more."""
    add_flags_of_actions(parser, is_action=is_action)
    if not is_action:
        parser.add_argument(
            "--markdown",
            action="store_true",
            help="print all tasks as a Markdown page",
        )


def list_arguments(parser: ArgumentParser) -> None:
    """`list`."""
    parser.add_argument(
        "--status",
        choices=("open", "in_progress", "closed", "all"),
        help="only tasks with this status (default: all that are not closed)",
    )
    parser.add_argument("--label", metavar="L", help="only tasks with this label")
    parser.add_argument("--limit", metavar="N", type=positive, help="how many (default: all)")


def ready_arguments(parser: ArgumentParser) -> None:
    """`ready`."""
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=5, help="how many (default: %(default)s)"
    )


def search_arguments(parser: ArgumentParser) -> None:
    """`search`."""
    parser.add_argument("query", metavar="WORD", nargs="+", help="words in any order")
    ready_arguments(parser)


def show_arguments(parser: ArgumentParser) -> None:
    """`show`."""
    task_argument(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="include the description; a week after a task is closed, only its summary is shown",
    )


def new_arguments(parser: ArgumentParser) -> None:
    """`new`."""
    parser.add_argument("title", metavar="TITLE", help="what to do, in one line")
    _field_arguments(parser, priority=2, type="task")
    parser.add_argument("--parent", metavar="TASK", help="the epic that it belongs to")
    parser.add_argument(
        "--after",
        metavar="TASK",
        action="append",
        default=[],
        help="a task that must be closed first; may be repeated",
    )


def _field_arguments(parser: ArgumentParser, **defaults: Any) -> None:
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


def claim_arguments(parser: ArgumentParser) -> None:
    """`claim`."""
    task_argument(parser)
    parser.add_argument(
        "--as", dest="who", metavar="NAME", help="who claims it (default: your user name)"
    )


def close_arguments(parser: ArgumentParser) -> None:
    """`close`."""
    task_argument(parser)
    parser.add_argument("summary", metavar="SUMMARY", help="what the outcome was")
    parser.add_argument(
        "--reason",
        choices=("completed", "wontfix", "duplicate"),
        default="completed",
        help="why (default: %(default)s)",
    )


def edit_arguments(parser: ArgumentParser) -> None:
    """`edit`."""
    task_argument(parser)
    parser.add_argument("--title", metavar="TITLE", help="what to do, in one line")
    _field_arguments(parser)


def dep_arguments(parser: ArgumentParser) -> None:
    """`dep`."""
    task_argument(parser)
    parser.add_argument("on", metavar="OTHER", help="the task that it depends on")
    parser.add_argument(
        "--type",
        choices=("blocks", "parent-child", "related", "supersedes", "duplicates"),
        default="blocks",
        help="blocks: TASK waits for OTHER; parent-child: TASK is a part of OTHER; the others are "
        "only recorded (default: %(default)s)",
    )
    parser.add_argument("--remove", action="store_true", help="remove this dependency")


def task_argument(parser: ArgumentParser) -> None:
    """Which task an action is about."""
    parser.add_argument("task", metavar="TASK", help="its key (t-k3f9), the start of it, or its id")
