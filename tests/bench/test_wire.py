"""A short `foredeck bench wire`: no engine crashes, hangs or answers with nonsense."""

from __future__ import annotations

import json

import pytest

from foredeck.cli.main import main
from foredeck_bench.wire import HOSTILE_LINES


def test_a_hostile_peer_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "wire", "--messages", "400", "--seed", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["crashes"], found["hangs"], found["bad_answers"]) == (0, 0, 0)
    assert found["messages"] == 403
    assert set(HOSTILE_LINES) < set(found["kinds"])
    assert found["answers"] > 200
