"""Reading the tables of the full-text layer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from foredeck.search.query import Term
from foredeck.search.ranking import COLUMN_WEIGHTS, Candidate
from foredeck.search.texts import VERSIONED

CANDIDATES = 600
"""Matches with the best BM25 that are ranked; a hit on a later page needs no better one."""
COUNTED = 1_000
"""Up to which number matches are counted."""

_SAMPLED = 4000
"""Up to which number entries with a term are counted."""

_NEWEST = 40_000
"""Among how many of the newest entries those with a phrase are counted: to find a rare phrase of
common words FTS5 passes over all entries that hold these."""

_SCORE = f"-bm25(content, {', '.join(map(str, COLUMN_WEIGHTS))})"
_CANDIDATES = """
SELECT m.id, m.score, e.type, e.role, e.newest, e.session, e.time_ms FROM (
    SELECT content.rowid AS id, {score} AS score
    {tables} WHERE content MATCH ? {where} ORDER BY {order} LIMIT ?
) m JOIN entry e ON e.id = m.id WHERE e.newest >= 0"""
_ENTRIES = """
SELECT e.id, e.document, e.token, e.part, type.text, role.text, status.text, session.text,
    path.text, e.message, e.turn, e.time_ms, e.newest, task.text
FROM entry e JOIN name type ON type.id = e.type JOIN name role ON role.id = e.role
LEFT JOIN name status ON status.id = e.status LEFT JOIN name session ON session.id = e.session
LEFT JOIN name path ON path.id = e.path LEFT JOIN name task ON task.id = e.task"""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must be, besides matching. None: anything.

    sessions  of one of these; a file: met by one of them
    type      message, toolcall, file, task, compaction or observation
    tool      a tool call of this tool, whatever its case
    path      part of the path of the file that it is about
    since_ms  not older
    task      this task itself, what was said while it was active, and the calls made for that
    without   none of these sessions'
    """

    sessions: tuple[str, ...] | None = None
    type: str | None = None
    tool: str | None = None
    path: str | None = None
    since_ms: int | None = None
    task: str | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A row of the index, with its names spelt out."""

    id: int
    document: str
    token: str
    part: str
    type: str
    role: str
    status: str | None
    session: str | None
    path: str | None
    message: str | None
    turn: int | None
    time_ms: int
    newest: int
    task: str | None


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a query is looked for.

    match     as FTS5 is asked
    looked    the terms in it
    left_out  those that are too common
    oldest    the first entry that may match
    scored    whether matches are scored by BM25; else the newest are taken
    """

    match: str
    looked: tuple[Term, ...]
    left_out: tuple[Term, ...] = ()
    oldest: int = 0
    scored: bool = True


@dataclass(slots=True)
class _Where:
    """A condition in SQL, put together."""

    joined: bool = False
    clauses: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)

    def add(self, clause: str, *values: object) -> None:
        """Ask something of a row of `entry`, which is then looked up for each match."""
        self.joined = True
        self.add_plain(clause, *values)

    def add_plain(self, clause: str, *values: object) -> None:
        """Ask something of the row of `content` itself."""
        self.clauses.append(f" AND {clause}")
        self.values.extend(values)

    @property
    def sql(self) -> str:
        return "".join(self.clauses)

    @property
    def tables(self) -> str:
        return "FROM content" + (" JOIN entry e ON e.id = content.rowid" if self.joined else "")


class SearchIndex:
    """Questions to the tables; one connection, which its caller closes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._names: dict[int, str] = {}
        self._all_found: tuple[SearchPlan, Filters, int] | None = None

    def count(self, plan: SearchPlan, filters: Filters) -> int:
        """How many entries match, `COUNTED` where there are more."""
        if self._all_found is not None and self._all_found[:2] == (plan, filters):
            return self._all_found[2]
        where = _where(filters, plan)
        statement = f"SELECT 1 {where.tables} WHERE content MATCH ? {where.sql} LIMIT {COUNTED}"
        return self._number(f"SELECT count(*) FROM ({statement})", plan.match, *where.values)

    def candidates(self, plan: SearchPlan, filters: Filters) -> list[Candidate]:
        """The entries with the best BM25, as many as are ranked; the newest where there is no time
        to score them, all with a score of 1."""
        where = _where(filters, plan)
        score = _SCORE if plan.scored else "1.0"
        order = "score DESC, content.rowid DESC" if plan.scored else "content.rowid DESC"
        rows = self._db.execute(
            _CANDIDATES.format(score=score, tables=where.tables, where=where.sql, order=order),
            (plan.match, *where.values, CANDIDATES),
        ).fetchall()
        # Where these are all, nothing is passed over once more to count them.
        self._all_found = (plan, filters, len(rows)) if len(rows) < CANDIDATES else None
        return [
            Candidate(id, score, self._kind(type, role, newest), session, time_ms)
            for id, score, type, role, newest, session, time_ms in rows
        ]

    def _kind(self, type: int, role: int, newest: int) -> str:
        name = self._shared_name(type)
        if name in VERSIONED and not newest:
            return "older"
        return (
            name
            if name in (*VERSIONED, "compaction", "observation")
            else self._shared_name(role).lower()
        )

    def _shared_name(self, id: int) -> str:
        if id not in self._names:
            self._names[id] = self._db.execute(
                "SELECT text FROM name WHERE id = ?", (id,)
            ).fetchone()[0]
        return self._names[id]

    def holds(self, term: Term) -> bool:
        """Whether an entry holds a term."""
        statement = "SELECT 1 FROM content WHERE content MATCH ? LIMIT 1"
        return self._db.execute(statement, (term.match,)).fetchone() is not None

    def estimate(self, term: Term) -> int:
        """How many entries hold a term: counted up to some thousand of the newest, from there on
        by how close those follow each other; a phrase among the newest entries alone."""
        size = self.size()
        first = max(1, size - _NEWEST + 1) if len(term.words) > 1 else 1
        statement = "SELECT rowid AS id FROM content WHERE content MATCH ? AND rowid >= ?"
        count, oldest = self._db.execute(
            f"SELECT count(*), min(id) FROM ({statement} ORDER BY rowid DESC LIMIT {_SAMPLED})",
            (term.match, first),
        ).fetchone()
        looked_through = size - (first if count < _SAMPLED else int(oldest)) + 1
        return round(int(count) * size / looked_through) if looked_through > 0 else 0

    def entries(self, ids: Iterable[int]) -> dict[int, IndexedText]:
        """Entries by id."""
        wanted = list(ids)
        marks = ", ".join("?" * len(wanted))
        rows = self._db.execute(f"{_ENTRIES} WHERE e.id IN ({marks})", wanted)
        return {row[0]: IndexedText(*row) for row in rows}

    def neighbours(self, entry: IndexedText, each_way: int) -> list[IndexedText]:
        """Entries of the same session before and after one, in order, without itself."""
        if entry.session is None:
            return []
        of_session = "e.session = (SELECT id FROM name WHERE text = ?)"
        there, found = " AND e.newest >= 0", []
        for compared, order in (("<", "DESC"), (">", "ASC")):
            statement = (
                f"{_ENTRIES} WHERE {of_session} AND e.id {compared} ?{there} ORDER BY e.id {order}"
            )
            rows = self._db.execute(f"{statement} LIMIT ?", (entry.session, entry.id, each_way))
            found += [IndexedText(*row) for row in rows]
        return sorted(found, key=lambda one: one.id)

    def matching(self, term: Term, ids: Iterable[int]) -> set[int]:
        """Those of the entries that match one term."""
        statement = "SELECT 1 FROM content WHERE content MATCH ? AND rowid = ?"
        return {id for id in ids if self._db.execute(statement, (term.match, id)).fetchone()}

    def identifiers_with(self, piece: str, most: int) -> list[str]:
        """Identifiers and paths that contain a piece of three characters or more, whatever its
        case; the shortest first."""
        rows = self._db.execute(
            "SELECT name FROM identifier WHERE id IN"
            " (SELECT rowid FROM identifier_part WHERE name LIKE ?)"
            " ORDER BY length(name), name LIMIT ?",
            (f"%{piece}%", most),
        )
        return [name for (name,) in rows]

    def folders(self) -> dict[str, str]:
        """The working folder of each session."""
        return dict(
            self._db.execute("SELECT n.text, f.cwd FROM folder f JOIN name n ON n.id = f.session")
        )

    def sessions_that_met(self, document: str) -> list[str]:
        """The sessions that have met a file, the latest last."""
        rows = self._db.execute(
            "SELECT n.text FROM met m JOIN name n ON n.id = m.session WHERE m.document = ?"
            " ORDER BY n.id",
            (document,),
        )
        return [session for (session,) in rows]

    def size(self) -> int:
        """The number of entries, or a little more."""
        return self._number("SELECT coalesce(max(id), 0) FROM entry")

    def _number(self, statement: str, *values: object) -> int:
        (number,) = self._db.execute(statement, values).fetchone()
        return int(number)


def _where(filters: Filters, plan: SearchPlan) -> _Where:
    where = _Where()
    if plan.oldest:
        where.add_plain("content.rowid >= ?", plan.oldest)
    if filters.sessions is not None:
        marks = ", ".join("?" * len(filters.sessions))
        sessions = f"(SELECT id FROM name WHERE text IN ({marks}))"
        where.add(
            f"(e.session IN {sessions} OR e.session IS NULL AND e.document IN"
            f" (SELECT document FROM met WHERE session IN {sessions}))",
            *filters.sessions,
            *filters.sessions,
        )
    if filters.without:
        marks = ", ".join("?" * len(filters.without))
        hidden = f"(SELECT id FROM name WHERE text IN ({marks}))"
        where.add(f"(e.session IS NULL OR e.session NOT IN {hidden})", *filters.without)
    if filters.type is not None:
        where.add("e.type = (SELECT id FROM name WHERE text = ?)", filters.type)
    if filters.tool is not None:
        where.add("e.type = (SELECT id FROM name WHERE text = 'toolcall')")
        where.add("e.role IN (SELECT id FROM name WHERE lower(text) = ?)", filters.tool.lower())
    if filters.path is not None:
        where.add("e.path IN (SELECT id FROM name WHERE instr(text, ?))", filters.path)
    if filters.since_ms is not None:
        where.add("e.time_ms >= ?", filters.since_ms)
    if filters.task is not None:
        task = "(SELECT id FROM name WHERE text = ?)"
        # A call is stored before the turn that tells its task.
        where.add(
            f"(e.task = {task} OR e.message IN (SELECT message FROM entry WHERE task = {task}))",
            filters.task,
            filters.task,
        )
    return where
