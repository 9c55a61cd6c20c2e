"""Which blobs the stored versions need, found by reading all of them.

Forgetting relies on the answer, so it is worked out from the versions each time: an index kept
beside them could be wrong after a crash, a restore or an import. A version is parsed only where
its text names a hash that is searched for; the others cost an inflating each.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from foredeck.store.protocol import Advance, Looked
from foredeck.store.references import RECORDS, in_message, references
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.writing import late_versions

BATCH = 500
"""How many versions are held at once."""

Read = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Blobs by hash; those that are missing are left out."""

_VERSIONS = """
SELECT v.number, d.id, d.type, v.content_hash, v.view_hash, v.text_hash, v.body
FROM version v JOIN document d ON d.number = v.document
WHERE v.number > ? ORDER BY v.number"""
_HASH = re.compile(r'"([0-9a-f]{64})"')
_MARK = re.compile(r'"\$(?:text|base64|json)":"[0-9a-f]{64}"')
_WITHOUT = frozenset({"chat", "member"})
"""Types that name no blob but their content: their fields are few and of fixed types."""


def looked_through(db: sqlite3.Connection) -> Looked:
    """Where the file ends now."""
    (last,) = db.execute("SELECT max(number) FROM version").fetchone()
    return Looked(last or 0, late_versions(db))


def needed_blobs(
    db: sqlite3.Connection,
    read: Read,
    digests: Iterable[str],
    gone: Collection[str],
    advance: Advance,
) -> set[str]:
    """Those of `digests` that documents other than `gone` need, in any version.

    `advance` is called for each `BATCH` of versions. Memory does not grow with the store.
    """
    search = _Search(read, digests)
    rows = db.execute(_VERSIONS, (0,))
    while search.wanted and (batch := rows.fetchmany(BATCH)):
        search.look([row[1:] for row in batch if codec.id_text(row[1]) not in gone])
        advance()
    return search.found


def is_taken_up(
    db: sqlite3.Connection, read: Read, looked: Looked, ids: Collection[str], blobs: Iterable[str]
) -> bool:
    """Whether anything that has come since uses these documents or blobs."""
    if late_versions(db) != looked.late:
        return True
    search = _Search(read, blobs)
    for _, stored, type_, *columns in db.execute(_VERSIONS, (looked.last,)):
        id = codec.id_text(stored)
        if type_ == "forgotten":
            continue
        if id in ids or _names(codec.decode_fields(id, type_, *columns), ids):
            return True
        search.look([(stored, type_, *columns)])
    return bool(search.found)


def _names(fields: Mapping[str, Any], ids: Collection[str]) -> bool:
    """Whether a document belongs to a session among `ids` or to a copy of one, or lists one."""
    sessions = (fields.get("session"), fields.get("parent_session"))
    return fields.get("object") in ids or any(f"session:{id}" in ids for id in sessions if id)


def _hashes(text: str) -> set[str]:
    """The strings in a JSON text that may be hashes. An empty one means JSON that escapes
    their digits, as ours never does: it has to be parsed."""
    found = set(_HASH.findall(text))
    return found | {""} if "\\u003" in text or "\\u006" in text else found


class _Search:
    """Moves what it finds from `wanted` to `found`."""

    def __init__(self, read: Read, digests: Iterable[str]) -> None:
        self._read = read
        self.wanted = set(digests)
        self.found: set[str] = set()

    def look(self, rows: Iterable[Any]) -> None:
        """Look at versions: `(id as stored, type, hashes, text hash, body)`."""
        suspects: list[tuple[Any, set[str]]] = []
        messages: set[str] = set()
        for row in rows:
            type_, text_hash, body = row[1], row[4], row[5]
            if text_hash is not None:
                self._take({text_hash.hex()})
            if type_ in _WITHOUT:
                continue
            text = codec.body_text(codec.id_text(row[0]), type_, body)
            suspects.append((row, _hashes(text)))
            if type_ in RECORDS:
                messages |= _hashes(_MARK.sub("", text))
        holding = self._holding(messages - {""})
        for row, hashes in suspects:
            if "" in hashes or not hashes.isdisjoint(self.wanted) or not hashes.isdisjoint(holding):
                self._parse(row, holding)

    def _holding(self, messages: Iterable[str]) -> dict[str, set[str]]:
        """What is searched for, by the messages that name it."""
        found = {}
        for digest, data in self._read(messages).items():
            if data.startswith((b"{", b"[")):
                hashes = _hashes(data.decode(errors="replace"))
                if "" in hashes or not hashes.isdisjoint(self.wanted):
                    found[digest] = in_message(data)
        return found

    def _parse(self, row: Any, holding: Mapping[str, set[str]]) -> None:
        stored, type_, *columns = row
        fields = codec.decode_fields(codec.id_text(stored), type_, *columns)
        named = references(type_, fields)
        self._take(named.messages | named.needed | named.possible)
        for digest in named.messages & holding.keys():
            self._take(holding[digest])

    def _take(self, digests: set[str]) -> None:
        found = self.wanted & digests
        self.found |= found
        self.wanted -= found
