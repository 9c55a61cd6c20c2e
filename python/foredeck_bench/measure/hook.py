"""The context hook inside Pi: run by the shim's own benchmark, in Node, from a checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foredeck_bench.figures import Figure

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "ts-shim" / "bench" / "roundtrip.ts"
MODULES = ROOT / "node_modules"
SECONDS = 120


def hook_figures(sizes: Sequence[tuple[str, float]]) -> Iterator[Figure]:
    """A figure for each size (name, goal in ms); without a value where Pi is not here."""
    rows, why = _rows()
    for size, goal in sizes:
        name = f"hook_{size.replace(' ', '').lower()}"
        text = f"context hook in Pi without the engine, {size} session"
        row = rows.get(size)
        if row is None:
            yield Figure(name, text, None, "ms", goal, why or "not measured")
            continue
        hook = row["hook_ms"]
        more = {
            "p95": round(hook["p95"], 2),
            "first": round(hook["first"], 1),
            "pi_copies_ms": round(row["copy_ms"], 1),
        }
        yield Figure(name, text, round(hook["median"], 2), "ms", goal, more=more)


def _rows() -> tuple[dict[str, Any], str]:
    """What the script prints, by size; or why there is nothing."""
    node = _node()
    if not SCRIPT.is_file():
        return {}, "needs a checkout of foredeck, which has the script"
    if node is None or not (MODULES / "@earendil-works" / "pi-coding-agent").is_dir():
        return {}, "needs Pi and its Node in the checkout: run scripts/setup"
    try:
        done = subprocess.run(
            [node, str(SCRIPT), "--json"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=ROOT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, f"the script did not run: {error}"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason told"]
        return {}, f"the script failed: {lines[-1]}"
    return {row["size"]: row for row in json.loads(done.stdout)}, ""


def _node() -> str | None:
    """The Node that Pi needs: the one that was asked for, the checkout's, or any."""
    own = MODULES / ".bin" / "node"
    return os.environ.get("FOREDECK_NODE") or (str(own) if own.exists() else shutil.which("node"))
