"""What a person reads of a rewinding: before it, and after it."""

from __future__ import annotations

import os

from foredeck.errors import Missing
from foredeck.model.quoting import name
from foredeck.model.records import PathState
from foredeck.sources.looking import decode
from foredeck.store.protocol import Store
from foredeck.timeline.differences import difference
from foredeck.timeline.keeping import MANY_FILES
from foredeck.timeline.rewind_plan import FilePlan
from foredeck.timeline.rewinding import RewindPlan, RewindStep, Rewound, why_impossible
from foredeck.timeline.states import capture

_WORDS = {"write": "change back", "create": "bring back", "delete": "delete"}
DIFF_CHARS = 20_000
NAMED = 20
"""Files that are not brought back; of more the number is said."""


def preview(plan: RewindPlan, cwd: str) -> str:
    """What would happen to each file; those that stay as they are are counted."""
    lines = [_line(file, cwd) for file in plan.files if file.action != "none"]
    same = len(plan.files) - len(lines)
    if same:
        are = "is as it was" if same == 1 else "are as they were"
        lines.append(f"{same} {'file' if same == 1 else 'files'} {are}.")
    return "\n".join([*lines, *_unknown(plan, cwd)])


def _first(lines: list[str], what: str) -> list[str]:
    """Lines about single files, of more than `NAMED` only so many."""
    more = len(lines) - NAMED
    return lines if more <= 0 else [*lines[:NAMED], f"{what}: {more:,} more"]


def _unknown(found: RewindPlan | Rewound, cwd: str) -> list[str]:
    """What is not brought back, as far as that is known."""
    lines = []
    if count := len(found.uncovered):
        are = "1 file cannot" if count == 1 else f"{count:,} files cannot"
        lines.append(
            f"{are} be brought back, since nobody saw what it was before a command changed it:"
        )
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


def needs_consent(plan: RewindPlan) -> bool:
    """Whether any file has a change made by others."""
    return any(file.needs_consent for file in plan.files)


def report(result: Rewound, cwd: str) -> str:
    """What has become of each file."""
    count = len(result.done)
    lines = [f"{count:,} {'file' if count == 1 else 'files'} brought back."]
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


def where_it_stands(steps: list[RewindStep]) -> str:
    """Of a rewinding that was interrupted."""
    done = sum(capture(step.path).state == step.target for step in steps)
    return f"A rewinding was interrupted: {done} of {len(steps)} files are brought back."


def changes(store: Store, plan: RewindPlan, cwd: str) -> str:
    """The differences from what is there now to what was then."""
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
    """A path from the working folder, where it lies in it."""
    inside = os.path.relpath(path, cwd)
    return name(path if inside.startswith("..") else inside)
