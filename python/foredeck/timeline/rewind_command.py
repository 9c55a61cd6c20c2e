"""`/foredeck rewind`: the files of the session at work, as they were at a call."""

from __future__ import annotations

import os
from pathlib import Path

from foredeck.context.state.objects import SessionInfo
from foredeck.errors import ToolError
from foredeck.model.calls import CallRecord
from foredeck.model.records import FileChangeDocument
from foredeck.store.protocol import Store
from foredeck.timeline import rewinding
from foredeck.timeline.rewind_text import (
    changes,
    needs_consent,
    preview,
    report,
    where_it_stands,
)
from foredeck.timeline.rewinding import CannotRewind, RewindPlan

USAGE = (
    "/foredeck rewind          the calls whose tools have changed files\n"
    "/foredeck rewind N        what would happen to each file; N diff: the differences\n"
    "/foredeck rewind N yes    bring the files to what they were when call N was made\n"
    "/foredeck rewind N yes all  also those that somebody else has changed since\n"
    "/foredeck rewind undo     the same, for taking the newest rewinding back"
)


def rewind_command(store: Store, info: SessionInfo, home: Path, arguments: str) -> str:
    """Do what was typed; what the user reads. Raises `ToolError` with what to type instead."""
    words = arguments.split()
    try:
        if words == ["continue"]:
            return _continue(store, info, home)
        if (steps := rewinding.interrupted(home, info.id)) is not None:
            return f"{where_it_stands(steps)}\n/foredeck rewind continue brings back the others."
        if not words:
            return _listing(store, info)
        return _rewind(store, info, home, words[0], words[1:])
    except CannotRewind as error:
        raise ToolError(str(error)) from error


def _rewind(store: Store, info: SessionInfo, home: Path, which: str, words: list[str]) -> str:
    plan = _plan(store, info, which)
    cwd = os.path.realpath(info.cwd)
    if all(file.action == "none" for file in plan.files):
        return preview(plan, cwd) or "No file would change."
    if words == ["diff"]:
        return changes(store, plan, cwd)
    if not words:
        return f"{preview(plan, cwd)}\n\n{_how_to_go_on(plan, which)}"
    if words not in (["yes"], ["yes", "all"]):
        raise ToolError(USAGE)
    done = rewinding.apply(store, home, info.id, plan, overwrite=words[-1] == "all")
    text = f"{report(done, cwd)}\n/foredeck rewind undo yes takes it back."
    if done.skipped:
        text += f"\n/foredeck rewind {which} yes all brings back the others, too."
    return text


def _plan(store: Store, info: SessionInfo, which: str) -> RewindPlan:
    if which == "undo":
        return rewinding.plan_for_undo(store, info.id)
    if not (which.isascii() and which.isdecimal()):
        raise ToolError(USAGE)
    return rewinding.plan_for_call(store, info.id, int(which))


def _how_to_go_on(plan: RewindPlan, which: str) -> str:
    text = f"/foredeck rewind {which} yes does this; {which} diff shows the differences."
    if needs_consent(plan):
        text += (
            f"\nWhat somebody else has changed stays as it is then; {which} yes all brings it "
            "back, too, and keeps what is there now."
        )
    return text


def _continue(store: Store, info: SessionInfo, home: Path) -> str:
    steps = rewinding.interrupted(home, info.id)
    if steps is None:
        raise ToolError("No rewinding was interrupted.")
    return report(
        rewinding.go_on(store, home, info.id, steps),
        os.path.realpath(info.cwd),
    )


def _listing(store: Store, info: SessionInfo) -> str:
    calls = calls_with_changes(store, info)
    if not calls:
        return rewinding.nothing_kept(store, info.id)
    return "\n".join([*(f"call {number:>4}  {text}" for number, text in calls), "", USAGE])


def calls_with_changes(store: Store, info: SessionInfo) -> list[tuple[str, str]]:
    """The numbers of the calls whose tools have changed files, and what changed."""
    by_call: dict[str, tuple[set[str], set[str]]] = {}
    for head in rewinding.stored_changes(store, [info.id]):
        changed = head.fields.get("paths") or head.fields.get("uncovered")
        if changed and (call := head.fields.get("call")) is not None:
            tools, paths = by_call.setdefault(call, (set(), set()))
            tools.add(head.view(FileChangeDocument).tool)
            paths.update(path["path"] for path in head.fields.get("paths") or ())
    found = []
    for call, (tools, paths) in by_call.items():
        files = "1 file" if len(paths) == 1 else f"{len(paths)} files"
        found.append((call.rpartition(":")[2], f"{files:<10}{', '.join(sorted(tools))}"))
    return found


def offer(store: Store, info: SessionInfo, record: CallRecord) -> str | None:
    """What the user reads where the chat has gone back and the files have not; `record`: the
    first call after it has."""
    try:
        plan = rewinding.plan_for_call(store, info.id, record.ordinal)
    except CannotRewind:
        return None
    # What only somebody else has changed is not what the chat has left behind.
    count = sum(file.action != "none" and file.left != file.target for file in plan.files)
    if not count:
        return None
    are = "1 file is" if count == 1 else f"{count} files are"
    return (
        f"The chat has gone back, the files have not: {are} not as then. "
        f"/foredeck rewind {record.ordinal} shows what would change."
    )
