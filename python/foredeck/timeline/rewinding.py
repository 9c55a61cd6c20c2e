"""Bringing a session's files back to what they were at a call.

A file's state at a call is what the last change before that call left, on the branch that led to
it; or, before the first change of all, what that found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from foredeck.errors import ForedeckError
from foredeck.model.canonical import sha256_hex
from foredeck.model.documents import ToolcallDocument, chat_id
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.model.records import (
    MISSING,
    UNKNOWN,
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


Action = Literal["write", "create", "delete", "none", "impossible"]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What rewinding does to one path.

    `present`: what is there now, as the plan was made for it. `foreign`: it was changed by a
    person, another session or another program since the session last left it. `between`: that had
    happened earlier, after the call: what it was then is kept, but the file loses it.
    """

    path: str
    present: PathState
    target: PathState
    foreign: bool = False
    between: bool = False
    left: PathState = UNKNOWN
    """What the session has left there."""
    imported: bool = False
    """Whether what it would become was said by an imported session."""

    @property
    def action(self) -> Action:
        """In one word."""
        if self.present == self.target:
            return "none"
        if not self.target.can_be_restored or self.present.kind == "other":
            return "impossible"
        if self.target == MISSING:
            return "delete"
        return "create" if self.present == MISSING else "write"

    @property
    def needs_consent(self) -> bool:
        """Whether it would undo what others have done."""
        return self.action not in ("none", "impossible") and (self.foreign or self.between)


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What rewinding would do. `uncovered`: files that commands have changed since, of which
    it is not known what they were. `blind`: commands may have changed more than is known."""

    files: list[FilePlan]
    uncovered: list[str] = field(default_factory=list)
    blind: bool = False


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
    return RewindPlan(_file_plans(_events(store, heads), earlier), sorted(uncovered), blind)


def plan_for_undo(store: Store, session: str) -> RewindPlan:
    """What taking back the newest rewinding does. Raises `CannotRewind` where there is none."""
    heads = stored_changes(store, [session])
    rewound = [head for head in heads if head.view(FileChangeDocument).tool == REWIND]
    if not rewound:
        raise CannotRewind(f"Session {session} has not been rewound.")
    plans = []
    for event in sorted(_events(store, rewound[-1:]), key=lambda event: event.path):
        present, target = capture(event.path).state, _harmless(event.before, event)
        foreign = present != event.after
        plans.append(FilePlan(event.path, present, target, foreign, imported=event.imported))
    return RewindPlan(plans)


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
            steps.append(_step(file.path, file.present, file.target))
    if steps:
        # The states before are stored first, so that a rewinding can be taken back.
        kept = _keep(store, session, steps)
        for step in steps:
            if step.path not in kept:
                result.failed[step.path] = CHANGED_NOW
        steps = [step for step in steps if step.path in kept]
        # An engine that dies on the way leaves the journal: the next one can go on.
        _write_journal(home, session, steps)
        _do(store, steps, result, advance)
        _journal(home, session).unlink(missing_ok=True)
    return result


def interrupted(home: Path, session: str) -> list[PathChange] | None:
    """The steps of a rewinding that did not end; None where there is none."""
    try:
        stored = json.loads(read_text(_journal(home, session), MOST_JOURNAL_BYTES))
    except (FileNotFoundError, ValueError):
        return None
    return [_step(step["path"], step["before"], step["target"]) for step in stored]


def _step(path: str, before: Any, target: Any) -> PathChange:
    return PathChange.model_validate({"path": path, "before": before, "after": target})


def go_on(store: Store, home: Path, session: str, steps: Sequence[PathChange]) -> Rewound:
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
        elif capture(place).state not in (MISSING, plan.target):
            result.failed[plan.path] = f"{place} is there already, and differs"
        else:
            _bring_back(store, _step(place, MISSING, plan.target), result)
    return result


def stored_changes(store: Store, sessions: Iterable[str]) -> list[Head]:
    """The changes of these sessions, the oldest first."""
    heads = [head for id in sessions for head in store.query("change", {"session": id})]
    # A change gets later versions, once its files have been read: the first one says when it was.
    first = {head.id: store.history(head.id)[0].time_ms for head in heads}

    def order(head: Head) -> tuple[int, str, int]:
        change = head.view(FileChangeDocument)
        return first[head.id], change.session, change.ordinal

    return sorted(heads, key=order)


def _events(store: Store, heads: Sequence[Head]) -> list[_Event]:
    """The changes of single paths."""
    marks = store.heads({imported_id(head.view(FileChangeDocument).session) for head in heads})
    return [
        _Event(
            change.path,
            head.id,
            change.before,
            change.after,
            imported_id(head.view(FileChangeDocument).session) in marks,
        )
        for head in heads
        for change in changes_of(head.fields)
    ]


@dataclass(frozen=True, slots=True)
class _Event:
    """One change of one path; `change` is the id of what it is a part of."""

    path: str
    change: str
    before: PathState
    after: PathState
    imported: bool = False
    """Whether it came with a session that was imported: anybody may have written it."""


def _file_plans(events: Iterable[_Event], earlier: Collection[str]) -> list[FilePlan]:
    """The plan for each path that any event names, in the order of their names.

    `events`: all of the session and those that it was forked from, oldest first. `earlier`: the
    changes before the chosen call, on its branch.
    """
    by_path: dict[str, list[_Event]] = {}
    for event in events:
        by_path.setdefault(event.path, []).append(event)
    return [_plan(path, by_path[path], earlier) for path in sorted(by_path)]


def _plan(path: str, events: Sequence[_Event], earlier: Collection[str]) -> FilePlan:
    last = max((i for i, event in enumerate(events) if event.change in earlier), default=-1)
    said = events[max(last, 0)]
    target = _harmless(said.after if last >= 0 else said.before, said)
    later = events[last:] if last >= 0 else events
    present, left = capture(path).state, events[-1].after
    return FilePlan(
        path,
        present,
        target,
        foreign=left == UNKNOWN or present != left,
        between=_has_gap(later),
        left=left,
        imported=said.imported,
    )


def _harmless(state: PathState, said: _Event) -> PathState:
    """A state without what a record of others must not bring about."""
    # With setuid or setgid, a program would run as this user for whoever starts it.
    if not said.imported or state.mode is None:
        return state
    return state.model_copy(update={"mode": state.mode & 0o777})


def _has_gap(events: Sequence[_Event]) -> bool:
    """Whether something else has changed the path between two of these."""
    # A call finds what an earlier one has left, or found: calls of one answer run side by side.
    known = {events[0].before, events[0].after}
    for event in events[1:]:
        if event.before not in known and UNKNOWN not in known:
            return True
        known |= {event.before, event.after}
    return False


def why_impossible(plan: FilePlan) -> str:
    """Why a path cannot be brought back."""
    if plan.present.kind == "other":
        return "there is something in its place that is not a file"
    if plan.target.kind == "large":
        return f"it had {plan.target.size:,} bytes then, more than is kept"
    return "what was there then is not known"


def _stays_in(plan: FilePlan, place: str, folder: str) -> bool:
    """Whether what is written lies in a folder, and, of an imported session, leads nowhere else."""
    places = [place]
    if plan.imported and plan.target.kind == "link":
        places.append(os.path.realpath(Path(place).parent / (plan.target.target or "")))
    return all(os.path.commonpath([folder, each]) == folder for each in places)


def _keep(store: Store, session: str, steps: Sequence[PathChange]) -> set[str]:
    """Store the states before as a change. Returns the paths that are still as planned."""
    blobs: dict[str, bytes] = {}
    changes = []
    for step in steps:
        found = capture(step.path)
        if found.state == step.before:
            if found.data is not None and found.state.digest is not None:
                blobs[found.state.digest] = found.data
            changes.append(step)
    ordinal = next_ordinal(store, session)
    document = FileChangeDocument(
        id=change_id(session, ordinal), session=session, ordinal=ordinal, tool=REWIND, paths=changes
    )
    store.commit(Batch([document.seal()], blobs, {document.id: None}))
    return {change.path for change in changes}


def _do(
    store: Store, steps: Sequence[PathChange], result: Rewound, advance: Callable[[str], None]
) -> None:
    for step in steps:
        advance(step.path)
        present = capture(step.path).state
        # The same after an interruption: what is there already stays, what others have changed too.
        if present == step.after:
            result.done.append(step.path)
        elif present != step.before:
            result.failed[step.path] = CHANGED_NOW
        else:
            _bring_back(store, step, result)


def _bring_back(store: Store, step: PathChange, result: Rewound) -> None:
    try:
        digest = step.after.digest
        put_back(step.path, step.after, None if digest is None else store.blob(digest))
        result.done.append(step.path)
    except ForedeckError as error:
        result.failed[step.path] = str(error)


def _journal(home: Path, session: str) -> Path:
    return home / _FOLDER / f"{sha256_hex(session.encode())[:32]}.json"


def _write_journal(home: Path, session: str, steps: Sequence[PathChange]) -> None:
    path = _journal(home, session)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    dumped = (step.model_dump() for step in steps)
    body = [{"path": d["path"], "before": d["before"], "target": d["after"]} for d in dumped]
    with private_draft(path) as file:
        file.write(json.dumps(body).encode())
