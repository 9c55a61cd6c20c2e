"""Histories in XTDB: the same sessions as in SQLite, through the local copy in front of it too."""

from __future__ import annotations

from pathlib import Path

import pytest
from written_histories import SESSION, claude_code_session, state_of, write_lines

from foredeck.store.protocol import Store
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_xtdb.node import NodeFolder
from store.journaled import Machine, server_link
from store.xtdb_node import opener


@pytest.mark.parametrize("journaled", [False, True])
def test_both_stores_have_the_same_of_a_history(
    memory_node: NodeFolder, tmp_path: Path, journaled: bool
) -> None:
    lines = claude_code_session().lines
    copy = Machine(tmp_path / "copy.db", server_link(memory_node, "histories"))
    store: Store = copy() if journaled else opener(memory_node)()
    plain = open_sqlite(tmp_path / "plain.db")
    for part in (lines[:6], lines):
        file = write_lines(tmp_path / "a.jsonl", part)
        report = ingest_files(store, [file])
        assert report == ingest_files(plain, [file])
    assert state_of(store, SESSION) == state_of(plain, SESSION)
    assert ingest_files(store, [file]).unchanged == 1
    store.close()
    plain.close()
