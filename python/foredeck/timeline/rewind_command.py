"""`/foredeck rewind`: a session's files as of a call."""

from __future__ import annotations

import os
from pathlib import Path

from foredeck.context.state.objects import SessionInfo
from foredeck.errors import Missing, ToolError
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted, shortened, some_of, when
from foredeck.model.quoting import name
from foredeck.model.records import FileChangeDocument, PathChange, PathState, changes_of
from foredeck.sources.looking import decode
from foredeck.store.store import Store
from foredeck.timeline import rewinding
from foredeck.timeline.branches import prompt_of
from foredeck.timeline.differences import difference
from foredeck.timeline.keeping import MANY_FILES
from foredeck.timeline.rewinding import CannotRewind, FilePlan, RewindPlan, Rewound, why_impossible
from foredeck.timeline.states import capture

USAGE = (
    "/foredeck rewind          the calls whose tools have changed files\n"
    "/foredeck rewind N        what would happen to each file; N diff: the differences\n"
    "/foredeck rewind N yes    bring the files to what they were when call N was made\n"
    "/foredeck rewind N yes all  also those that somebody else has changed since\n"
    "/foredeck rewind undo     the same, for taking the newest rewinding back"
)
DIFF_CHARS = 20_000
SHOWN_FILES, PROMPT_CHARS = 2, 60
"""Of a call in the list."""
NAMED = 20
"""Most listed files that cannot be restored; the rest is counted."""
_WORDS = {"write": "change back", "create": "bring back", "delete": "delete"}


def rewind_command(store: Store, info: SessionInfo, home: Path, arguments: str) -> str:
    """Runs `/foredeck rewind`; raises `ToolError` with what to type instead."""
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
    result = rewinding.apply(store, home, info.id, plan, overwrite=words[-1] == "all")
    text = f"{report(result, cwd)}\n/foredeck rewind undo yes takes it back."
    if result.skipped:
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
    if any(file.needs_consent for file in plan.files):
        text += (
            f"\nWhat somebody else has changed stays as it is then; {which} yes all brings it "
            "back, too, and keeps what is there now."
        )
    return text


def _continue(store: Store, info: SessionInfo, home: Path) -> str:
    steps = rewinding.interrupted(home, info.id)
    if steps is None:
        raise ToolError("No rewinding was interrupted.")
    return report(rewinding.go_on(store, home, info.id, steps), os.path.realpath(info.cwd))


def _listing(store: Store, info: SessionInfo) -> str:
    calls = calls_with_changes(store, info)
    if not calls:
        return rewinding.nothing_kept(store, info.id)
    return "\n".join([*(f"call {number:>4}  {text}" for number, text in calls), "", USAGE])


def calls_with_changes(store: Store, info: SessionInfo) -> list[tuple[str, str]]:
    """Calls whose tools changed files: time, files and prompt."""
    by_call: dict[str, dict[str, None]] = {}
    for head in rewinding.stored_changes(store, [info.id]):
        paths = [each.path for each in changes_of(head.fields) if each.before != each.after]
        paths += head.view(FileChangeDocument).uncovered
        if paths and (call := head.fields.get("call")) is not None:
            by_call.setdefault(call, {}).update(dict.fromkeys(paths))
    cwd, rows = os.path.realpath(info.cwd), []
    for call, changed in by_call.items():
        if (stored := store.head(call)) is None:
            continue
        record = CallRecord(stored.fields)
        files = some_of([shown(path, cwd) for path in changed], SHOWN_FILES)
        prompt = shortened(prompt_of(store, record), PROMPT_CHARS)
        parts = (when(record.time_ms)[5:16], files, prompt)
        rows.append((str(record.ordinal), "  ".join(filter(None, parts))))
    return rows


def offer(store: Store, info: SessionInfo, record: CallRecord) -> str | None:
    """Tells the user that the chat went back and the files did not."""
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


def preview(plan: RewindPlan, cwd: str) -> str:
    """What would happen to each file; unchanged ones are counted."""
    lines = [_line(file, cwd) for file in plan.files if file.action != "none"]
    same = len(plan.files) - len(lines)
    if same:
        are = "is as it was" if same == 1 else "are as they were"
        lines.append(f"{same} {'file' if same == 1 else 'files'} {are}.")
    return "\n".join([*lines, *_unknown(plan, cwd)])


def _first(lines: list[str], what: str) -> list[str]:
    """Lines about files, at most `NAMED`."""
    more = len(lines) - NAMED
    return lines if more <= 0 else [*lines[:NAMED], f"{what}: {more:,} more"]


def _unknown(found: RewindPlan | Rewound, cwd: str) -> list[str]:
    lines = []
    if count := len(found.uncovered):
        are = "1 file cannot" if count == 1 else f"{count:,} files cannot"
        lines.append(f"{are} be brought back, since a command changed it before foredeck saw it:")
        lines += [f"  {shown(path, cwd)}" for path in found.uncovered[:NAMED]]
        if count > NAMED:
            lines.append(f"  and {count - NAMED:,} more")
    if found.blind:
        lines.append(
            f"Commands ran in a folder of more than {MANY_FILES:,} files, or one that could not be "
            "looked through in time: what they did to files unknown to the session is not covered."
        )
    return lines


def _line(file: FilePlan, cwd: str) -> str:
    name = shown(file.path, cwd)
    if file.action == "impossible":
        return f"{'cannot':<13}{name}: {why_impossible(file)}"
    words = f"{_WORDS[file.action]:<13}{name}"
    if file.imported:
        words += "  (as an imported session has it: only with --path or --to)"
    if file.foreign:
        return f"{words}  (changed since by a person or another program)"
    if file.between:
        return f"{words}  (a person or another program had changed it in between)"
    return words


def report(result: Rewound, cwd: str) -> str:
    """What became of each file."""
    lines = [f"{counted(len(result.done), 'file')} brought back."]
    lines += _first(
        [
            f"left as it is: {shown(path, cwd)}, which somebody else has changed"
            for path in result.skipped
        ],
        "left as they are",
    )
    failed = [f"failed: {shown(path, cwd)}: {why}" for path, why in result.failed.items()]
    lines += _first(failed, "failed")
    return "\n".join([*lines, *_unknown(result, cwd)])


def where_it_stands(steps: list[PathChange]) -> str:
    """Progress of an interrupted rewind."""
    count = sum(capture(step.path).state == step.after for step in steps)
    return f"A rewinding was interrupted: {count} of {len(steps)} files are brought back."


def changes(store: Store, plan: RewindPlan, cwd: str) -> str:
    """Differences between the present and that time."""
    texts = []
    for file in plan.files:
        if file.action not in ("none", "impossible"):
            texts.append(f"--- {shown(file.path, cwd)}\n{_difference(store, file)}")
    return "\n".join(texts)


def _difference(store: Store, file: FilePlan) -> str:
    now = _text(capture(file.path).data, file.present)
    then = _text(_bytes(store, file.target), file.target)
    if now is None or then is None:
        return "(not text)"
    return difference(now, then, DIFF_CHARS) or "(only its permissions)"


def _bytes(store: Store, state: PathState) -> bytes | None:
    try:
        return None if state.digest is None else store.blob(state.digest)
    except Missing:
        return None


def _text(data: bytes | None, state: PathState) -> str | None:
    if state.kind == "missing":
        return ""
    if state.kind == "link":
        return f"-> {state.target}"
    return None if data is None else decode(data)


def shown(path: str, cwd: str) -> str:
    inside = os.path.relpath(path, cwd)
    return name(path if inside.startswith("..") else inside)
