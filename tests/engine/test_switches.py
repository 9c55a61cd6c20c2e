"""Which tools a project's next session declares."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.config.sections import ToolsSection
from foredeck.context.state.facilities import Facilities
from foredeck.engine.engine import Engine
from foredeck.engine.switches import Switches
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import Provenance
from foredeck.working import open_page


@dataclass
class Useful:
    """A facility with a use from the first on, or once that is noted."""

    facility: str
    is_useful: bool = False

    def has_use(self, notes: Mapping[str, bool]) -> bool:
        return self.is_useful or notes.get(f"has {self.facility}", False)


def switches(home: Path, tools: ToolsSection, *, holds_tasks: bool = False) -> Switches:
    made = Facilities([Useful("tasks", holds_tasks), Useful("findings")])
    return Switches(home, str(home), tools, made)


def left(home: Path) -> list[str]:
    """What the shim would read."""
    (file,) = (home / "switches").glob("*.json")
    facilities: list[str] = json.loads(file.read_text())["facilities"]
    return facilities


@pytest.mark.parametrize(
    ("configured", "holds_tasks", "declared"),
    [
        ({}, False, ["context", "search"]),
        ({}, True, ["context", "search", "tasks"]),
        ({"search": False}, False, ["context"]),
        ({"context": False, "search": False}, False, []),
        ({"tasks": "on"}, False, ["context", "search", "tasks"]),
        ({"tasks": "off"}, True, ["context", "search"]),
        ({"findings": "on"}, False, ["context", "search", "findings"]),
    ],
)
def test_the_configuration_and_the_project_decide(
    tmp_path: Path, configured: dict[str, object], holds_tasks: bool, declared: list[str]
) -> None:
    switches(tmp_path, ToolsSection.model_validate(configured), holds_tasks=holds_tasks).refresh()
    assert left(tmp_path) == declared


def test_what_the_user_has_said_in_the_project_goes_before_and_stays(tmp_path: Path) -> None:
    switches(tmp_path, ToolsSection()).choose("tasks", wanted=True)
    switches(tmp_path, ToolsSection()).refresh()
    assert "tasks" in left(tmp_path)
    switches(tmp_path, ToolsSection(tasks="off")).refresh()
    assert "tasks" not in left(tmp_path)
    switches(tmp_path, ToolsSection()).choose("tasks", wanted=False)
    again = switches(tmp_path, ToolsSection(), holds_tasks=True)
    again.refresh()
    assert "tasks" not in left(tmp_path)


def test_a_torn_file_is_written_again_and_an_unchanged_one_left_alone(tmp_path: Path) -> None:
    own = switches(tmp_path, ToolsSection())
    own.refresh()
    (file,) = (tmp_path / "switches").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.stat().st_ino
    own.refresh()
    assert file.stat().st_ino == before
    file.write_text('{"facilities": ["con')
    own.refresh()
    assert left(tmp_path) == ["context", "search"]


def test_a_folder_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "switches").write_text("in the way")
    switches(tmp_path, ToolsSection()).refresh()
    with pytest.raises(OSError, match="switches"):
        switches(tmp_path, ToolsSection()).choose("tasks", wanted=True)


def test_a_page_of_working_memory_brings_the_tools_that_write_it(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home")
    with closing(Engine(config)) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        assert engine.opened is not None
        opened = engine.opened
        opened.switches.refresh()
        assert "tasks" not in left(config.home)
        project = opened.session_folder.project
        by = Provenance(origin="ann", generator="human")
        page = open_page(config, opened.session.objects.store, "resource", project.id, by)
        page.put("Current Work", "The queue")
        opened.switches.refresh()
        assert left(config.home) == ["context", "search", "tasks"]


def test_findings_are_declared_once_the_project_has_data(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home")
    with closing(Engine(config)) as engine:
        engine.open_session(SimulatedHost("s").opening(str(tmp_path)))
        opened = engine.opened
        assert opened is not None
        assert opened.switches is not None
        opened.read_result("bash", "t1", None)
        opened.switches.refresh()
        assert "findings" not in left(config.home)
        opened.read_result(config.memory.data_tools[0], "t2", None)
        assert left(config.home) == ["context", "search", "findings"]


def test_what_is_noted_of_the_project_stays(tmp_path: Path) -> None:
    switches(tmp_path, ToolsSection()).refresh()
    assert "findings" not in left(tmp_path)
    switches(tmp_path, ToolsSection()).note("has findings")
    assert "findings" in left(tmp_path)
    switches(tmp_path, ToolsSection()).choose("tasks", wanted=True)
    assert left(tmp_path) == ["context", "search", "tasks", "findings"]
    switches(tmp_path, ToolsSection(findings="off")).refresh()
    assert "findings" not in left(tmp_path)
    switches(tmp_path, ToolsSection()).choose("findings", wanted=False)
    assert left(tmp_path) == ["context", "search", "tasks"]


def test_a_folder_of_the_project_is_left_what_the_project_declares(tmp_path: Path) -> None:
    root, deep = tmp_path / "root", tmp_path / "root" / "deep"
    deep.mkdir(parents=True)
    below = Switches(tmp_path, str(root), ToolsSection(), Facilities(), str(deep))
    below.choose("tasks", wanted=True)
    files = [json.loads(file.read_text()) for file in (tmp_path / "switches").iterdir()]
    declared = ["context", "search", "tasks"]
    assert sorted(files, key=len) == [
        {"facilities": declared},
        {"facilities": declared, "tasks": True},
    ]
