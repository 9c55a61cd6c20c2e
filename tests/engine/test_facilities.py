"""Tools and sections that stand beside the chat."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.config.sections import ToolsSection
from foredeck.engine import facilities
from foredeck.engine.engine import Engine
from foredeck.engine.hooks import FacilityTool
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.own_tools import CONTEXT_TOOLS, FACILITY_TOOLS, OWN_TOOLS


def test_a_facility_that_cannot_be_made_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_parts: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(facilities, "memory_search", broken)
    with closing(Engine(Config(home=tmp_path / "home"))) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        made = {tool.name for tool in engine.opened.facilities.on(FacilityTool)}
        assert "memory-search" not in made
        assert "task-query" in made
    assert "broken failed" in caplog.text


def test_a_session_with_everything_on_has_each_tool_that_is_defined(tmp_path: Path) -> None:
    everything = ToolsSection.model_validate(dict.fromkeys(FACILITY_TOOLS, "on"))
    config = Config(home=tmp_path / "home", tools=everything)
    with closing(Engine(config)) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        made = engine.opened.facilities.on(FacilityTool)
        assert {tool.name for tool in made} == OWN_TOOLS - CONTEXT_TOOLS, (
            "each tool of ts-shim/tools.json is made in engine/facilities.py, and no other"
        )
