"""Facts of a search or listing: how much was found, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from foredeck.commands import ToolOutput, counted

_HIT = re.compile(r"\n(?!\d+:)([^:\n]+):\d+:")
_LONG = re.compile(r"^[-dlbcps][-rwxsStT]{9}\S*(?: +\S+){7} ")
"""What `ls -l` says before a name."""

_LINE = re.compile(r"^(\d+):", re.MULTILINE)
MAX_FILES = 4
MAX_LINES = 12


def search_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`12 hits in 3 files: a.ts 8, b.ts 3, c.ts 1`; of one file, `3 hits at 12 40 96`."""
    del arguments
    files = Counter(name.removeprefix("./") for name in _HIT.findall(f"\n{output.body}"))
    if files:
        return [f"{counted(files.total(), 'hit')} in {_most(files, 'file')}"]
    lines = _LINE.findall(output.body)
    if not lines:
        return []
    more = " ..." if len(lines) > MAX_LINES else ""
    return [f"{counted(len(lines), 'hit')} at {' '.join(lines[:MAX_LINES])}{more}"]


def listing_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`40 paths in 6 folders: src 20, test 9, ...`; of entries of one folder nothing."""
    del arguments
    lines = (_LONG.sub("", line) for line in output.body.split("\n") if not line.endswith(":"))
    paths = [line.partition(" -> ")[0].removeprefix("./").rstrip("/") for line in lines]
    folders = Counter(path.rpartition("/")[0] for path in paths if "/" in path)
    if not folders:
        return []
    return [f"{counted(folders.total(), 'path')} in {_most(folders, 'folder')}"]


def _most(found: Counter[str], noun: str) -> str:
    """`3 files: a.ts 8, b.ts 3, c.ts 1`."""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} {count}" for name, count in ranked[:MAX_FILES])
    return f"{counted(len(found), noun)}: {listed}{', ...' if len(ranked) > MAX_FILES else ''}"
