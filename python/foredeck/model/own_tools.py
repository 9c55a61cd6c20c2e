"""The tools that foredeck gives the model, by the facility that they belong to.

`ts-shim/tools.json` defines them, for the host's extension and for the engine alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from foredeck.errors import ForedeckError

PROMOTE_FINDING = "promote-finding"
Severity = Literal["critical", "high", "medium", "low", "info"]

Facility = str
"""What is switched on and off as one: a key of `[tools]`."""


def _definitions() -> tuple[dict[str, Any], ...]:
    package, file = Path(__file__).parents[1], "tools.json"
    # The first is in an installed package, the second in a checkout.
    for path in (package / "model" / file, package.parents[1] / "ts-shim" / file):
        if path.is_file():
            return tuple(json.loads(path.read_bytes()))
    raise ForedeckError(f"{file} is missing from this installation: install foredeck again.")


DEFINITIONS = _definitions()
"""Each has its `facility`, and the `name`, `description` and `parameters` that a provider gets. In
the order in which they are declared."""

FACILITY_TOOLS: Mapping[Facility, tuple[str, ...]] = {
    facility: tuple(tool["name"] for tool in DEFINITIONS if tool["facility"] == facility)
    for facility in dict.fromkeys(tool["facility"] for tool in DEFINITIONS)
}
"""The names of each facility's tools, in the order in which they are declared."""

DEFAULT_FACILITIES: tuple[Facility, ...] = ("context", "search")
"""What a project declares of which nothing else is known."""

CONTEXT_TOOLS = frozenset(FACILITY_TOOLS["context"])
"""Tools that manage the sets of a branch, run by `ContextTools`. Their results get no handle and do
not count in any window of recent results: any other tool belongs to another facility."""

OWN_TOOLS = frozenset(tool["name"] for tool in DEFINITIONS)
"""All of them. What they answer is a view of what is stored elsewhere."""


def own_definitions(*facilities: Facility) -> list[dict[str, Any]]:
    """The tools of these facilities as a host declares them."""
    return [
        {name: tool[name] for name in ("name", "description", "parameters")}
        for tool in DEFINITIONS
        if tool["facility"] in facilities
    ]


@cache
def definition_chars(*facilities: Facility) -> int:
    """What the tools of these facilities add to every prompt, in characters as Anthropic gets
    them."""
    return sum(map(_chars_of, facilities))


def _chars_of(facility: Facility) -> int:
    declared = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["parameters"],
        }
        for tool in own_definitions(facility)
    ]
    return len(json.dumps(declared, separators=(",", ":")))
