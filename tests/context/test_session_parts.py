"""Who holds an open session as a whole, and who writes which part of it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import foredeck
from context.driver import Host
from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.opening import Session
from foredeck.context.state.request import PromptFrame

ROOT = Path(foredeck.__file__).parent

HOLDERS = {
    *("context/assembler", "context/calls/call", "context/calls/recording"),
    *("engine/assembling", "engine/background", "engine/opened", "engine/opening"),
    "replay/observing",
}
"""Modules that name `Session`: they open it, hold it, or hand out its parts."""

WRITERS = {
    "chat.branch": {
        *("context/calls/deciding", "context/calls/feedback", "context/intake/alignment"),
    },
    "chat.take_up_newest": {
        *("context/assembler", "context/tools/session_search", "context/tools/tools"),
        "engine/tasks",
    },
    "chat.log.add": {"context/calls/recording"},
    "chat.log.unsend": {"context/calls/feedback", "context/intake/alignment"},
    "chat.compactions": {"context/compactions"},
    "chat.turns": {"context/intake/object_writer", "histories/ingesting"},
    "chat.private": {"engine/privacy"},
    "chat.branch.ahead": {"context/assembler"},
    "chat.branch.plan.seals": {"context/assembler"},
    "frame.messages": {"context/intake/take_in"},
    "frame.tools": {"context/intake/take_in"},
    "frame.chars": {"context/intake/take_in"},
    "frame.version": {"context/calls/recording", "context/intake/take_in"},
    "inbox.typed": {"engine/requests"},
    "inbox.compaction": {"context/compacting"},
    "inbox.early_results": {"context/intake/early_results"},
    "inbox.early_results.pop": {"context/intake/object_writer"},
    "inbox.notices.changes": {"context/intake/early_results"},
    "inbox.stored": {"context/intake/early_results", "context/intake/file_changes"},
    "inbox.notices.restore": {"context/calls/feedback"},
    "inbox.refused.append": {"context/calls/feedback"},
    "inbox.refused.clear": {"context/calls/recording"},
    "inbox.withdrawal_announced": {"context/calls/heading"},
    "inbox.pop_compaction": {"context/compacting"},
    "inbox.pop_stale": {"engine/engine"},
    "inbox.pop_user_messages": {"engine/requests"},
    "objects.see": {"context/intake/file_changes", "context/intake/toolcalls"},
    "objects.index.inherit": {"context/state/opening"},
}
"""By what is written, the modules that write it. What is put into the inbox may come from
anywhere; who takes it out is said here."""

CHANGING = {name.rpartition(".")[2] for name in WRITERS}
FIELDS = {
    f"{part}.{each.name.lstrip('_')}"
    for part, type in (("chat", Chat), ("frame", PromptFrame), ("inbox", Inbox))
    for each in fields(type)
}
PARTS = ("chat", "frame", "inbox", "objects")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).with_suffix("").as_posix(), ast.parse(path.read_text())


def written(tree: ast.Module) -> Iterator[str]:
    """What a module assigns to, and which of the methods of `WRITERS` it calls, as `chat.turns`."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [
                each
                for target in node.targets
                for each in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func] if node.func.attr in CHANGING else []
        for target in targets:
            names = dotted(target)
            starts = [at for at, name in enumerate(names) if name in PARTS]
            if starts and starts[-1] < len(names) - 1:
                yield ".".join(names[starts[-1] :])


def dotted(node: ast.expr) -> list[str]:
    """The names in `self._chat.turns` or `chat.compactions[id]`, without underscores before."""
    names: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr.lstrip("_"))
        node = node.value
    return [node.id.lstrip("_"), *names] if isinstance(node, ast.Name) else names


def test_few_hold_the_whole_session() -> None:
    named = {
        module
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == Session.__module__
        if any(each.name == Session.__name__ for each in node.names)
    }
    assert named == HOLDERS


def test_each_part_is_written_where_this_says() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in modules():
        for name in written(tree):
            found[name].add(module)
    assert {name: found[name] for name in WRITERS} == WRITERS
    assert FIELDS & found.keys() <= WRITERS.keys()


def test_no_part_can_be_exchanged(host: Host) -> None:
    for part in fields(Session):
        with pytest.raises(FrozenInstanceError):
            setattr(host.state, part.name, None)
