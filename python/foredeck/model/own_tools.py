"""Foredeck's tools for the model, by facility.

Defined in `ts-shim/tools.json` for shim and engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from foredeck.errors import ForedeckError

PROMOTE_FINDING = "promote-finding"
Severity = Literal["critical", "high", "medium", "low", "info"]

Facility = str
"""What is switched as one: a key of `[tools]`."""


def _definitions() -> tuple[dict[str, Any], ...]:
    package, file = Path(__file__).parents[1], "tools.json"
    # The first is in an installed package, the second in a checkout.
    for path in (package / "model" / file, package.parents[1] / "ts-shim" / file):
        if path.is_file():
            return tuple(json.loads(path.read_bytes()))
    raise ForedeckError(f"{file} is missing from this installation: install foredeck again.")


DEFINITIONS = _definitions()

FACILITY_TOOLS: Mapping[Facility, tuple[str, ...]] = {
    facility: tuple(tool["name"] for tool in DEFINITIONS if tool["facility"] == facility)
    for facility in dict.fromkeys(tool["facility"] for tool in DEFINITIONS)
}
"""Tool names by facility, in declared order."""

DEFAULT_FACILITIES: tuple[Facility, ...] = ("context", "search")
"""Declared by an unknown project."""

CONTEXT_TOOLS = frozenset(FACILITY_TOOLS["context"])

OWN_TOOLS = frozenset(tool["name"] for tool in DEFINITIONS)
"""All of them; their answers show what is stored elsewhere."""


def own_definitions(*facilities: Facility) -> list[dict[str, Any]]:
    return [
        {name: tool[name] for name in ("name", "description", "parameters")}
        for tool in DEFINITIONS
        if tool["facility"] in facilities
    ]


_SHORTENED = {"activate": " show=", "memory-search": None}
"""Where descriptions of optional arguments begin."""


def short_definitions(*facilities: Facility) -> list[dict[str, Any]]:
    """Definitions for hosts where each call costs a whole prompt: indispensable tools and words."""
    return [
        _short(tool) if tool["name"] in _SHORTENED else tool
        for tool in own_definitions(*facilities)
        if tool["name"] not in CONTEXT_TOOLS - _SHORTENED.keys()
    ]


def _short(tool: Mapping[str, Any]) -> dict[str, Any]:
    optional, parameters = _SHORTENED[tool["name"]], tool["parameters"]
    needed = {name: parameters["properties"][name] for name in parameters["required"]}
    return {
        "name": tool["name"],
        "description": tool["description"].partition(optional)[0]
        if optional
        else tool["description"],
        "parameters": {**parameters, "properties": needed},
    }


@cache
def definition_chars(*facilities: Facility) -> int:
    """Characters that these tools add to every prompt, as Anthropic receives them."""
    return declared_chars(own_definitions(*facilities))


def declared_chars(tools: Iterable[Any]) -> int:
    """Characters of foredeck's tools among these definitions."""
    declared = {str(tool.get("name")): tool for tool in tools if isinstance(tool, Mapping)}
    lists = ([declared[n] for n in own if n in declared] for own in FACILITY_TOOLS.values())
    return sum(map(_chars_of, filter(None, lists)))


def _chars_of(tools: Sequence[Mapping[str, Any]]) -> int:
    declared = [
        {
            "name": tool["name"],
            "description": tool.get("description"),
            "input_schema": tool.get("parameters"),
        }
        for tool in tools
    ]
    return len(json.dumps(declared, separators=(",", ":")))
