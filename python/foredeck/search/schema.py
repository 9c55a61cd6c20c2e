"""The tables of the full-text layer.

`entry` has one row per text; `content` is the FTS5 index over it, which holds no text itself:
passages are read from the store. Names that many rows share (sessions, paths, roles) are kept once,
in `name`. `identifier` holds distinct identifiers and paths, each in a trigram index, so that a
piece of one finds it; `uses` counts in how many places of entries it was found. `absent` names
versions whose texts were in another machine's database when they were taken in; they are tried
again. In `entry`, `newest` is -1 for what its user has taken out.
"""

from __future__ import annotations

import sqlite3

from foredeck.derived.layer import ABSENT_TABLE

VERSION = 9

_STATEMENTS = (
    "CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    """CREATE TABLE entry (
        id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, document TEXT NOT NULL,
        token TEXT NOT NULL, part TEXT NOT NULL, type INTEGER NOT NULL, role INTEGER NOT NULL,
        status INTEGER, session INTEGER, path INTEGER, message TEXT, turn INTEGER,
        time_ms INTEGER NOT NULL, newest INTEGER NOT NULL, task INTEGER)""",
    "CREATE INDEX entry_session ON entry (session, id)",
    "CREATE INDEX entry_task ON entry (task) WHERE task IS NOT NULL",
    "CREATE INDEX entry_file ON entry (document) WHERE session IS NULL",
    """CREATE VIRTUAL TABLE content USING fts5(
        said, output, parts, path, content = '', tokenize = 'porter unicode61')""",
    """CREATE TABLE identifier (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL)""",
    """CREATE VIRTUAL TABLE identifier_part USING fts5(
        name, content = 'identifier', content_rowid = 'id', tokenize = 'trigram', detail = 'none')
    """,
    "CREATE TABLE folder (session INTEGER PRIMARY KEY, cwd TEXT NOT NULL)",
    """CREATE TABLE met (document TEXT NOT NULL, session INTEGER NOT NULL,
        PRIMARY KEY (document, session)) WITHOUT ROWID""",
    ABSENT_TABLE,
    # Larger pieces are written at once, so that fewer have to be merged later.
    "INSERT INTO content (content, rank) VALUES ('hashsize', 16777216)",
)


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables, in the open transaction."""
    for statement in _STATEMENTS:
        db.execute(statement)
