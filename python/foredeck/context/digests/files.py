"""Facts of a file that was read: what it defines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DEFINES = re.compile(
    r"^\s{0,4}(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|pub\s+)?(?:async\s+)?(?:static\s+)?"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|trait|impl)\s+(?:\([^)]*\)\s*)?"
    r"([A-Za-z_]\w*)",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,3} +(.{2,60}?) *#*$", re.MULTILINE)
MAX_NAMES = 8


def file_facts(arguments: Mapping[str, Any], text: str) -> str:
    """`defines: a, b, c` for code, `headings: ...` for Markdown; empty for other texts."""
    path = str(arguments.get("path") or arguments.get("file_path") or "")
    markdown = path.lower().endswith((".md", ".markdown", ".mdx"))
    found = list(dict.fromkeys((_HEADING if markdown else _DEFINES).findall(text)))
    if not found:
        return ""
    more = f", and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"{'headings' if markdown else 'defines'}: {', '.join(found[:MAX_NAMES])}{more}"
