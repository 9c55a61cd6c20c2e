"""A small `foredeck bench growth`: all is counted, and forgetting harms no other session."""

from __future__ import annotations

import json

import pytest

from foredeck.cli.main import main


def test_many_sessions_in_one_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "growth", "--sessions", "10", "--calls", "6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["sessions"] for point in found["checkpoints"]] == list(range(1, 11))
    assert (found["calls"], found["forgotten"]) == (60, 5)
    assert (found["changed"], found["left"]) == (0, 0)
    assert found["bytes_after"] < found["bytes_before"]
    # Sizes are the same on every machine: a late session is stored in no more than an early one.
    assert found["drift"]["bytes_per_session"] < 1.3
