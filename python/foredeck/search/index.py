"""Reading the tables of the full-text layer."""

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
"""Up to which number entries with a term are counted."""

_NEWEST = 40_000
"""Among how many of the newest entries those with a phrase are counted: to find a rare phrase of
common words FTS5 passes over all entries that hold these."""

_FEW = 100_000
"""Up to which number the entries of some sessions are counted."""

_SCORE = f"-bm25(content, {', '.join(map(str, COLUMN_WEIGHTS))})"
_HIGHEST_SCORE = f"-bm25(content, {', '.join('1e15' for _ in COLUMN_WEIGHTS)})"
"""From it the rarity of a word follows. To count the entries that hold it would be to pass over all
of them once more: FTS5 has done so for the first score."""
_HIGHEST = 2.2

_LEAST_RARITY = 1e-6
"""What FTS5 takes for the rarity of a word that half of all entries hold."""

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
    """What a hit must be, besides matching. None: anything.

    sessions  of one of these; a file: met by one of them
    type      a `SearchedType`
    tool      a tool call of this tool, whatever its case
    path      part of the path of the file that it is about
    since_ms  not older
    task      this task itself, what was said while it was active, and the calls made for that
    without   none of these sessions'
    memories  of the entries of memory these versions, each an id and a token, whatever their
              session: whoever asks says what they may be shown
    tasks     beside those of the sessions: a project's, made by whomever
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
class Extent:
    """Entries that are searched: some `count` of those with ids from `first` to `last`."""

    first: int
    last: int
    count: int

    @property
    def density(self) -> float:
        """The share of the entries between first and last that are searched."""
        return min(1.0, self.count / max(1, self.last - self.first + 1))

    def newest(self, share: float) -> Extent:
        """The newest share of it."""
        length = int((self.last - self.first + 1) * share)
        return Extent(self.last - length + 1, self.last, int(self.count * share))


class SearchIndex:
    """Questions to the tables; one connection, which its caller closes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._kinds: dict[tuple[int, ...], str] = {}

    def find(self, term: Term, extent: Extent, filters: Filters) -> FoundWord:
        """How strongly each entry that a filter lets pass is about a term."""
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
            found = {id: score / fts5_rarity for id, score, _ in rows}
            if strengths:
                found = {id: max(new, strengths.get(id, 0.0)) for id, new in found.items()}
            strengths |= found
            if fts5_rarity > 2 * _LEAST_RARITY:
                everywhere += _holders(fts5_rarity, size)
            else:  # none was found, or more than half hold it: those of the extent tell
                held = (
                    "SELECT count(*) FROM content WHERE content MATCH ? AND rowid BETWEEN ? AND ?"
                )
                everywhere += self._number(held, match, extent.first, extent.last) / part
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
        """The entries of memory that are none of these versions."""
        shown = json.dumps([" ".join(version) for version in memories])
        rows = self._db.execute(
            f"SELECT e.id FROM entry e WHERE e.session IS NULL AND {_OF_MEMORY}"
            " AND e.document || ' ' || e.token NOT IN (SELECT value FROM json_each(?))",
            (shown,),
        )
        return [id for (id,) in rows]

    def candidates(self, ids: Iterable[int], filters: Filters) -> dict[int, Candidate]:
        """What ranking asks of entries: of those that a filter lets pass."""
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
        """Where the entries of some sessions lie, and what belongs to none and may be found."""
        if filters.sessions is None:
            return Extent(1, self.size(), self.size())
        named = json.dumps(filters.sessions)
        count = self._number(
            f"SELECT count(*) FROM (SELECT 1 FROM entry WHERE session IN {_OF_SESSIONS} LIMIT ?)",
            *(named, _FEW),
        )
        first, last = self._db.execute(
            f"SELECT min(id), max(id) FROM (SELECT id FROM entry WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT id FROM entry WHERE session IS NULL AND document IN"
            f" (SELECT document FROM met WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT value FROM json_each(?)))",
            (named, named, json.dumps([*(id for id, _ in filters.memories), *filters.tasks])),
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
        """Whether an entry holds a term."""
        statement = "SELECT 1 FROM content WHERE content MATCH ? LIMIT 1"
        return self._db.execute(statement, (term.match,)).fetchone() is not None

    def estimate(self, term: Term, extent: Extent) -> float:
        """How many entries of an extent hold a term: counted up to some thousand of the newest,
        from there on by how close those follow each other; a phrase among the newest alone."""
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

    def _content_size(self) -> int:
        """The number of entries as FTS5 counts with it: the first number of its record of
        averages, a varint of seven bits a byte."""
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
    """How many entries hold what FTS5 gives this rarity."""
    odds = math.exp(fts5_rarity)
    return (size + 0.5 - 0.5 * odds) / (1 + odds)


def _where(filters: Filters) -> tuple[str, list[object]]:
    """A condition on rows of `entry e`, to follow others, with its values; empty for none."""
    found: list[tuple[str, tuple[object, ...]]] = []
    if filters.sessions is not None:
        named = json.dumps(filters.sessions)
        clause = (
            f"(e.session IN {_OF_SESSIONS} OR e.session IS NULL AND ({_OF_MEMORY} OR e.document IN"
            f" (SELECT document FROM met WHERE session IN {_OF_SESSIONS}"
            " UNION ALL SELECT value FROM json_each(?))))"
        )
        found.append((clause, (named, named, json.dumps(filters.tasks))))
    if filters.without:
        hidden = f"(e.session IS NULL OR e.session NOT IN {_OF_SESSIONS})"
        found.append((hidden, (json.dumps(filters.without),)))
    if filters.type is not None:
        found.append(("e.type = (SELECT id FROM name WHERE text = ?)", (filters.type,)))
    if filters.tool is not None:
        found.append(("e.type = (SELECT id FROM name WHERE text = 'toolcall')", ()))
        of_tool = "e.role IN (SELECT id FROM name WHERE lower(text) = ?)"
        found.append((of_tool, (filters.tool.lower(),)))
    if filters.path is not None:
        found.append(("e.path IN (SELECT id FROM name WHERE instr(text, ?))", (filters.path,)))
    if filters.since_ms is not None:
        found.append(("e.time_ms >= ?", (filters.since_ms,)))
    if filters.task is not None:
        task = "(SELECT id FROM name WHERE text = ?)"
        # A call is stored before the turn that tells its task.
        worked_on = (
            f"(e.task = {task} OR e.message IN (SELECT message FROM entry WHERE task = {task}))"
        )
        found.append((worked_on, (filters.task, filters.task)))
    values = [value for _, given in found for value in given]
    return "".join(f" AND {clause}" for clause, _ in found), values
