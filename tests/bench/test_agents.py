"""Three agents of `foredeck bench agents`: one history, each told once, nothing lost."""

from __future__ import annotations

import json

import pytest

from foredeck.cli.main import main
from foredeck_bench.agents import run_agents
from store.xtdb_node import installed_home


def test_three_agents_on_sqlite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "agents", "--n", "3", "--steps", "12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["agents"], found["changes"]) == (3, 6)
    assert (found["missed_notices"], found["repeated_notices"]) == (0, 0)
    assert (found["lost_updates"], found["missing"], found["doubled"]) == (0, 0, 0)
    assert found["calls"] > 3 * 12


@pytest.mark.long
@pytest.mark.usefixtures("runtime")
def test_two_agents_on_xtdb() -> None:
    found = run_agents(2, "xtdb", 6, installed_home())
    assert found["ok"], found
