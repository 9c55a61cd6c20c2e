"""Figures: what was measured, and the goal for it."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foredeck import __version__


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `note` says why if `value` is None.

    `goal` is the most that it should be.
    """

    name: str
    text: str
    value: float | None
    unit: str
    goal: float | None = None
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool | None:
        """Whether the goal is met; None without goal or value."""
        if self.value is None or self.goal is None:
            return None
        return self.value <= self.goal

    def to_json(self) -> dict[str, Any]:
        """The figure as `foredeck bench --json` prints it, `more` among its fields."""
        fields = asdict(self)
        more = fields.pop("more")
        return {**fields, "ok": self.ok, **more}


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share lies (0.5: the median)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timing(
    name: str, text: str, seconds: Sequence[float], goal_ms: float | None = None, **more: Any
) -> Figure:
    """The median in milliseconds, with p95 and number of samples."""
    p95 = round(1000 * quantile(seconds, 0.95), 2)
    median = round(1000 * quantile(seconds, 0.5), 2)
    return Figure(
        name, text, median, "ms", goal_ms, more={"p95": p95, "samples": len(seconds), **more}
    )


def machine() -> dict[str, Any]:
    """What was measured on, and how busy it was."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "foredeck": __version__,
        "implementation": sys.implementation.name,
        "load": load if load is None else round(load, 1),
    }


def resident_mb(pid: int) -> float | None:
    return _status_mb(pid, "VmRSS:")


def peak_mb_of(pid: int) -> float | None:
    return _status_mb(pid, "VmHWM:")


def used_seconds(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_mb(pid: int, name: str) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)
