"""The full-text layer: what it takes in of a store's changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from foredeck.derived.layer import ReadAtOnce, brought_versions, note_absent, take_absent
from foredeck.errors import Missing
from foredeck.model.portions import portions
from foredeck.search.fetching import Fetched
from foredeck.search.schema import VERSION, create_tables
from foredeck.search.texts import SEARCHED, SearchedText, texts_of
from foredeck.search.tokens import Vocabulary
from foredeck.search.writing import SearchWriter
from foredeck.store.protocol import Change, Head, LocalStore

CHUNK = 100
"""Versions whose texts are held at once."""

_TAKEN_IN = SEARCHED | {"session", "member"}


class SearchLayer(ReadAtOnce):
    """See `derived.layer.Layer`."""

    name = "search"
    version = VERSION

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()

    def create(self, db: sqlite3.Connection) -> None:
        """See `Layer.create`."""
        create_tables(db)

    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        """See `Layer.apply`."""
        writer = SearchWriter(db, self._vocabulary)
        wanted = take_absent(db)
        wanted += [change for change in changes if change.type in _TAKEN_IN]
        for portion in portions(wanted, CHUNK):
            heads = brought_versions(store, portion)
            fetched = Fetched(store, (head for head in heads if head.type in SEARCHED))
            for head in heads:  # one after the other: numbers must not depend on the chunks
                _place(writer, head)
                writer.add(_texts(db, head, fetched))
        writer.finish()

    def take_out(
        self, db: sqlite3.Connection, store: LocalStore, documents: Collection[str]
    ) -> None:
        """See `Layer.take_out`."""
        # Not at the top: searching is done without it.
        from foredeck.search.removing import take_out

        take_out(db, store, documents, self._vocabulary)


def _texts(db: sqlite3.Connection, head: Head, fetched: Fetched) -> list[SearchedText]:
    # One version that cannot be read must not keep all others from being found.
    try:
        return texts_of(head, fetched)
    except Missing:  # erased, or still in another machine's database, which is away
        note_absent(db, head)
    except (LookupError, TypeError, ValueError):  # no message that anybody can read
        pass
    return []


def _place(writer: SearchWriter, head: Head) -> None:
    """Which folder a session works in, and which files it has met."""
    fields = head.fields
    if head.type == "session":
        writer.place(fields["session_id"], fields.get("cwd") or "")
    elif head.type == "member" and fields.get("object_type") == "file":
        writer.meet(fields["object"], fields["session"])
    elif head.type in ("observation", "reflection"):
        if fields.get("is_edited") or fields.get("text_hash") is None:
            writer.supersede(head.id, head.token)
    elif head.type == "memory":
        if fields.get("session"):
            writer.meet(head.id, fields["session"])
    elif head.type == "task":
        # It belongs to the sessions that have made, claimed or changed it, and so to their project.
        for session in (fields.get("session"), (fields.get("provenance") or {}).get("origin")):
            if session:
                writer.meet(head.id, session)


LAYER = SearchLayer()
