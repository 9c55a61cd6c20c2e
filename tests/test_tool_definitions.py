"""The model's tools explain themselves, at a price that every prompt pays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.config.sections import ToolsSection
from foredeck.model.own_tools import (
    DEFAULT_FACILITIES,
    FACILITY_TOOLS,
    Facility,
    declared_chars,
    definition_chars,
    own_definitions,
    short_definitions,
)

TOOLS = Path(__file__).parents[1] / "ts-shim" / "tools.json"
MOST_IN_A_PROXY = 155
"""With more, forty calls with small results cost over 2% more through the proxy than without it."""
MOST_TOKENS = 310
"""Of what every session declares; the task tools come on top where a project has tasks. With more,
a recorded session of seven calls costs over 2,000 tokens more than with plain Pi alone."""
CHARS_PER_TOKEN = 4
"""As the replay estimates for English and JSON."""


@pytest.fixture
def specs() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(TOOLS.read_text())
    return loaded


def chars_of(specs: Iterable[Mapping[str, Any]]) -> int:
    """Characters of definitions as Anthropic gets them."""
    told = [
        {
            "name": spec["name"],
            "description": spec["description"],
            "input_schema": spec["parameters"],
        }
        for spec in specs
    ]
    return len(json.dumps(told, separators=(",", ":")))


def test_what_a_model_reads(specs: list[dict[str, Any]], snapshot: SnapshotAssertion) -> None:
    assert "\n".join(f"{spec['name']}: {spec['description']}" for spec in specs) == snapshot


def test_a_facility_has_a_switch_and_its_tools_stand_together(specs: list[dict[str, Any]]) -> None:
    declared = [(spec["facility"], spec["name"]) for spec in specs]
    assert declared == [(f, tool) for f, tools in FACILITY_TOOLS.items() for tool in tools]
    assert FACILITY_TOOLS.keys() == ToolsSection.model_fields.keys(), (
        "a facility of tools.json has a key of this name in ToolsSection (config/sections.py)"
    )


def test_the_page_of_tasks_names_every_parameter_of_their_tools(
    specs: list[dict[str, Any]],
) -> None:
    page = (TOOLS.parents[1] / "docs" / "tasks.md").read_text()
    tools = [spec["parameters"] for spec in specs if spec["facility"] == "tasks"]
    named = {name for parameters in tools for name in parameters["properties"]} - {"action"}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []
    actions = {each for p in tools for each in p["properties"]["action"]["enum"]}
    assert [name for name in sorted(actions) if f"`{name}`" not in page] == []


def test_a_project_of_which_nothing_is_known_declares_what_is_on_by_default() -> None:
    assert ToolsSection().declared() == DEFAULT_FACILITIES, (
        "name them in DEFAULT_FACILITIES of model/own_tools.py"
    )
    shim = TOOLS.with_name("tools.ts").read_text()
    assert f"DEFAULT_FACILITIES: readonly string[] = {json.dumps(DEFAULT_FACILITIES)};" in shim, (
        "name the same in DEFAULT_FACILITIES of ts-shim/tools.ts"
    )


def test_what_every_session_declares_takes_no_more_than_310_tokens(
    specs: list[dict[str, Any]],
) -> None:
    chars = chars_of(spec for spec in specs if spec["facility"] in DEFAULT_FACILITIES)
    print(f"declared by default: {chars} characters, {chars / CHARS_PER_TOKEN:.0f} tokens")
    assert chars / CHARS_PER_TOKEN <= MOST_TOKENS, (
        "too long for every prompt: shorten them, or use a facility that is off by default"
    )


@pytest.mark.parametrize("facility", FACILITY_TOOLS)
def test_the_definitions_take_what_every_prompt_is_charged_for_them(
    specs: list[dict[str, Any]], facility: Facility
) -> None:
    """Exactly what costs and rebases reckon with."""
    chars = chars_of(spec for spec in specs if spec["facility"] == facility)
    print(f"{facility}: {chars} characters, {chars / CHARS_PER_TOKEN:.0f} tokens")
    assert chars == definition_chars(facility)
    page = (TOOLS.parents[1] / "docs" / "context.md").read_text()
    (row,) = (
        line for line in page.splitlines() if line.startswith(f"| `{FACILITY_TOOLS[facility][0]}`")
    )
    assert row.endswith(f" {chars / CHARS_PER_TOKEN:.0f} |"), (
        "the table of tools in docs/context.md"
    )


def test_a_prompt_is_charged_for_the_tools_that_its_host_declares(
    specs: list[dict[str, Any]],
) -> None:
    read = {"name": "read", "description": "Reads a file."}
    searching = [spec for spec in specs if spec["facility"] == "search"]
    assert declared_chars([read, "no definition"]) == 0
    assert declared_chars([read, *searching]) == definition_chars("search")
    assert declared_chars([read, *specs]) == definition_chars(*FACILITY_TOOLS)


def test_a_proxy_declares_what_a_model_cannot_do_without() -> None:
    short = short_definitions(*DEFAULT_FACILITIES)
    assert [tool["name"] for tool in short] == ["activate", "memory-search"]
    for tool in short:
        assert [*tool["parameters"]["properties"]] == tool["parameters"]["required"]
        # It says nothing of an argument that it does not declare.
        whole = next(t for t in own_definitions(*DEFAULT_FACILITIES) if t["name"] == tool["name"])
        left_out = whole["parameters"]["properties"].keys() - tool["parameters"]["required"]
        assert not [name for name in left_out if f"{name}=" in tool["description"]]
    assert chars_of(short) / CHARS_PER_TOKEN <= MOST_IN_A_PROXY
    assert short_definitions("tasks") == own_definitions("tasks")
    assert declared_chars(short) < definition_chars(*DEFAULT_FACILITIES) / 2
