"""One thing that was checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: "ok", "note" or "problem", with advice if something is to be done."""

    name: str
    status: Status
    text: str
    advice: str = ""


def ok(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, "ok", text)


def note(name: str, text: str, advice: str = "") -> Finding:
    """Works, but worth knowing."""
    return Finding(name, "note", text, advice)


def problem(name: str, text: str, advice: str) -> Finding:
    """Something to put right, and how."""
    return Finding(name, "problem", text, advice)
