"""Bringing a session's files back to what they were at a call.

The states before are stored as a change of their own before anything is touched, so a rewinding
can be taken back. A journal in the state folder says what was to be done, so that one that was
interrupted goes on: each file that is there already is left as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.errors import ForedeckError
from foredeck.model.canonical import sha256_hex
from foredeck.model.documents import ToolcallDocument, chat_id
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.model.records import (
    MISSING,
    FileChangeDocument,
    PathChange,
    PathState,
    call_id,
    change_id,
    changes_of,
    imported_id,
)
from foredeck.regular_files import read_text
from foredeck.sources.tool_calls import READERS, WRITERS
from foredeck.store.location import private_draft
from foredeck.store.protocol import Batch, Head, Store
from foredeck.timeline.branches import chain_to, on_branch
from foredeck.timeline.keeping import next_ordinal
from foredeck.timeline.rewind_plan import Event, FilePlan, plan_rewind, plan_undo
from foredeck.timeline.states import capture, own_path, put_back

REWIND = "rewind"
CHANGED_NOW = "it was changed at this moment, by something else"
FROM_IMPORTED = (
    "the session was imported, and whoever wrote the file chose this path: `foredeck restore "
    "SESSION --call N` takes it with --path PATH, or writes a copy with --to FOLDER"
)
LEADS_OUT = "it would lead out of the folder"
_FOLDER = "rewinds"
MOST_JOURNAL_BYTES = 256 * 1024 * 1024


class CannotRewind(ForedeckError):
    """There is nothing to rewind to; the text says what there is."""

    exit_code = 4


@dataclass(slots=True)
class Rewound:
    """What became of each path. `failed`: with the reason."""

    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Changed by others, and not confirmed."""
    failed: dict[str, str] = field(default_factory=dict)
    uncovered: list[str] = field(default_factory=list)
    """Changed by a command before anybody had seen what they were."""
    blind: bool = False
    """Whether commands may have changed more than is known."""

    @property
    def is_whole(self) -> bool:
        """Whether everything that was changed is brought back, for all that is known."""
        return not (self.skipped or self.failed or self.uncovered or self.blind)


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What rewinding would do. `uncovered`: files that commands have changed since, of which
    it is not known what they were. `blind`: commands may have changed more than is known."""

    files: list[FilePlan]
    uncovered: list[str] = field(default_factory=list)
    blind: bool = False


@dataclass(frozen=True, slots=True)
class RewindStep:
    """One path of a journal."""

    path: str
    before: PathState
    target: PathState


def look(path: str) -> PathState:
    """What is at a path now."""
    return capture(path).state


def stored_changes(store: Store, sessions: Iterable[str]) -> list[Head]:
    """The changes of these sessions, the oldest first."""
    heads = [head for id in sessions for head in store.query("change", {"session": id})]
    first = {head.id: store.history(head.id)[0].time_ms for head in heads}

    def order(head: Head) -> tuple[int, str, int]:
        change = head.view(FileChangeDocument)
        return first[head.id], change.session, change.ordinal

    return sorted(heads, key=order)


def events_of(store: Store, heads: Sequence[Head]) -> list[Event]:
    """The changes of single paths."""
    marks = store.heads({imported_id(head.view(FileChangeDocument).session) for head in heads})
    return [
        Event(
            change.path,
            head.id,
            change.before,
            change.after,
            imported_id(head.view(FileChangeDocument).session) in marks,
        )
        for head in heads
        for change in changes_of(head.fields)
    ]


def plan_for_call(store: Store, session: str, call: int) -> RewindPlan:
    """What rewinding to a call does; one after the newest means the newest state of all.

    Raises `CannotRewind` where the session has no such call, or has changed no files.
    """
    calls = len(store.query("call", {"session": session}))
    if not 1 <= call <= calls + 1:
        raise CannotRewind(f"There is no call {call}; calls go from 1 to {calls}.")
    branch = chain_to(store, call_id(session, min(call, calls)))
    sessions = dict.fromkeys([session, *(record.session for record in branch)])
    heads = stored_changes(store, sessions)
    if not heads:
        raise CannotRewind(nothing_kept(store, session))
    earlier = on_branch(store, branch, heads, with_last=call > calls)
    later = [head for head in heads if head.id not in earlier]
    uncovered = {path for head in later for path in head.fields.get("uncovered") or ()}
    blind = any(head.fields.get("blind") for head in heads)
    return RewindPlan(plan_rewind(events_of(store, heads), earlier, look), sorted(uncovered), blind)


def nothing_kept(store: Store, session: str) -> str:
    """Why there is nothing to bring back."""
    calls = store.query("toolcall", {"chat_ref": chat_id(session)})
    ran = {head.view(ToolcallDocument).tool for head in calls}
    if ran <= READERS | OWN_TOOLS:
        return f"The tools of session {session} have changed no files."
    kept = f"Nothing is kept of what the tools of session {session} have done to files"
    if ran & WRITERS:
        return f"{kept}: `rewind` or foredeck was off."
    return f"{kept}: they have changed none that was seen, or `rewind` or foredeck was off."


def plan_for_undo(store: Store, session: str) -> RewindPlan:
    """What taking back the newest rewinding does. Raises `CannotRewind` where there is none."""
    heads = stored_changes(store, [session])
    rewound = [head for head in heads if head.view(FileChangeDocument).tool == REWIND]
    newest = rewound[-1] if rewound else None
    if newest is None:
        raise CannotRewind(f"Session {session} has not been rewound.")
    return RewindPlan(plan_undo(events_of(store, [newest]), look))


def apply(
    store: Store,
    home: Path,
    session: str,
    plan: RewindPlan,
    *,
    overwrite: bool = False,
    named: bool = False,
    advance: Callable[[str], None] = lambda _path: None,
) -> Rewound:
    """Do what a plan says. With `overwrite` also to files that others have changed.

    `named`: the user has named these paths; without that an imported session changes none.
    `advance` is called with each path before it is touched.
    """
    steps, result = [], Rewound(uncovered=plan.uncovered, blind=plan.blind)
    for file in plan.files:
        if file.action == "impossible":
            result.failed[file.path] = why_impossible(file)
        elif file.imported and file.action != "none" and not named:
            result.failed[file.path] = FROM_IMPORTED
        elif file.needs_consent and not overwrite:
            result.skipped.append(file.path)
        elif file.action != "none":
            steps.append(RewindStep(file.path, file.present, file.target))
    if steps:
        kept = _keep(store, session, steps)
        for step in steps:
            if step.path not in kept:
                result.failed[step.path] = CHANGED_NOW
        steps = [step for step in steps if step.path in kept]
        _write_journal(home, session, steps)
        _do(store, steps, result, advance)
        _journal(home, session).unlink(missing_ok=True)
    return result


def interrupted(home: Path, session: str) -> list[RewindStep] | None:
    """The steps of a rewinding that did not end; None where there is none."""
    try:
        stored = json.loads(read_text(_journal(home, session), MOST_JOURNAL_BYTES))
    except (FileNotFoundError, ValueError):
        return None
    return [
        RewindStep(
            step["path"],
            PathState.model_validate(step["before"]),
            PathState.model_validate(step["target"]),
        )
        for step in stored
    ]


def go_on(store: Store, home: Path, session: str, steps: Sequence[RewindStep]) -> Rewound:
    """Finish a rewinding that was interrupted. What was done is left as it is."""
    result = Rewound()
    _do(store, steps, result, lambda _path: None)
    _journal(home, session).unlink(missing_ok=True)
    return result


def copy_to(store: Store, plans: RewindPlan, root: str, folder: Path) -> Rewound:
    """Write the files as they were into another folder, those outside `root` below `outside`.

    A file that is there already and differs is left as it is.
    """
    result = Rewound(uncovered=plans.uncovered, blind=plans.blind)
    for plan in plans.files:
        inside = os.path.relpath(plan.path, root)
        name = inside if not inside.startswith("..") else f"outside/{plan.path.lstrip('/')}"
        place = own_path(str(folder / name))
        if plan.target.kind == "missing":
            continue
        if not _stays_in(plan, place, os.path.realpath(folder)):
            result.failed[plan.path] = LEADS_OUT
        elif not plan.target.can_be_restored:
            result.failed[plan.path] = why_impossible(plan)
        elif look(place) not in (MISSING, plan.target):
            result.failed[plan.path] = f"{place} is there already, and differs"
        else:
            _bring_back(store, RewindStep(place, MISSING, plan.target), result)
    return result


def _stays_in(plan: FilePlan, place: str, folder: str) -> bool:
    """Whether what is written lies in a folder, and, of an imported session, leads nowhere else."""
    places = [place]
    if plan.imported and plan.target.kind == "link":
        places.append(os.path.realpath(Path(place).parent / (plan.target.target or "")))
    return all(os.path.commonpath([folder, each]) == folder for each in places)


def why_impossible(plan: FilePlan) -> str:
    """Why a path cannot be brought back."""
    if plan.present.kind == "other":
        return "something that is not a file stands in its place"
    if plan.target.kind == "large":
        return f"it had {plan.target.size:,} bytes then, more than is kept"
    return "what was there then is not known"


def _keep(store: Store, session: str, steps: Sequence[RewindStep]) -> set[str]:
    """Store the states before as a change. Returns the paths that are still as planned."""
    blobs: dict[str, bytes] = {}
    changes = []
    for step in steps:
        found = capture(step.path)
        if found.state == step.before:
            if found.data is not None and found.state.digest is not None:
                blobs[found.state.digest] = found.data
            changes.append(PathChange(path=step.path, before=step.before, after=step.target))
    ordinal = next_ordinal(store, session)
    document = FileChangeDocument(
        id=change_id(session, ordinal),
        session=session,
        ordinal=ordinal,
        tool=REWIND,
        paths=changes,
    )
    store.commit(Batch([document.seal()], blobs, {document.id: None}))
    return {change.path for change in changes}


def _do(
    store: Store, steps: Sequence[RewindStep], result: Rewound, advance: Callable[[str], None]
) -> None:
    for step in steps:
        advance(step.path)
        present = look(step.path)
        if present == step.target:
            result.done.append(step.path)
        elif present != step.before:
            result.failed[step.path] = CHANGED_NOW
        else:
            _bring_back(store, step, result)


def _bring_back(store: Store, step: RewindStep, result: Rewound) -> None:
    try:
        digest = step.target.digest
        put_back(step.path, step.target, None if digest is None else store.blob(digest))
        result.done.append(step.path)
    except ForedeckError as error:
        result.failed[step.path] = str(error)


def _journal(home: Path, session: str) -> Path:
    return home / _FOLDER / f"{sha256_hex(session.encode())[:32]}.json"


def _write_journal(home: Path, session: str, steps: Sequence[RewindStep]) -> None:
    path = _journal(home, session)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    body: list[dict[str, Any]] = [
        {
            "path": step.path,
            "before": step.before.model_dump(),
            "target": step.target.model_dump(),
        }
        for step in steps
    ]
    with private_draft(path) as file:
        file.write(json.dumps(body).encode())
