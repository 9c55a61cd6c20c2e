"""Every command that reads, with a command line for the stored fixture."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

from foredeck.cli.main import main

SESSION = "small-window"
FILE = "/repo/small-window/0.ts"

READING = {
    "sessions": "sessions --size",
    "objects": f"objects --type file --session {SESSION}",
    "show": f"show {SESSION} --call 7",
    "carry": f"carry {SESSION} --to codex --dry-run",
    "cost": f"cost {SESSION}",
    "blame": f"blame {FILE}",
    "trace": f"trace turn {SESSION}",
    "history": f"history {FILE} 1 2",
    "cat": f"cat {SESSION}:@4",
    "search": "search turn",
    "tasks": "tasks list --project /tmp/project",
    "notes": "notes --all",
    "memory": "memory list",
    "working": "working",
    "observations": f"observations {SESSION}",
    "graph": f"graph {FILE}",
    "content": f"graph --content {FILE}",
    "export": f"export {SESSION} {{out}}/session.jsonl",
    "import": "import {out}/session.jsonl --home {out}/other",
    "backup": "backup {out}/backup.db --verify",
    "restore": "restore {out}/backup.db --home {out}/restored",
    "purge": "purge --text not-in-here --dry-run",
    "forget": f"forget {SESSION} --dry-run",
    "texts": "forget --texts --dry-run",
    "vacuum": "doctor --vacuum",
    "migrate": "migrate sqlite sqlite:{out}/copy.db",
    "name": f"name {FILE} spoken-of",
}
"""Command lines by command, in an order in which each finds what it needs; `{out}` is a folder."""

OTHERS = frozenset(
    {"doctor", "config", "index", "ingest", "replay", "engine", "ui", "mcp", "eval", "proxy"}
)
"""Commands that look at the machine, take in something new, or serve others."""


def run_all(home: Path, out: Path) -> Iterator[tuple[str, int, str]]:
    """Command, exit code and what was printed, for each of READING."""
    os.environ["FOREDECK_HOME"] = str(home)
    for name, line in READING.items():
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(line.format(out=out).split())
        printed.seek(0)
        yield name, code, printed.read()
