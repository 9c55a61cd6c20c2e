"""`foredeck cost --all`: all sessions beside plain Pi, by project and week."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.accounting.figure import CostFigure, session_figure, unpriced_lines
from foredeck.cli.output import Progress, fitted_table, typed
from foredeck.lookup.sessions import newest_calls, project_folder, project_names
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, shortened, week_of
from foredeck.store.store import Store

WEEKS, PROJECTS = 12, 15
_NAME = 24
_IGNORE = signal.SIGINT, signal.SIG_IGN


class RecordedFigure(NamedTuple):
    """A session's id and folder, times, and each call's cost by answer."""

    session: str
    folder: str
    first_ms: int
    last_ms: int
    calls: list[tuple[str, CostFigure]]


@dataclass(slots=True)
class Overview:
    """Sums of sessions, apart for money and tokens."""

    sessions: int = 0
    total: dict[bool, CostFigure] = field(default_factory=dict)
    projects: dict[tuple[bool, str], CostFigure] = field(default_factory=dict)
    weeks: dict[tuple[bool, str], CostFigure] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Ids of the sessions that are counted."""
    calls: set[str] = field(default_factory=set)
    """Answers in histories, counted once."""
    unread: list[str] = field(default_factory=list)
    """Histories that could not be read."""
    left: int = 0
    looked_in: list[Path] = field(default_factory=list)
    """Where histories were looked for."""
    replayed: int = 0
    """How many of the sessions were read from histories."""
    ingested: int = 0

    def add(self, session: str, project: str, last_ms: int, figure: CostFigure) -> None:
        """Take in one session, once."""
        if not figure.calls or session in self.known:
            return
        self.known.add(session)
        self.sessions += 1
        self._sum(project, last_ms, figure)

    def add_history(self, found: RecordedFigure, stored: Set[str]) -> None:
        """Takes in calls that no other history had; those of `stored` sessions count already."""
        new = [figure for identity, figure in found.calls if identity not in self.calls]
        self.calls.update(identity for identity, _ in found.calls)
        if any(figure.calls for figure in new) and found.session not in stored:
            self.sessions += found.session not in self.known
            self.replayed += found.session not in self.known
            self.known.add(found.session)
            for figure in new:
                self._sum(project_folder(found.folder), found.last_ms, figure)

    def _sum(self, project: str, last_ms: int, figure: CostFigure) -> None:
        unit = figure.in_money
        self.total[unit] = self.total.get(unit, CostFigure()) + figure
        for sums, key in ((self.projects, project), (self.weeks, week_of(last_ms))):
            sums[unit, key] = sums.get((unit, key), CostFigure()) + figure

    def to_json(self) -> dict[str, Any]:
        def rows(sums: dict[tuple[bool, str], CostFigure], name: str) -> list[dict[str, Any]]:
            return [{name: key, **figure.to_json()} for (_, key), figure in sums.items()]

        return {
            "sessions": self.sessions,
            "total": [figure.to_json() for figure in self.total.values()],
            "projects": rows(self.projects, "project"),
            "weeks": rows(self.weeks, "week"),
            "unread": self.unread,
            "not_looked_at": self.left,
        }


def add_stored(overview: Overview, store: Store) -> None:
    """Takes in all sessions with calls, by each one's newest record."""
    heads = store.query("session")
    newest = newest_calls(store, [head.view(SessionDocument).session_id for head in heads])
    with Progress("looking at session", len(heads)) as progress:
        for head in heads:
            session = head.view(SessionDocument).session_id
            record = newest[session]
            if record is None:
                overview.ingested += bool(head.fields.get("ingested"))
            else:
                figure = session_figure(store, session, record)
                project = project_folder(str(head.fields.get("cwd") or ""))
                overview.add(session, project, record.time_ms, figure)
            progress.advance()


def add_histories(overview: Overview, files: Iterable[Path]) -> None:
    """Replays others' histories, newest first; stores nothing.

    After Ctrl-C the sums so far are kept.
    """
    listed = sorted(files, key=_changed, reverse=True)
    stored = frozenset(overview.known)
    read: list[tuple[bool, int, str, RecordedFigure]] = []
    done = 0
    workers = max(1, min(8, os.cpu_count() or 1))
    # A Ctrl-C in a terminal goes to the workers as well: only this process is to answer it.
    pool = ProcessPoolExecutor(workers, initializer=signal.signal, initargs=_IGNORE)
    try:
        with Progress("replaying history", len(listed)) as progress:
            running = {pool.submit(recorded_figures, file): file for file in listed}
            for future in as_completed(running):
                try:
                    figures = future.result()
                except Exception as error:  # one bad file must not end the others
                    overview.unread.append(f"{running[future]}: {error}")
                else:
                    name = running[future].name
                    for found in figures:
                        read.append((found.session not in stored, found.first_ms, name, found))
                done += 1
                progress.advance()
    except KeyboardInterrupt:
        overview.left = len(listed) - done
        # Python would wait at its exit for the files that are being replayed.
        for worker in active_children():
            worker.terminate()
        print("Interrupted: these are the sums so far.", file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)
    # A fork repeats calls of the session that it goes on from, which began before it.
    for *_, found in sorted(read, key=lambda one: one[:3]):
        overview.add_history(found, stored)


def recorded_figures(path: Path) -> list[RecordedFigure]:
    """What a file's sessions would have cost; stores nothing. Raises `TranscriptError`."""
    # Load the engine, which a stored session has no use for.
    from foredeck_agents.histories.recordings import load_recordings
    from foredeck_lab.replay.replayed_session import replayed

    figures = []
    for transcript in load_recordings(path, branches=True):
        times = [call.time_ms for call in transcript.calls] or [0]
        calls = []
        if transcript.calls:
            with replayed(transcript) as session_replayed:
                calls = session_replayed.by_call()
        folder = transcript.cwd or ""
        figures.append(RecordedFigure(transcript.id, folder, times[0], times[-1], calls))
    return figures


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def overview_text(overview: Overview, *, histories: bool) -> str:
    """The total, then by week and by project."""
    if not overview.sessions:
        if histories:
            return "\n".join([_nothing_in(overview), *overview.unread])
        return typed(
            "No stored session has made a call with foredeck yet. `foredeck cost --histories` "
            "looks at what coding agents have kept."
        )
    parts = [_verdict(overview, histories=histories)]
    weeks = sorted(_once(overview.weeks).items(), reverse=True, key=lambda item: item[0])
    parts.append(_table("week of", weeks, WEEKS))
    projects = sorted(
        _once(overview.projects).items(),
        key=lambda item: (item[1].in_money, item[1].plain),
        reverse=True,
    )
    parts.append(_table("project", projects, PROJECTS))
    return "\n\n".join([*parts, "\n".join(_notes(overview, histories=histories))])


def _nothing_in(overview: Overview) -> str:
    places = "".join(f"\n  {place}" for place in overview.looked_in)
    other = "other " if overview.sessions else ""
    return f"No {other}model call was found in histories. Looked in:{places}"


def _verdict(overview: Overview, *, histories: bool) -> str:
    figures = [overview.total[unit] for unit in (True, False) if unit in overview.total]
    first, *others = (f"{figure.sentence}." for figure in figures)
    without = [f"At models without a price: {line}" for line in others]
    projects = counted(len({key for _, key in overview.projects}), "project")
    sessions = f"{counted(overview.sessions, 'session')} in {projects}"
    if histories:
        sessions += f", {overview.replayed:,} of them from histories"
    return "\n".join([first, *without, f"{sessions}."])


def _once(sums: dict[tuple[bool, str], CostFigure]) -> dict[str, CostFigure]:
    """Each project or week once, in money if any call has a price."""
    found: dict[str, CostFigure] = {}
    for (in_money, key), figure in sums.items():
        other = found.get(key, CostFigure())
        priced, more = (figure, other) if in_money else (other, figure)
        found[key] = replace(priced if priced.calls else more, calls=figure.calls + other.calls)
    return found


def _table(name: str, sums: list[tuple[str, CostFigure]], most: int) -> str:
    labels = project_names(key for key, _ in sums)
    # Tokens stand nowhere beside dollars.
    in_money = any(figure.in_money for _, figure in sums)
    unit = "" if in_money else " tokens"
    rows = [(name, "calls", f"plain Pi{unit}", f"foredeck{unit}", f"saved{unit}", "")]
    for key, figure in sums[:most]:
        label = key if name == "week of" else shortened(labels[key], _NAME)
        shown = (*figure.amounts, figure.share) if figure.in_money == in_money else ("",) * 4
        rows.append((label, f"{figure.calls:,}", *shown))
    text = fitted_table(rows)
    more = len(sums) - most
    return f"{text}\n(and {more:,} more: --json)" if more > 0 else text


def _notes(overview: Overview, *, histories: bool) -> Iterator[str]:
    yield from unpriced_lines(n for figure in overview.total.values() for n in figure.unpriced)
    if overview.ingested and not histories:
        sessions = counted(overview.ingested, "session")
        yield f"{sessions} read from histories are left out: --histories replays them."
    if histories and not overview.replayed:
        yield _nothing_in(overview)
    elif histories:
        yield (
            "Histories are replayed, without a model: what they cost is an estimate (~), by\n"
            "list prices, with Pi's compaction at a window of 200k tokens on plain Pi's side."
        )
    if overview.unread:
        yield f"{counted(len(overview.unread), 'file')} could not be read (--json names them)."
    if overview.left:
        yield f"{counted(overview.left, 'history file')} left out."
    if overview.sessions and not histories:
        yield typed("`foredeck cost SESSION` explains one session, `foredeck sessions` lists them.")
