"""SQLite and XTDB do the same, step by step, while the clock jumps back and forth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from examples import examples
from foredeck.store.protocol import Store, Token
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_xtdb.node import NodeFolder

from .both import Both
from .model import IDS, StoreComparison
from .xtdb_node import opener, plan_commits

START_MS = 1_800_000_000_000
"""Later than all that is imported, so that only the clock's own jumps count."""


@pytest.mark.parametrize("ordered", [False, True], ids=["matched", "ordered by the node"])
def test_both_stores_answer_alike(memory_node: NodeFolder, ordered: bool) -> None:
    class Differential(StoreComparison):
        now_ms = START_MS

        def clock(self) -> int:
            """One clock for both."""
            return self.now_ms

        def open_store(self, folder: Path) -> Store:
            """The same two databases for each folder."""
            if not hasattr(self, "names"):
                self.names: dict[Token, Token] = {}
            named: dict[str, Any] = {"namespace": f"m{folder.name.lower().replace('_', '-')}"}
            xtdb = opener(memory_node, clock=self.clock, **named)()
            if not ordered:
                plan_commits(xtdb)
            return Both(open_sqlite(folder / "store.db", clock=self.clock), xtdb, self.names)

        @rule(by_ms=st.sampled_from([-86_400_000, -1_000, -1, 1, 5_000, 86_400_000]))
        def move_the_clock(self, by_ms: int) -> None:
            """As a user, or a time server, does."""
            self.now_ms = max(START_MS - 10**9, self.now_ms + by_ms)

        @rule(
            type=st.sampled_from(["note", "file", "turn"]), limit=st.sampled_from([None, 0, 1, 3])
        )
        def query_all(self, type: str, limit: int | None) -> None:
            """In the same order."""
            self.store.query(type, limit=limit)

        @rule(id=st.sampled_from(IDS), token=st.sampled_from(["unknown-1", "", "-"]))
        def ask_for_nothing(self, id: str, token: str) -> None:
            """The same errors."""
            with pytest.raises(Exception, match="no transaction"):
                self.store.head(id, Token(token))

    case = Differential.TestCase
    case.settings = settings(max_examples=examples(8), stateful_step_count=15, deadline=None)
    case("runTest").debug()
