"""Tools and sections that stand beside the chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foredeck.config import Config
from foredeck.config.sections import ToolsSection
from foredeck.engine import facilities
from foredeck.engine.engine import Engine
from foredeck.engine.opened import Facilities, FacilityInputs
from foredeck.errors import ToolError
from foredeck.hosts.protocol import ToolCallParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.own_tools import CONTEXT_TOOLS, FACILITY_TOOLS, OWN_TOOLS


class Echo:
    """A tool that says what it was asked."""

    name = "echo"

    def run(self, input: Mapping[str, Any], call: str) -> str:
        if "text" not in input:
            raise ToolError('echo needs "text".')
        return f"{call}: {input['text']}"


def echo_only(_opening: FacilityInputs) -> Facilities:
    return Facilities(tools={"echo": Echo()})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with closing(Engine(Config(home=tmp_path / "home"), facilities=echo_only)) as made:
        made.open_session(SimulatedHost("s").opening(str(tmp_path)))
        yield made


def call(tool: str, input: dict[str, Any]) -> ToolCallParams:
    return ToolCallParams(session="s", id="c1", tool=tool, input=input)


def test_a_facility_that_cannot_be_made_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_parts: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(facilities, "memory_search", broken)
    with closing(Engine(Config(home=tmp_path / "home"))) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        assert engine.opened is not None
        made = engine.opened.facilities
        assert "memory-search" not in made.tools
        assert "task-query" in made.tools
    assert "broken failed" in caplog.text


def test_a_session_with_everything_on_has_each_tool_that_is_defined(tmp_path: Path) -> None:
    everything = ToolsSection.model_validate(dict.fromkeys(FACILITY_TOOLS, "on"))
    config = Config(home=tmp_path / "home", tools=everything)
    with closing(Engine(config)) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        assert engine.opened is not None
        assert engine.opened.facilities.tools.keys() == OWN_TOOLS - CONTEXT_TOOLS, (
            "each tool of ts-shim/tools.json is made in engine/facilities.py, and no other"
        )
