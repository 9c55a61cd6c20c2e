"""Writes texts into the full-text layer."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, cast

from foredeck.model.names import RUN, humps, spaced
from foredeck.search.secrets import mask_secrets, signs_of_word
from foredeck.search.texts import VERSIONED, SearchedText
from foredeck.store.sqlite.rows import select_in

_ENTRY = "INSERT INTO entry VALUES (" + ", ".join("?" * 15) + ")"
_CONTENT = "INSERT INTO content (rowid, said, output, parts, path) VALUES (?, ?, ?, ?, ?)"

_IDENTIFIER = """
INSERT INTO identifier (name, uses)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
WHERE true ORDER BY key
ON CONFLICT (name) DO UPDATE SET uses = uses + excluded.uses"""

_PARTS = attrgetter("parts")

_AT_ONCE_CHARS = 2_000_000
"""Written together, since one statement is faster."""

_BINDING = re.compile(r"[A-Za-z0-9][_./-][A-Za-z0-9]")
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"
_SEPARATE = bytes(byte if byte in _NAME_BYTES or byte > 127 else 32 for byte in range(256))

SHORTEST, LONGEST = 4, 160
"""Lengths of identifiers found by pieces."""
_KNOWN_AT_MOST = 500_000
"""Words remembered before forgetting all."""


def _last(db: sqlite3.Connection, table: str) -> int:
    (last,) = db.execute(f"SELECT max(id) FROM {table}").fetchone()
    return int(last or 0)


@dataclass(frozen=True, slots=True)
class IndexedContent:
    """Indexed content; `notable` has distinct special words."""

    columns: tuple[str, str, str, str]
    notable: list[Notable]


class SearchWriter:
    """Writes texts into an open transaction; call `finish`."""

    def __init__(self, db: sqlite3.Connection, vocabulary: Vocabulary) -> None:
        self._db = db
        self._vocabulary = vocabulary
        self._names: dict[str, int] = {}
        self._uses: Counter[Notable] = Counter()
        self._waiting: dict[int, SearchedText] = {}
        self._waiting_chars = 0
        self._files: list[SearchedText] = []
        self._superseded: dict[str, str] = {}
        self._next = _last(db, "entry") + 1

    def add(self, texts: Iterable[SearchedText]) -> None:
        """Adds texts, each once, in order."""
        for text in texts:
            # Numbered here and not when it is written, so that numbers do not depend on batches.
            for name in (text.type, text.role, text.status, text.session, text.path, text.task):
                if name is not None:
                    self.name(name)
            if text.type in VERSIONED:
                self._files.append(text)
            self._waiting.setdefault(key_of_text(text), text)
            self._waiting_chars += len(text.said) + len(text.output)
            if self._waiting_chars > _AT_ONCE_CHARS:
                self._write()

    def finish(self) -> None:
        """Writes everything collected, with identifiers for search by piece."""
        self._write()
        self._finish_files()
        # The rows stay: the numbers of those that follow count on it.
        self._db.executemany(
            "UPDATE entry SET newest = -1 WHERE document = ? AND token <> ?",
            self._superseded.items(),
        )
        self._superseded.clear()
        self._write_identifiers()

    def supersede(self, document: str, token: str) -> None:
        """Lets only this version of an observation count."""
        self._superseded[encodable(document)] = token

    def meet(self, document: str, session: str) -> None:
        """A session has met a file."""
        row = (document, self.name(session))
        self._db.execute("INSERT OR IGNORE INTO met VALUES (?, ?)", row)

    def place(self, session: str, cwd: str) -> None:
        """A session works in a folder."""
        row = (self.name(session), cwd)
        self._db.execute("INSERT OR REPLACE INTO folder VALUES (?, ?)", row)

    def name(self, text: str) -> int:
        """The number of a shared name."""
        if (number := self._names.get(text)) is not None:
            return number
        stored = encodable(text)
        self._db.execute("INSERT OR IGNORE INTO name (text) VALUES (?)", (stored,))
        row = self._db.execute("SELECT id FROM name WHERE text = ?", (stored,)).fetchone()
        self._names[text] = int(row[0])
        return self._names[text]

    def _write(self) -> None:
        keys = select_in(self._db, "SELECT key FROM entry", "key", list(self._waiting))
        there = {key for (key,) in keys}
        new = [(key, text) for key, text in self._waiting.items() if key not in there]
        ids = range(self._next, self._next + len(new))
        self._next = ids.stop
        entries = [self._entry(id, *one) for id, one in zip(ids, new, strict=True)]
        self._db.executemany(_ENTRY, entries)
        contents = []
        for id, (_, text) in zip(ids, new, strict=True):
            content = content_of(text, self._vocabulary)
            self._uses.update(content.notable)
            contents.append((id, *content.columns))
        self._db.executemany(_CONTENT, contents)
        self._waiting.clear()
        self._waiting_chars = 0

    def _write_identifiers(self) -> None:
        last = _last(self._db, "identifier")
        self._db.execute(_IDENTIFIER, (json.dumps([*uses_by_name(self._uses).items()]),))
        self._db.execute(
            "INSERT INTO identifier_part (rowid, name)"
            " SELECT id, name FROM identifier WHERE id > ? ORDER BY id",
            (last,),
        )
        self._uses.clear()

    def _entry(self, id: int, key: int, text: SearchedText) -> tuple[object, ...]:
        names = self._names
        return (
            id,
            key,
            encodable(text.document),
            text.token,
            text.part,
            names[text.type],
            names[text.role],
            None if text.status is None else names[text.status],
            None if text.session is None else names[text.session],
            None if text.path is None else names[text.path],
            text.message,
            text.turn,
            text.time_ms,
            1,
            None if text.task is None else names[text.task],
        )

    def _finish_files(self) -> None:
        # A content that a file had before counts as of the time when it last had it.
        self._db.executemany(
            "UPDATE entry SET time_ms = max(time_ms, ?) WHERE key = ?",
            ((text.time_ms, key_of_text(text)) for text in self._files),
        )
        for document in dict.fromkeys(encodable(text.document) for text in self._files):
            self._mark_newest(document)
        self._files.clear()

    def _mark_newest(self, document: str) -> None:
        self._db.execute(
            "UPDATE entry SET newest = (id = (SELECT id FROM entry WHERE document = ?1"
            " AND session IS NULL ORDER BY time_ms DESC, id DESC LIMIT 1))"
            " WHERE document = ?1 AND session IS NULL",
            (document,),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Notable:
    """A word that is more than a word: an identifier, camelCase, or the sign of a secret."""

    name: str
    parts: str
    signs: int


class Vocabulary:
    """Finds words that need more than FTS5."""

    # FTS5 splits at everything but letters and digits, so that the parts of `snake_case`,
    # `dotted.names` and paths are words of their own, and the whole is a phrase of them. It does
    # not split `camelCase`: those parts are indexed beside the text.

    def __init__(self) -> None:
        self._known: dict[bytes, Notable | Literal[False]] = {}

    def notable(self, text: str) -> list[Notable]:
        """Distinct notable words in order."""
        # Splitting at bytes and looking words up takes a tenth of the time of a regular expression
        # over the text, and most words of a text have been met before.
        words = text.encode("utf-8", "replace").translate(_SEPARATE).split()
        entries = [*map(self._known.get, words)]
        if None in entries:
            self._learn(words)
            entries = [*map(self._known.get, words)]
        return cast("list[Notable]", [*dict.fromkeys(filter(None, entries))])

    def _learn(self, words: Iterable[bytes]) -> None:
        cache = self._known
        if len(cache) > _KNOWN_AT_MOST:
            cache.clear()
        for word in words:
            if word not in cache:
                cache[word] = _closer(word.decode("utf-8", "replace")) or False


def content_of(text: SearchedText, vocabulary: Vocabulary) -> IndexedContent:
    """A text's index content; deterministic."""
    said_text, output, path = map(encodable, (text.said, text.output, text.path or ""))
    notable = vocabulary.notable(f"{path} {said_text} {output}")
    signs = 0
    for word in notable:
        signs |= word.signs
    if signs:
        masked = mask_secrets(said_text, signs), mask_secrets(output, signs)
        if masked != (said_text, output):
            said_text, output = masked
            notable = vocabulary.notable(f"{path} {said_text} {output}")
    parts = " ".join(filter(None, map(_PARTS, notable)))
    columns = (spaced(said_text), spaced(output), parts, spaced(path))
    return IndexedContent(columns, notable)


def uses_by_name(uses: Mapping[Notable, int]) -> dict[str, int]:
    """Uses by identifier, in word order."""
    counts: dict[str, int] = {}
    for word, count in uses.items():
        if word.name:
            counts[word.name] = counts.get(word.name, 0) + count
    return counts


def key_of_text(text: SearchedText) -> int:
    """A document's text in 64 bits, so that it is indexed once."""
    name = "\0".join((text.document, text.part, text.digest)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)


def encodable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _closer(word: str) -> Notable | None:
    signs = signs_of_word(word)
    if word.isalnum() and (word.islower() or word.isdigit()):
        return Notable("", "", signs) if signs else None
    name = word.strip("./-")
    parts = [hump for piece in RUN.findall(name) for hump in _camel(piece)]
    if not SHORTEST <= len(name) <= LONGEST or not (parts or _BINDING.search(name)):
        name = ""
    return Notable(name, " ".join(parts), signs) if name or parts or signs else None


def _camel(word: str) -> list[str]:
    if word.islower() or not word.isascii() or len(word) > LONGEST:
        return []
    parts = humps(word)
    return parts if len(parts) > 1 and not word.isupper() and not word.isdecimal() else []
