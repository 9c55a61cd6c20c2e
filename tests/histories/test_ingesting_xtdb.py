"""Histories in XTDB: the same sessions as in SQLite."""

from __future__ import annotations

from pathlib import Path

from written_histories import SESSION, claude_code_session, state_of, write_lines

from foredeck.store.store import open_sqlite
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_xtdb.node import NodeFolder
from store.journaled import Machine, server_link


def test_both_stores_have_the_same_of_a_history(memory_node: NodeFolder, tmp_path: Path) -> None:
    lines = claude_code_session().lines
    store = Machine(tmp_path / "copy.db", server_link(memory_node, "histories"))()
    plain = open_sqlite(tmp_path / "plain.db")
    for part in (lines[:6], lines):
        file = write_lines(tmp_path / "a.jsonl", part)
        assert ingest_files(store, [file]) == ingest_files(plain, [file])
    assert state_of(store, SESSION) == state_of(plain, SESSION)
    assert ingest_files(store, [file]).unchanged == 1
    store.close()
    plain.close()
