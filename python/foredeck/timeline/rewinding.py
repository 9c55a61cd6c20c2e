"""Restores a session's files to their state at a call.

That is after the branch's last change before it, or before the first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from foredeck.errors import ForedeckError
from foredeck.model.documents import ToolcallDocument, chat_id
from foredeck.model.identity import sha256_hex
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
from foredeck.store.protocol import Batch, Head
from foredeck.store.store import Store
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
    """What became of each path; `failed` with reasons."""

    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Changed by others, and not confirmed."""
    failed: dict[str, str] = field(default_factory=dict)
    uncovered: list[str] = field(default_factory=list)
    """Changed by a command before their state was known."""
    blind: bool = False
    """Whether commands may have changed more."""

    @property
    def is_whole(self) -> bool:
        """Whether all known changes are undone."""
        return not (self.skipped or self.failed or self.uncovered or self.blind)


Action = Literal["write", "create", "delete", "none", "impossible"]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What a rewind does to one path.

    `foreign`: changed from outside since the session's last change; `between`: earlier, after the
    call.
    """

    path: str
    present: PathState
    target: PathState
    foreign: bool = False
    between: bool = False
    left: PathState = UNKNOWN
    """The session's last state."""
    imported: bool = False
    """Whether the target comes from an imported session."""

    @property
    def action(self) -> Action:
        if self.present == self.target:
            return "none"
        if not self.target.can_be_restored or self.present.kind == "other":
            return "impossible"
        if self.target == MISSING:
            return "delete"
        return "create" if self.present == MISSING else "write"

    @property
    def needs_consent(self) -> bool:
        """Whether it would undo others' changes."""
        return self.action not in ("none", "impossible") and (self.foreign or self.between)


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind does. `blind`: commands may have changed more."""

    files: list[FilePlan]
    uncovered: list[str] = field(default_factory=list)
    blind: bool = False


def plan_for_call(store: Store, session: str, call: int) -> RewindPlan:
    """Call numbers past the newest mean the newest state. Raises `CannotRewind`."""
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
    """The plan to undo the newest rewind; raises `CannotRewind` without one."""
    heads = stored_changes(store, [session])
    rewound = [head for head in heads if head.view(FileChangeDocument).tool == REWIND]
    if not rewound:
        raise CannotRewind(f"Session {session} has not been rewound.")
    plans = []
    for event in sorted(_events(store, rewound[-1:]), key=lambda event: event.path):
        current, target = capture(event.path).state, _harmless(event.before, event)
        foreign = current != event.after
        plans.append(FilePlan(event.path, current, target, foreign, imported=event.imported))
    return RewindPlan(plans)


def nothing_kept(store: Store, session: str) -> str:
    """Why there is nothing to restore."""
    calls = store.query("toolcall", {"chat_ref": chat_id(session)})
    ran = {head.view(ToolcallDocument).tool for head in calls}
    if ran <= READERS | OWN_TOOLS:
        return f"The tools of session {session} have changed no files."
    text = f"Nothing is kept of what the tools of session {session} have done to files"
    if ran & WRITERS:
        return f"{text}: `rewind` or foredeck was off."
    return f"{text}: they have changed none that was seen, or `rewind` or foredeck was off."


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
    """Carries out a plan; `overwrite` also over others' changes.

    `named`: the user named the paths, without which an imported session changes none.
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
            change = PathChange(path=file.path, before=file.present, after=file.target)
            steps.append(change)
    if steps:
        # The states before are stored first, so that a rewinding can be taken back.
        kept_paths = _keep(store, session, steps)
        for step in steps:
            if step.path not in kept_paths:
                result.failed[step.path] = CHANGED_NOW
        steps = [step for step in steps if step.path in kept_paths]
        # An engine that dies on the way leaves the journal: the next one can go on.
        _write_journal(home, session, steps)
        _do(store, steps, result, advance)
        _journal(home, session).unlink(missing_ok=True)
    return result


def interrupted(home: Path, session: str) -> list[PathChange] | None:
    """Steps of an unfinished rewind, if any."""
    try:
        stored = json.loads(read_text(_journal(home, session), MOST_JOURNAL_BYTES))
    except (FileNotFoundError, ValueError):
        return None
    return [PathChange.model_validate(step) for step in stored]


def go_on(store: Store, home: Path, session: str, steps: Sequence[PathChange]) -> Rewound:
    """Finishes an interrupted rewind."""
    result = Rewound()
    _do(store, steps, result, lambda _path: None)
    _journal(home, session).unlink(missing_ok=True)
    return result


def copy_to(store: Store, plans: RewindPlan, root: str, folder: Path) -> Rewound:
    """Writes old files into another folder, where existing ones stay."""
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
            step = PathChange(path=place, before=MISSING, after=plan.target)
            _bring_back(store, step, result)
    return result


def stored_changes(store: Store, sessions: Iterable[str]) -> list[Head]:
    """Changes of these sessions, oldest first."""
    heads = [head for id in sessions for head in store.query("change", {"session": id})]
    # A change gets later versions, once its files have been read: the first one says when it was.
    first = {head.id: store.history(head.id)[0].time_ms for head in heads}

    def order(head: Head) -> tuple[int, str, int]:
        change = head.view(FileChangeDocument)
        return first[head.id], change.session, change.ordinal

    return sorted(heads, key=order)


def _events(store: Store, heads: Sequence[Head]) -> list[_Event]:
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
    path: str
    change: str
    before: PathState
    after: PathState
    imported: bool = False
    """Imported changes could be anybody's."""


def _file_plans(events: Iterable[_Event], earlier: Collection[str]) -> list[FilePlan]:
    by_path: dict[str, list[_Event]] = {}
    for event in events:
        by_path.setdefault(event.path, []).append(event)
    return [_plan(path, by_path[path], earlier) for path in sorted(by_path)]


def _plan(path: str, events: Sequence[_Event], earlier: Collection[str]) -> FilePlan:
    last = max((i for i, event in enumerate(events) if event.change in earlier), default=-1)
    target_event = events[max(last, 0)]
    target = _harmless(target_event.after if last >= 0 else target_event.before, target_event)
    later = events[last:] if last >= 0 else events
    current, last_state = capture(path).state, events[-1].after
    return FilePlan(
        path,
        current,
        target,
        foreign=last_state == UNKNOWN or current != last_state,
        between=_has_gap(later),
        left=last_state,
        imported=target_event.imported,
    )


def _harmless(state: PathState, said: _Event) -> PathState:
    # With setuid or setgid, a program would run as this user for whoever starts it.
    if not said.imported or state.mode is None:
        return state
    return state.model_copy(update={"mode": state.mode & 0o777})


def _has_gap(events: Sequence[_Event]) -> bool:
    # A call finds what an earlier one has left, or found: calls of one answer run side by side.
    states = {events[0].before, events[0].after}
    for event in events[1:]:
        if event.before not in states and UNKNOWN not in states:
            return True
        states |= {event.before, event.after}
    return False


def why_impossible(plan: FilePlan) -> str:
    if plan.present.kind == "other":
        return "there is something in its place that is not a file"
    if plan.target.kind == "large":
        return f"it had {plan.target.size:,} bytes then, more than is kept"
    return "what was there then is not known"


def _stays_in(plan: FilePlan, place: str, folder: str) -> bool:
    places = [place]
    if plan.imported and plan.target.kind == "link":
        places.append(os.path.realpath(Path(place).parent / (plan.target.target or "")))
    return all(os.path.commonpath([folder, each]) == folder for each in places)


def _keep(store: Store, session: str, steps: Sequence[PathChange]) -> set[str]:
    blobs: dict[str, bytes] = {}
    changes = []
    for step in steps:
        captured = capture(step.path)
        if captured.state == step.before:
            if captured.data is not None and captured.state.digest is not None:
                blobs[captured.state.digest] = captured.data
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
        current = capture(step.path).state
        # The same after an interruption: what is there already stays, what others have changed too.
        if current == step.after:
            result.done.append(step.path)
        elif current != step.before:
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
    with private_draft(path) as file:
        file.write(json.dumps([step.model_dump() for step in steps]).encode())
