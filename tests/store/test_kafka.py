"""Two nodes over one Kafka broker, where FOREDECK_TEST_KAFKA names one (host:port)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from foredeck.errors import Conflict
from foredeck_xtdb.database.adapter import Database, open_xtdb
from foredeck_xtdb.node import private_node
from foredeck_xtdb.runtime import Runtime

from .documents import batch, note

BROKER = os.environ.get("FOREDECK_TEST_KAFKA")

pytestmark = pytest.mark.skipif(
    BROKER is None, reason="needs a Kafka broker: FOREDECK_TEST_KAFKA=host:port"
)

Openers = tuple[partial[Database], partial[Database]]


@pytest.fixture
def openers(runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Openers]:
    """What opens one new namespace on each of two machines."""
    monkeypatch.setenv("FOREDECK_XTDB_KAFKA", BROKER or "")
    options = {"namespace": f"t{secrets.token_hex(8)}", "timeout_ms": 60_000}
    with (
        private_node(tmp_path / "one", runtime, "kafka") as one,
        private_node(tmp_path / "two", runtime, "kafka") as two,
    ):
        first, second = (
            partial(open_xtdb, node.running().url, token=node.token(), **options)
            for node in (one, two)
        )
        yield first, second


def test_both_machines_tell_the_same_history(openers: Openers) -> None:
    one, two = (make() for make in openers)
    with closing(one), closing(two):
        tokens = [(one, two)[n % 2].commit(batch(note("a", f"{n} " * 400))) for n in range(8)]
        for store in (one, two):
            with pytest.raises(Conflict):
                store.commit(batch(note("a", "lost"), expect={"a": tokens[0]}))
            store.client.catch_up()
            assert [head.token for head in store.history("a")] == tokens
            ((_, document),) = store.versions({"a": [tokens[3]]})
            assert document.content == "3 " * 400
        assert list(one.changes_since(None)) == list(two.changes_since(None))
