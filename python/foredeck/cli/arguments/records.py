"""The arguments of commands with actions: tasks and memory."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.cli.arguments import NUMBER, add_flags_of_actions, arguments
from foredeck.cli.registry import Command, later


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a command: what it does, its arguments, and an example."""

    text: str
    configure: Callable[[ArgumentParser], None]
    example: str = ""


def _action(text: str, options: str, example: str = "", **details: Mapping[str, Any]) -> Action:
    return Action(text, arguments(options, **details), example)


def _with_actions(actions: Mapping[str, Action]) -> Callable[[ArgumentParser], None]:
    """Gives a parser these actions."""

    def configure(parser: ArgumentParser) -> None:
        subparsers = parser.add_subparsers(
            dest="action",
            metavar="ACTION",
            help="what to do; each has its own --help (default: list)",
        )
        add_flags_of_actions(parser, is_action=False)
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
            add_flags_of_actions(subparser, is_action=True)

    return configure


_TASK = "TASK  its key (t-k3f9), the start of it, or its id"

TASK_ACTIONS = {
    "list": _action(
        "list tasks by priority, then by age",
        """
        --status open|in_progress|closed|all  only tasks with this status (default: not closed)
        --label L  only tasks with this label
        --limit N  how many (default: all)
        """,
        limit=NUMBER,
    ),
    "ready": _action(
        "list the tasks that can be started now",
        "--limit N  how many (default: %(default)s)",
        limit=NUMBER | {"default": 5},
    ),
    "search": _action(
        "find tasks by words in their title, labels, summary or description",
        """
        query: WORD...  words in any order
        --limit N  how many (default: %(default)s)
        """,
        limit=NUMBER | {"default": 5},
    ),
    "show": _action(
        "show everything about a task",
        f"""
        {_TASK}
        --full  with the description, also a week after it was closed
        """,
    ),
    "new": _action(
        "create a task",
        """
        TITLE  what to do, in one line
        --description TEXT  details that do not fit in the title
        --priority 0|1|2|3|4  0 is the most urgent (default: 2)
        --type bug|feature|task|epic|chore  what kind of work it is (default: task)
        --label L...  a label; may be repeated
        --parent TASK  the epic that it belongs to
        --after TASK...  a task that must be closed before; may be repeated
        """,
        'foredeck tasks new "Fix the login redirect" --priority 1 --label auth',
        priority={"type": int, "default": 2},
        type={"default": "task"},
    ),
    "claim": _action(
        "claim a task, so that no one else can until you close it or open it again",
        f"""
        {_TASK}
        who: --as NAME  who claims it (default: your user name)
        """,
    ),
    "close": _action(
        "close a task, with its outcome",
        f"""
        {_TASK}
        SUMMARY  the outcome
        --reason completed|wontfix|duplicate  why (default: %(default)s)
        """,
        'foredeck tasks close t-k3f9 "Redirects once; see auth.ts"',
        reason={"default": "completed"},
    ),
    "open": _action("reopen a closed task, or release a claimed one", _TASK),
    "edit": _action(
        "change a task's title, description, priority, type or labels",
        f"""
        {_TASK}
        --title TITLE  what to do, in one line
        --description TEXT  details that do not fit in the title
        --priority 0|1|2|3|4  0 is the most urgent
        --type bug|feature|task|epic|chore  what kind of work it is
        --label L...  a label; may be repeated
        """,
        priority={"type": int},
    ),
    "dep": _action(
        "add or remove a dependency on another task",
        f"""
        {_TASK}
        on: OTHER  the task that it depends on
        --type blocks|parent-child|related|supersedes|duplicates  blocks: TASK waits for OTHER;
            parent-child: TASK is a part of OTHER (default: %(default)s)
        --remove  remove this dependency
        """,
        "foredeck tasks dep t-k3f9 t-m2xd            # t-k3f9 waits for t-m2xd",
        type={"default": "blocks"},
    ),
}

_ENTRY = "ENTRY  its key (m-k3f9), the start of it, or its id"
_ENTRIES = "ENTRY...  their keys (m-k3f9), the starts of them, or ids"

MEMORY_ACTIONS = {
    "list": _action(
        "list what applies here, and what waits for your decision",
        """
        --session SESSION  only what belongs to this session
        | --proposed  only what waits for your decision
        | --all  everything, also entries that were removed, and why
        --tag T  only entries with this tag
        """,
    ),
    "show": _action("show everything about an entry", _ENTRY),
    "add": _action(
        "remember something",
        """
        TEXT  what to remember, in one line
        --category preference|decision|fact|context|finding  a preference applies everywhere, a
            decision to this project, the others to a session (default: %(default)s)
        --session SESSION  the session that it belongs to
        --everywhere  a decision that applies to all projects
        --ground FILE...  a file that it is based on, or git:COMMIT: once that changes, it waits
            for you to confirm it; may be repeated
        --native TEXT  the text in your own language
        """,
        category={"default": "preference"},
    ),
    "edit": _action(
        "change an entry's text or category, or where it applies",
        f"""
        {_ENTRY}
        [TEXT]  its new text
        --native TEXT  the text in your own language
        --category preference|decision|fact|context  its new category; `pin` and `demote` move
            an entry
        --everywhere  it applies to all projects
        | --here  it applies to this project only
        """,
    ),
    "accept": _action(
        "accept proposed entries",
        f"""
        {_ENTRIES}
        --text TEXT  a new text for it
        """,
    ),
    "refuse": _action("refuse proposed entries", _ENTRIES),
    "pin": _action(
        "keep a session's entry, or a finding, beyond the session",
        f"""
        {_ENTRY}
        --category preference|decision  its category (default: you are asked)
        --everywhere  a decision that applies to all projects
        """,
    ),
    "demote": _action(
        "limit an entry to one session",
        f"""
        {_ENTRY}
        --session SESSION  the session that it belongs to (default: the one it was learned in)
        """,
    ),
    "confirm": _action("confirm an entry whose basis has changed", _ENTRY),
    "delete": _action(
        "delete entries and everything derived from them",
        f"""
        {_ENTRIES}
        --yes  do not ask for confirmation
        """,
    ),
    "audit": _action("trace an entry back to the words that it came from", _ENTRY),
}


TASKS = Command(
    description="""
    Show and change the tasks of the current folder's project.
    """,
    example='foredeck tasks new "Fix the login redirect" --priority 1',
    configure=_with_actions(TASK_ACTIONS),
    run=later("tasks_command"),
)


MEMORY = Command(
    description="""
    Show and change what is remembered. [user-stated] marks what you said or accepted, [derived]
    all else. A deleted entry leaves prompts at the next call; `foredeck purge` also removes it
    from history.
    """,
    example='foredeck memory add "Tests use pytest, without mocks" --category preference',
    configure=_with_actions(MEMORY_ACTIONS),
    run=later("memory_command"),
)
