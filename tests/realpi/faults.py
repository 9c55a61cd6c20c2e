"""Engines that fail as planned, and what is left of a run with one."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from foredeck.model.calls import CallRecord
from foredeck.store.store import Store
from foredeck_bench.twin.script import Step, call
from observed import NODE_IS_SLOW, calls_of
from pi_runs import PrintRun

HOSTILE = Path(__file__).with_name("hostile_engine.py")
ASSEMBLE = "context/assemble"


WORK: list[Step] = [
    call("read", path="a.txt"),
    [call("read", path="a.txt"), call("bash", command="seq 300")],
    call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
    call("bash", command="seq 400"),
    call("read", path="a.txt"),
    call("bash", command="seq 500"),
    "worked",
]
"""A session that reads, edits and runs; engines fail in the middle of it."""


def hostile(
    checkout: Path, folder: Path, *faults: tuple[str, int, str], deadline_ms: int | None = None
) -> dict[str, str]:
    """Environment with an engine that has these faults: `(method, number, what it does)`."""
    counts = folder / "counts"
    counts.mkdir()
    plan = [{"method": method, "number": n, "do": do} for method, n, do in faults]
    engine = [str(checkout / ".venv" / "bin" / "foredeck"), "engine"]
    command = [sys.executable, str(HOSTILE), json.dumps(plan), str(counts), *engine]
    deadline = {"FOREDECK_DEADLINE_MS": str(deadline_ms)} if deadline_ms else {}
    return {"FOREDECK_ENGINE": json.dumps(command), **deadline}


def complaints(run: PrintRun) -> list[str]:
    """What foredeck has told the user on stderr, but for the word that the node is slow."""
    told = [line for line in run.stderr.splitlines() if line.startswith("foredeck: ")]
    return [line for line in told if NODE_IS_SLOW not in line]


def sent_records(store: Store) -> list[CallRecord]:
    """The call records of what really went out, in order."""
    records = calls_of(store)
    unsent = {
        ack.call
        for record in records
        for ack in record.acks
        if ack.outcome in ("fallback", "aborted")
    }
    return [record for record in records if record.ordinal not in unsent]


def wait_for_count(tmp_path: Path, method: str, number: int) -> None:
    """Wait until so many calls of a method have reached an engine; the test's timeout ends it."""
    while count_of(tmp_path, method) < number:
        time.sleep(0.05)


def count_of(tmp_path: Path, method: str) -> int:
    """How many calls of a method have reached an engine."""
    path = tmp_path / "counts" / method.replace("/", "-")
    return int(path.read_text() or 0) if path.exists() else 0
