"""Facts of a file that was read: what it defines, what it has for parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from foredeck.commands import ToolOutput

_DEFINES = re.compile(
    # A line break to begin with is found faster than the beginning of a line.
    r"\n[ \t]{0,4}(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|pub\s+)?"
    r"(?:async\s+)?(?:static\s+)?"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|trait|impl)\s+(?:\([^)]*\)\s*)?"
    r"([A-Za-z_]\w*)"
)
_HEADING = re.compile(r"^#{1,3} +(.{2,60}?) *#*$", re.MULTILINE)
_MARKDOWN = re.compile(r"\.(?:md|markdown|mdx)\b", re.IGNORECASE)
MAX_NAMES = 8


def file_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`defines: a, b, c` of code, `headings: ...` of Markdown, the keys of JSON."""
    path = str(arguments.get("path") or arguments.get("file_path") or "")
    return text_facts(path, output.body)


def text_facts(path: str, text: str) -> list[str]:
    """The facts of a text, given words that its path is among."""
    if _MARKDOWN.search(path):
        return _named("headings", _HEADING.findall(text))
    return json_facts(text) or _named("defines", _DEFINES.findall(f"\n{text}"))


def json_facts(text: str) -> list[str]:
    """`JSON keys: ...` of an object, `JSON array of 35: ...` and `35 JSON lines: ...` with the keys
    of the first entry."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except ValueError:
        return _json_lines(text.strip().split("\n"))
    if isinstance(value, dict):
        return _named("JSON keys", value)
    if not isinstance(value, list) or not value:
        return []
    first = value[0] if isinstance(value[0], dict) else {}
    label = f"JSON array of {len(value)}"
    return _named(label, first) or [label]


def _json_lines(lines: list[str]) -> list[str]:
    try:
        first = json.loads(lines[0])
    except ValueError:
        return []
    if len(lines) < 2 or not isinstance(first, dict) or not lines[1].startswith("{"):
        return []
    return _named(f"{len(lines)} JSON lines", first)


def _named(what: str, names: Iterable[str]) -> list[str]:
    """`what: a, b, c, and 4 more`; nothing where there are none."""
    found = list(dict.fromkeys(map(str, names)))
    if not found:
        return []
    more = f", and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return [f"{what}: {', '.join(found[:MAX_NAMES])}{more}"]
