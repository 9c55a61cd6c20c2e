"""Every setting with its origin, and what `foredeck doctor` finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any

from foredeck.cli.doctor_command import check_programs, check_state, check_stored
from foredeck.config import Resolved
from foredeck_inspector.pages import WebPage
from foredeck_inspector.tables import Column, Row, Table

_SETTINGS = (
    Column("key", "Setting", "code"),
    Column("value", "Value", "code"),
    Column("origin", "Set by"),
)
_CHECKS = (
    Column("status", "State"),
    Column("name", "What"),
    Column("text", "Is the case", under="advice"),
)


def settings_page(resolved: Resolved, asked: Mapping[str, str]) -> WebPage:
    """Settings in force, and the state of machine and store."""
    plain = resolved.config.model_dump(mode="json")
    rows: list[Row] = [
        {
            "key": key,
            "value": _shown(reduce(getitem, key.split("."), plain)),
            "origin": str(origin),
        }
        for key, origin in resolved.origins.items()
    ]
    findings = [*check_state(resolved.config), *check_programs()]
    findings += check_stored(resolved.config, forget_refusals=False)
    checks = [
        {"name": f.name, "status": f.status, "text": f.text, "advice": f.advice} for f in findings
    ]
    data: dict[str, Any] = {
        "settings": Table("settings", "Settings", _SETTINGS, rows).arranged(asked),
        "checks": Table("checks", "Health", _CHECKS, checks).arranged(asked),
        "to_do": sum(finding.status != "ok" for finding in findings),
        "left_out": list(resolved.left_out),
    }
    return WebPage("settings.html", "Settings and health", data, "settings")


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else json.dumps(value)
