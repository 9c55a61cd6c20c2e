"""The tools that foredeck gives the model, by the facility that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

PROMOTE_FINDING = "promote-finding"
Severity = Literal["critical", "high", "medium", "low", "info"]

Facility = Literal["context", "search", "tasks", "findings"]
"""What is switched on and off as one (`[tools]`)."""

FACILITY_TOOLS: Mapping[Facility, tuple[str, ...]] = {
    "context": ("activate", "deactivate", "pin", "unpin"),
    "search": ("memory-search",),
    "tasks": ("task-query", "task-mutate"),
    "findings": (PROMOTE_FINDING,),
}
"""In the order in which they are declared."""

DEFAULT_FACILITIES: tuple[Facility, ...] = ("context", "search")
"""What a project declares of which nothing else is known."""

CONTEXT_TOOLS = frozenset(FACILITY_TOOLS["context"])
"""Tools that manage the sets of a branch, run by `ContextTools`. Their results get no handle and do
not count in any window of recent results: any other tool belongs to another facility."""

OWN_TOOLS = frozenset(tool for tools in FACILITY_TOOLS.values() for tool in tools)
"""All of them. What they answer is a view of what is stored elsewhere."""
