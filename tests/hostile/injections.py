"""The injections of AgentDojo as texts: what they ask for, and how they are dressed up.

The package is downloaded without its dependencies and read as source. Nothing of it is imported
or run.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

PACKAGE = "agentdojo==0.1.35"
WHEEL = "FOREDECK_AGENTDOJO"
"""Environment variable with the path of a wheel that is there already."""
_DOWNLOAD_S = 120.0
_GOAL = "{goal}"


class NoInjections(Exception):
    """AgentDojo cannot be had here; says why."""


@dataclass(frozen=True, slots=True)
class Injections:
    """`goals`: what an attacker wants done; `disguises`: texts around a goal, with `{goal}` in
    them."""

    goals: tuple[str, ...]
    disguises: tuple[str, ...]

    def payloads(self, goal: str) -> Iterator[str]:
        """A goal in every disguise."""
        for disguise in self.disguises:
            yield disguise.replace(_GOAL, goal).replace("{user}", "Emma").replace("{model}", "AI")


def load_injections(folder: Path) -> Injections:
    """Read them; the wheel is kept in `folder`. Raises `NoInjections`."""
    wheel = _wheel(folder)
    goals: dict[str, None] = {}
    disguises: dict[str, None] = {}
    try:
        with ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith("/injection_tasks.py"):
                    goals |= dict.fromkeys(_goals(ast.parse(archive.read(name))))
                elif "/attacks/" in name and name.endswith(".py"):
                    disguises |= dict.fromkeys(_disguises(ast.parse(archive.read(name))))
    except (OSError, BadZipFile, SyntaxError) as error:
        raise NoInjections(f"{wheel.name} cannot be read: {error}") from error
    if not goals or not disguises:
        raise NoInjections(f"{wheel.name} has its texts in other places than expected")
    return Injections(tuple(goals), tuple(disguises))


def _wheel(folder: Path) -> Path:
    if given := os.environ.get(WHEEL):
        return Path(given)
    if not (there := sorted(folder.glob("agentdojo-*.whl"))):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", PACKAGE]
        try:
            subprocess.run(
                [*command, "-d", str(folder)], check=True, capture_output=True, timeout=_DOWNLOAD_S
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NoInjections(f"pip cannot download {PACKAGE}: {error}") from error
        there = sorted(folder.glob("agentdojo-*.whl"))
    if not there:
        raise NoInjections(f"pip has left no wheel of {PACKAGE}")
    return there[0]


def _goals(module: ast.Module) -> Iterator[str]:
    for task in (node for node in module.body if isinstance(node, ast.ClassDef)):
        known: dict[str, str] = {}
        for node in task.body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            text, name = _text(node.value, known), node.targets[0].id
            if text is not None:
                known[name] = text
                if name == "GOAL":
                    yield " ".join(text.split())


def _text(node: ast.expr, known: dict[str, str]) -> str | None:
    """A text as it is written down; what only running the code would tell is left out of it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return known.get(name)
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, known) or "" for part in parts)
        case ast.FormattedValue(value=value):
            return _text(value, known)
    return None


def _disguises(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if _GOAL in node.value and not _is_docstring(node, module):
            yield node.value


def _is_docstring(node: ast.Constant, module: ast.Module) -> bool:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return any(
        isinstance(each, documented)
        and each.body
        and isinstance(each.body[0], ast.Expr)
        and each.body[0].value is node
        for each in ast.walk(module)
    )
