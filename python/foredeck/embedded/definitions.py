"""The definitions of foredeck's tools, which every host declares alike."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import foredeck
from foredeck.errors import ForedeckError
from foredeck.model.own_tools import Facility

_FILE = "tools.json"


def definitions(facilities: Collection[Facility]) -> list[dict[str, Any]]:
    """Name, description and parameters of the tools of these facilities, in their order."""
    names = ("name", "description", "parameters")
    return [{n: tool[n] for n in names} for tool in _all() if tool["facility"] in facilities]


@cache
def _all() -> list[dict[str, Any]]:
    package = Path(foredeck.__file__).parent
    for file in (package / "embedded" / _FILE, package.parents[1] / "ts-shim" / _FILE):
        if file.is_file():
            found: list[dict[str, Any]] = json.loads(file.read_text())
            return found
    raise ForedeckError(f"{_FILE} is missing from this installation: install foredeck again.")
