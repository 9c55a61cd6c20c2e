"""Letting content go: when an object becomes inactive, and who may say so."""

from __future__ import annotations

import ast
from pathlib import Path

import foredeck


def test_nobody_else_expires_an_object_or_stops_wanting_a_message() -> None:
    callers = {
        path.name
        for path in Path(foredeck.__file__).parent.joinpath("context").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("expire", "unwant")
    }
    assert callers == {"chat.py"}
