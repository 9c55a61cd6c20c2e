"""`foredeck cost --all`: what all sessions have cost beside plain Pi, by project and by week."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from multiprocessing import active_children
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.cli.output import Progress, fitted_table, typed
from foredeck.lookup.sessions import newest_calls, project_folder
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, shortened
from foredeck.store.protocol import Store

if TYPE_CHECKING:  # loads the engine
    from foredeck.replay.replayed_session import RecordedFigure

WEEKS, PROJECTS = 12, 15
"""How many of each are printed; --json has all."""
_NAME = 24
_IGNORE = signal.SIGINT, signal.SIG_IGN


@dataclass(slots=True)
class Overview:
    """Sums of sessions. Those in money and those in tokens, of models without a price, are apart,
    since they cannot be added."""

    sessions: int = 0
    total: dict[bool, CostFigure] = field(default_factory=dict)
    projects: dict[tuple[bool, str], CostFigure] = field(default_factory=dict)
    weeks: dict[tuple[bool, str], CostFigure] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Ids of the sessions that are counted."""
    calls: set[str] = field(default_factory=set)
    """Identities of the answers in histories that are counted."""
    unread: list[str] = field(default_factory=list)
    """Histories that could not be read."""
    left: int = 0
    """Histories that were not read, since the user interrupted."""
    ingested: int = 0
    """Stored sessions that were read from histories, of which no prompts are stored."""

    def add(self, session: str, project: str, last_ms: int, figure: CostFigure) -> None:
        """Take in one session, once."""
        if not figure.calls or session in self.known:
            return
        self.known.add(session)
        self.sessions += 1
        self._sum(project, last_ms, figure)

    def add_history(self, found: RecordedFigure, stored: Set[str]) -> None:
        """Take in the calls of a history that no other one has had; `stored`: sessions that are
        counted already, whose histories only say which calls those were."""
        new = [figure for identity, figure in found.calls if identity not in self.calls]
        self.calls.update(identity for identity, _ in found.calls)
        figure = sum(new, CostFigure())
        if figure.calls and found.session not in stored:
            self.sessions += found.session not in self.known
            self.known.add(found.session)
            self._sum(project_folder(found.folder), found.last_ms, figure)

    def _sum(self, project: str, last_ms: int, figure: CostFigure) -> None:
        unit = figure.in_money
        self.total[unit] = self.total.get(unit, CostFigure()) + figure
        for sums, key in ((self.projects, project), (self.weeks, week_of(last_ms))):
            sums[unit, key] = sums.get((unit, key), CostFigure()) + figure

    def to_json(self) -> dict[str, Any]:
        """For programs."""

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


def week_of(time_ms: int) -> str:
    """The Monday of the week in which a time lies."""
    day = datetime.fromtimestamp(time_ms / 1000)
    return f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"


def add_stored(overview: Overview, store: Store) -> None:
    """Take in all sessions of a store that have made calls. Only the newest record of each is
    read."""
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
    """Take in what other agents have kept, the newest files first; stores nothing.

    Each file is replayed, several at a time. After Ctrl-C the sums so far are kept.
    """
    # Loads the engine, which a stored session has no use for.
    from foredeck.replay.replayed_session import recorded_figures

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


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def overview_text(overview: Overview, *, histories: bool) -> str:
    """One page: the total, then by week and by project."""
    if not overview.sessions:
        said = "No stored session has made a call with foredeck yet."
        hint = " `foredeck cost --histories` looks at what coding agents have kept."
        return typed(said + hint * (not histories))
    parts = [_verdict(overview)]
    weeks = sorted(overview.weeks.items(), key=lambda item: item[0][1], reverse=True)
    parts.append(_table("week of", weeks, WEEKS))
    projects = sorted(
        overview.projects.items(), key=lambda item: (item[0][0], item[1].plain), reverse=True
    )
    parts.append(_table("project", projects, PROJECTS))
    return "\n\n".join([*parts, "\n".join(_notes(overview, histories=histories))])


def _verdict(overview: Overview) -> str:
    figures = [overview.total[unit] for unit in (True, False) if unit in overview.total]
    first, *others = (f"{figure.sentence}." for figure in figures)
    without = [f"At models without a price: {line}" for line in others]
    projects = counted(len({key for _, key in overview.projects}), "project")
    return "\n".join([first, *without, f"{counted(overview.sessions, 'session')} in {projects}."])


def _table(name: str, sums: list[tuple[tuple[bool, str], CostFigure]], most: int) -> str:
    labels = _labels([key for (_, key), _ in sums])
    rows = [(name, "calls", "plain Pi", "foredeck", "saved", "")]
    for (_, key), figure in sums[:most]:
        label = key if name == "week of" else labels[key]
        plain, ours = figure.amount(figure.plain), figure.amount(figure.ours)
        saved = figure.amount(figure.saved)
        rows.append((label, f"{figure.calls:,}", plain, ours, saved, figure.share))
    text = fitted_table(rows)
    more = len(sums) - most
    return f"{text}\n(and {more:,} more: --json)" if more > 0 else text


def _labels(folders: Sequence[str]) -> dict[str, str]:
    """What each folder is called: its name, with its parent's where another has the same."""
    names = Counter(PurePath(folder).name for folder in set(folders))
    labels = {}
    for folder in folders:
        path = PurePath(folder)
        name = path.name if names[path.name] == 1 else "/".join(path.parts[-2:])
        labels[folder] = shortened(name or "(no folder)", _NAME)
    return labels


def _notes(overview: Overview, *, histories: bool) -> Iterator[str]:
    if overview.ingested and not histories:
        sessions = counted(overview.ingested, "session")
        yield f"{sessions} read from histories are left out: --histories replays them."
    if histories:
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
