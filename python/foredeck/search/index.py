"""Reads the tables of the full-text layer."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.search.query import Term
from foredeck.search.ranking import COLUMN_WEIGHTS, Candidate, FoundWord, rarity, rarity_within
from foredeck.search.texts import VERSIONED
from foredeck.store.sqlite.rows import select_in

_SAMPLED = 4000

_NEWEST = 40_000
"""Newest entries in which phrases are counted."""

_FEW = 100_000

_SCORE = f"-bm25(content, {', '.join(map(str, COLUMN_WEIGHTS))})"
_HIGHEST_SCORE = f"-bm25(content, {', '.join('1e15' for _ in COLUMN_WEIGHTS)})"
"""Gives a word's rarity from FTS5's first score."""
_HIGHEST = 2.2

_LEAST_RARITY = 1e-6
"""FTS5's rarity of a word in half of all entries."""

_OF_SESSIONS = "(SELECT id FROM name WHERE text IN (SELECT value FROM json_each(?)))"
_OF_MEMORY = "e.document >= 'memory:' AND e.document < 'memory;'"
_ENTRIES = """
SELECT e.id, e.document, e.token, e.part, type.text, role.text, status.text, session.text,
    path.text, e.message, e.turn, e.time_ms, e.newest, task.text
FROM entry e JOIN name type ON type.id = e.type JOIN name role ON role.id = e.role
LEFT JOIN name status ON status.id = e.status LEFT JOIN name session ON session.id = e.session
LEFT JOIN name path ON path.id = e.path LEFT JOIN name task ON task.id = e.task"""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must be; None: anything.

    `sessions`: of these, or met by them; `type`, `tool`, `path`, `since_ms`; `task`: itself, and
    what was said and called for it; `without`: not of these sessions; `memories`: versions that may
    be shown; `tasks`: a project's.
    """

    sessions: tuple[str, ...] | None = None
    type: str | None = None
    tool: str | None = None
    path: str | None = None
    since_ms: int | None = None
    task: str | None = None
    without: tuple[str, ...] = ()
    memories: tuple[tuple[str, str], ...] = ()
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexedText:
    """An index row with names spelt out."""

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
class Extent:
    """Searched entries: `count` from `first` to `last`."""

    first: int
    last: int
    count: int

    @property
    def density(self) -> float:
        """Share of the range that is searched."""
        return min(1.0, self.count / max(1, self.last - self.first + 1))

    def newest(self, share: float) -> Extent:
        """The newest share of it."""
        length = int((self.last - self.first + 1) * share)
        return Extent(self.last - length + 1, self.last, int(self.count * share))


class SearchIndex:
    """Questions to the tables, on a connection that its caller closes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._kinds: dict[tuple[int, ...], str] = {}

    def find(self, term: Term, extent: Extent, filters: Filters) -> FoundWord:
        """Strength of each passing entry for a term."""
        where, filtered_by = _where(filters)
        join = "JOIN entry e ON e.id = content.rowid" if where else ""
        statement = (
            f"SELECT content.rowid, {_SCORE}, {_HIGHEST_SCORE} FROM content {join}"
            f" WHERE content MATCH ? AND content.rowid BETWEEN ? AND ?{where}"
        )
        # The scores are BM25 with a rarity among all entries; that is divided out, since only what
        # is searched counts. Where a word counts without end (`_HIGHEST_SCORE`), the score is the
        # rarity times `_HIGHEST`.
        size, everywhere = self._content_size(), 0.0
        part = max(1, extent.last - extent.first + 1) / max(1, self.size())
        strengths: dict[int, float] = {}
        for match in term.matches:
            values = (match, extent.first, extent.last, *filtered_by)
            rows = self._db.execute(statement, values).fetchall()
            fts5_rarity = rows[0][2] / _HIGHEST if rows else 0.0
            strengths_of_match = {id: score / fts5_rarity for id, score, _ in rows}
            if strengths:
                strengths_of_match = {
                    id: max(new, strengths.get(id, 0.0)) for id, new in strengths_of_match.items()
                }
            strengths |= strengths_of_match
            if fts5_rarity > 2 * _LEAST_RARITY:
                everywhere += _holders(fts5_rarity, size)
            else:  # none was found, or more than half hold it: those of the extent tell
                query = (
                    "SELECT count(*) FROM content WHERE content MATCH ? AND rowid BETWEEN ? AND ?"
                )
                everywhere += self._number(query, match, extent.first, extent.last) / part
        # Memory belongs to no session, so that no filter leaves it out: whoever asks has said which
        # versions may be shown.
        for id in self._hidden(filters.memories):
            strengths.pop(id, None)
        if filters.sessions is None:
            return FoundWord(term.text, strengths, rarity(everywhere, max(size, everywhere)))
        share = min(1.0, everywhere / max(1, size))
        within = max(extent.count, len(strengths))
        return FoundWord(term.text, strengths, rarity_within(len(strengths), within, share))

    def _hidden(self, memories: tuple[tuple[str, str], ...]) -> list[int]:
        versions = json.dumps([" ".join(version) for version in memories])
        rows = self._db.execute(
            f"SELECT e.id FROM entry e WHERE e.session IS NULL AND {_OF_MEMORY}"
            " AND e.document || ' ' || e.token NOT IN (SELECT value FROM json_each(?))",
            (versions,),
        )
        return [id for (id,) in rows]

    def candidates(self, ids: Iterable[int], filters: Filters) -> dict[int, Candidate]:
        """Ranking data of passing entries."""
        where, filtered_by = _where(filters)
        rows = self._db.execute(
            "SELECT e.id, e.type, e.role, e.newest, e.session, e.time_ms FROM entry e"
            f" WHERE e.id IN (SELECT value FROM json_each(?)) AND e.newest >= 0{where}",
            (json.dumps(list(ids)), *filtered_by),
        )
        return {
            id: Candidate(id, self._kind(type, role, newest), session, time_ms)
            for id, type, role, newest, session, time_ms in rows
        }

    def extent(self, filters: Filters) -> Extent:
        if filters.sessions is None:
            return Extent(1, self.size(), self.size())
        session_json = json.dumps(filters.sessions)
        count = self._number(
            f"SELECT count(*) FROM (SELECT 1 FROM entry WHERE session IN {_OF_SESSIONS} LIMIT ?)",
            *(session_json, _FEW),
        )
        first, last = self._db.execute(
            f"SELECT min(id), max(id) FROM (SELECT id FROM entry WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT id FROM entry WHERE session IS NULL AND document IN"
            f" (SELECT document FROM met WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT value FROM json_each(?)))",
            (
                session_json,
                session_json,
                json.dumps([*(id for id, _ in filters.memories), *filters.tasks]),
            ),
        ).fetchone()
        if first is None:
            return Extent(1, 0, 0)
        return Extent(first, last, last - first + 1 if count == _FEW else count)

    def _kind(self, *key: int) -> str:
        if key not in self._kinds:
            type, role, newest = key
            name = self._shared_name(type)
            if name not in (*VERSIONED, "compaction", "observation", "reflection"):
                name = self._shared_name(role).lower()
            elif name in VERSIONED and not newest:
                name = "older"
            self._kinds[key] = name
        return self._kinds[key]

    def _shared_name(self, id: int) -> str:
        (name,) = self._db.execute("SELECT text FROM name WHERE id = ?", (id,)).fetchone()
        return str(name)

    def holds(self, term: Term) -> bool:
        """Whether any entry has a term."""
        statement = "SELECT 1 FROM content WHERE content MATCH ? LIMIT 1"
        return self._db.execute(statement, (term.match,)).fetchone() is not None

    def estimate(self, term: Term, extent: Extent) -> float:
        """Estimated number of entries with a term, from some thousand newest."""
        return sum(
            self._estimate(match, extent, len(phrase) > 1)
            for match, phrase in zip(term.matches, term.phrases, strict=True)
        )

    def _estimate(self, match: str, extent: Extent, is_phrase: bool) -> float:
        length = extent.last - extent.first + 1
        first = max(extent.first, extent.last - _NEWEST + 1) if is_phrase else extent.first
        count, oldest = self._db.execute(
            "SELECT count(*), min(id) FROM (SELECT rowid AS id FROM content WHERE content MATCH ?"
            f" AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT {_SAMPLED})",
            (match, first, extent.last),
        ).fetchone()
        looked_through = extent.last - (first if count < _SAMPLED else int(oldest)) + 1
        return int(count) * length / max(1, looked_through)

    def entries(self, ids: Iterable[int]) -> dict[int, IndexedText]:
        """Entries by id."""
        rows = select_in(self._db, _ENTRIES, "e.id", list(ids))
        return {row[0]: IndexedText(*row) for row in rows}

    def neighbours(self, entry: IndexedText, each_way: int) -> list[IndexedText]:
        if entry.session is None:
            return []
        of_session = "e.session = (SELECT id FROM name WHERE text = ?)"
        there, around = " AND e.newest >= 0", []
        for compared, order in (("<", "DESC"), (">", "ASC")):
            statement = (
                f"{_ENTRIES} WHERE {of_session} AND e.id {compared} ?{there} ORDER BY e.id {order}"
            )
            rows = self._db.execute(f"{statement} LIMIT ?", (entry.session, entry.id, each_way))
            around += [IndexedText(*row) for row in rows]
        return sorted(around, key=lambda one: one.id)

    def identifiers_with(self, piece: str, most: int) -> list[str]:
        """Identifiers and paths containing a piece of three or more characters, shortest first."""
        rows = self._db.execute(
            "SELECT name FROM identifier WHERE id IN"
            " (SELECT rowid FROM identifier_part WHERE name LIKE ?)"
            " ORDER BY length(name), name LIMIT ?",
            (f"%{piece}%", most),
        )
        return [name for (name,) in rows]

    def folders(self) -> dict[str, str]:
        """Working folders by session."""
        return dict(
            self._db.execute("SELECT n.text, f.cwd FROM folder f JOIN name n ON n.id = f.session")
        )

    def sessions_that_met(self, document: str) -> list[str]:
        """Sessions that met a file, latest last."""
        rows = self._db.execute(
            "SELECT n.text FROM met m JOIN name n ON n.id = m.session WHERE m.document = ?"
            " ORDER BY n.id",
            (document,),
        )
        return [session for (session,) in rows]

    def size(self) -> int:
        """Number of entries, roughly."""
        return self._number("SELECT coalesce(max(id), 0) FROM entry")

    def _content_size(self) -> int:
        """FTS5's number of entries: the first varint of its averages record."""
        (averages,) = self._db.execute("SELECT block FROM content_data WHERE id = 1").fetchone()
        size = 0
        for byte in averages:
            size = size << 7 | byte & 0x7F
            if byte < 0x80:
                break
        return size

    def _number(self, statement: str, *values: object) -> int:
        (number,) = self._db.execute(statement, values).fetchone()
        return int(number)


def _holders(fts5_rarity: float, size: int) -> float:
    """Number of entries behind an FTS5 rarity."""
    odds = math.exp(fts5_rarity)
    return (size + 0.5 - 0.5 * odds) / (1 + odds)


def _where(filters: Filters) -> tuple[str, list[object]]:
    clauses: list[tuple[str, tuple[object, ...]]] = []
    if filters.sessions is not None:
        session_json = json.dumps(filters.sessions)
        clause = (
            f"(e.session IN {_OF_SESSIONS} OR e.session IS NULL AND ({_OF_MEMORY} OR e.document IN"
            f" (SELECT document FROM met WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT value FROM json_each(?))))"
        )
        clauses.append((clause, (session_json, session_json, json.dumps(filters.tasks))))
    if filters.without:
        hidden = f"(e.session IS NULL OR e.session NOT IN {_OF_SESSIONS})"
        clauses.append((hidden, (json.dumps(filters.without),)))
    if filters.type is not None:
        clauses.append(("e.type = (SELECT id FROM name WHERE text = ?)", (filters.type,)))
    if filters.tool is not None:
        clauses.append(("e.type = (SELECT id FROM name WHERE text = 'toolcall')", ()))
        of_tool = "e.role IN (SELECT id FROM name WHERE lower(text) = ?)"
        clauses.append((of_tool, (filters.tool.lower(),)))
    if filters.path is not None:
        clauses.append(("e.path IN (SELECT id FROM name WHERE instr(text, ?))", (filters.path,)))
    if filters.since_ms is not None:
        clauses.append(("e.time_ms >= ?", (filters.since_ms,)))
    if filters.task is not None:
        task = "(SELECT id FROM name WHERE text = ?)"
        # A call is stored before the turn that tells its task.
        worked_on = (
            f"(e.task = {task} OR e.message IN (SELECT message FROM entry WHERE task = {task}))"
        )
        clauses.append((worked_on, (filters.task, filters.task)))
    values = [value for _, arguments in clauses for value in arguments]
    return "".join(f" AND {clause}" for clause, _ in clauses), values
