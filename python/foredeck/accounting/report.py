"""What a session has cost and done, from the store alone: the facts of `foredeck cost --report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.model.calls import CallRecord
from foredeck.model.documents import chat_id, session_object_id
from foredeck.model.sources import history_source, path_of
from foredeck.names import handles_in
from foredeck.sources.snapshots import is_written_by_agent
from foredeck.store.protocol import Head, Store
from foredeck.timeline.blame import ModelCalls, by_transaction, lines_of, maker_of, text_of_version
from foredeck.timeline.branches import records_of
from foredeck.timeline.differences import hunks

CONTEXT_LINES = 2


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that the session's tools have changed. `diff` is between what it was before their
    first change and after their last, so it also has what others changed in between."""

    path: str
    handle: str
    versions: int
    """How many of its versions are the session's."""
    added: int
    removed: int
    """Lines."""
    diff: str


@dataclass(frozen=True, slots=True)
class FailedCommand:
    """A tool call that failed."""

    call: int | None
    tool: str
    arguments: str
    handle: str


@dataclass(frozen=True, slots=True)
class AskedBack:
    """Content that the model asked for again."""

    what: str
    """As it named it: `@12`, a path."""
    times: int
    calls: list[int]


@dataclass(frozen=True, slots=True)
class SessionReport:
    """One session."""

    session: str
    folder: str
    models: list[str]
    first_ms: int
    last_ms: int
    calls: int
    figure: CostFigure
    files: list[ChangedFile] = field(default_factory=list)
    unversioned: dict[str, int] = field(default_factory=dict)
    """How many other files its commands have changed, by the reason why no versions were kept."""
    failed: list[FailedCommand] = field(default_factory=list)
    folded: int = 0
    """How many objects were folded at some call."""
    asked_back: list[AskedBack] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "figure": self.figure.to_json()}


def report_of(
    store: Store, session: str, *, files_in: Store | None = None, figure: CostFigure | None = None
) -> SessionReport:
    """The report of a session that has made calls. Of one that was replayed on a private store:
    `files_in`, where it was read in, which has more of its files, and `figure`, what it cost."""
    records = records_of(store, session)
    head = store.head(session_object_id(session))
    tool_calls = store.query("toolcall", {"chat_ref": chat_id(session)})
    changes = store.query("change", {"session": session})
    handles = _handles(store, session)
    asking = ModelCalls(store, session)
    return SessionReport(
        session,
        "" if head is None else str(head.fields.get("cwd") or ""),
        list(dict.fromkeys(record.model.name for record in records if record.model.name)),
        records[0].time_ms,
        records[-1].time_ms,
        len(records),
        figure or session_figure(store, session, records[-1]),
        list(_changed_files(files_in or store, session, changes)),
        _unversioned(changes),
        list(_failed(tool_calls, asking, handles)),
        len({row.subject for record in records for row in record.parts if row.form == "reference"}),
        list(_asked_back(tool_calls, asking)),
    )


def _handles(store: Store, session: str) -> dict[str, str]:
    return {object: f"@{ordinal}" for object, ordinal in handles_in(store, session).items()}


def _changed_files(store: Store, session: str, changes: Iterable[Head]) -> Iterator[ChangedFile]:
    tool_calls = store.query("toolcall", {"chat_ref": chat_id(session)})
    handles = _handles(store, session)
    calls = {head.id for head in tool_calls}
    made = by_transaction(store, tool_calls)
    by_commands = (id for each in changes for id in each.fields.get("files") or ())
    files = dict.fromkeys([*handles, *by_commands])
    for id, head in store.heads(files).items():
        if head.type != "file":
            continue
        history = store.history(id)
        own = [
            number
            for number, version in enumerate(history)
            if maker_of(version, first=number == 0) in calls
            or (is_written_by_agent(version) and version.token in made)
        ]
        if own:
            before = text_of_version(store, history[own[0] - 1]) if own[0] else ""
            after = text_of_version(store, history[own[-1]])
            source = history_source(head.fields)
            path = source.path if source else path_of(head.fields) or id
            yield _compared(path, handles.get(id, ""), len(own), before, after)


def _unversioned(changes: Iterable[Head]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in changes:
        found.update(each.fields.get("unversioned") or {})
    return dict(sorted(found.items()))


def _compared(path: str, handle: str, versions: int, before: str, after: str) -> ChangedFile:
    lines = hunks(lines_of(before), lines_of(after), CONTEXT_LINES)
    signs = Counter(line[:1] for line in lines)
    return ChangedFile(path, handle, versions, signs["+"], signs["-"], "\n".join(lines))


def _failed(
    tool_calls: Iterable[Head], asking: ModelCalls, handles: dict[str, str]
) -> Iterator[FailedCommand]:
    for head in tool_calls:
        if head.fields.get("status") == "fail":
            shown = str(head.fields.get("args_display") or "")
            tool = str(head.fields.get("tool"))
            yield FailedCommand(
                _ordinal(asking.behind(head)), tool, shown, handles.get(head.id, "")
            )


def _asked_back(tool_calls: Iterable[Head], asking: ModelCalls) -> Iterator[AskedBack]:
    asked: dict[str, list[int]] = {}
    for head in tool_calls:
        if head.fields.get("tool") == "activate" and head.fields.get("status") == "ok":
            what = str((head.fields.get("args") or {}).get("id") or "")
            call = _ordinal(asking.behind(head))
            asked.setdefault(what, []).extend([] if call is None else [call])
    for what, calls in asked.items():
        yield AskedBack(what, max(1, len(calls)), calls)


def _ordinal(record: CallRecord | None) -> int | None:
    return None if record is None else record.ordinal
