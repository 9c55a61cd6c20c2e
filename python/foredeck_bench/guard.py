"""Two agents on one file: each adds a line again and again, from what it last read of it.

Nothing but the stale-edit guard stands between them, so a line that is missing at the end was
written over by who had not seen it.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck_bench.arguments import print_figures
from foredeck_bench.engine_process import EngineProcess

Advance = Callable[[str], None]
MAX_TRIES = 200
"""A write that is refused so often in a row counts as never getting through."""


@dataclass(slots=True)
class _Tally:
    written: list[str] = field(default_factory=list)
    refused: int = 0
    stuck: int = 0
    waits_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class _Writer:
    """One agent with its engine. Its tools run here."""

    def __init__(self, home: Path, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._calls = 0
        self.engine = EngineProcess(home, path.parent)
        self.tally = _Tally()

    def start(self) -> None:
        """Open the session."""
        self.engine.initialize()
        self.engine.open(self._name)

    def add_lines(self, rounds: int, advance: Advance) -> None:
        """Add so many lines; what goes wrong is kept for the report."""
        try:
            for number in range(rounds):
                self._add(f"{self._name} {number}\n")
                advance(f"{self._name} {number + 1}")
        except Exception as error:  # a thread's errors are lost otherwise
            self.tally.errors.append(repr(error))

    def _add(self, line: str) -> None:
        for _ in range(MAX_TRIES):
            text = self._path.read_text()
            self._report("read", {"path": str(self._path)}, text)
            if self._write(text + line):
                self.tally.written.append(line)
                return
            self.tally.refused += 1
        self.tally.stuck += 1

    def _write(self, text: str) -> bool:
        arguments = {"path": str(self._path), "content": text}
        call = f"{self._name}-{self._calls + 1}"
        asked = {"session": self._name, "id": call, "tool": "write", "input": arguments}
        began = time.perf_counter()
        verdict = self.engine.ask("tool/prepare", asked)
        self.tally.waits_ms.append((time.perf_counter() - began) * 1000)
        if "block" in verdict:
            self._calls += 1
            return False
        self._path.write_text(text)
        self._report("write", arguments, "done")
        return True

    def _report(self, tool: str, arguments: dict[str, Any], text: str) -> None:
        self._calls += 1
        content = [{"type": "text", "text": text}]
        id = f"{self._name}-{self._calls}"
        call = {"id": id, "tool": tool, "input": arguments, "content": content}
        self.engine.tool_observed(self._name, [call])


def run_guard(
    rounds: int = 1000, files: int = 200, advance: Advance = lambda _note: None
) -> dict[str, Any]:
    """Let two agents write `rounds` lines together, then time the check of one agent that has met
    `files` files. Returns what `foredeck bench guard --json` prints."""
    with tempfile.TemporaryDirectory(prefix="foredeck-guard-") as name:
        root = Path(name)
        found = _contest(root, rounds, advance)
        quiet = _quiet(root, files, advance)
    ok = not (found["lost"] or found["stuck"] or found["errors"]) and quiet["write_ms"] <= 5
    return {**found, **quiet, "ok": ok}


def _contest(root: Path, rounds: int, advance: Advance) -> dict[str, Any]:
    path = root / "work" / "shared.txt"
    path.parent.mkdir()
    path.write_text("")
    writers = [_Writer(root / "home", path, name) for name in ("one", "two")]
    with writers[0].engine, writers[1].engine:
        for writer in writers:
            writer.start()
        shares = (rounds - rounds // 2, rounds // 2)
        threads = [
            threading.Thread(target=writer.add_lines, args=(share, advance))
            for writer, share in zip(writers, shares, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    left = set(path.read_text().splitlines(keepends=True))
    tallies = [writer.tally for writer in writers]
    waits = [wait for tally in tallies for wait in tally.waits_ms]
    return {
        "written": sum(len(tally.written) for tally in tallies),
        "lost": sum(line not in left for tally in tallies for line in tally.written),
        "refused": sum(tally.refused for tally in tallies),
        "stuck": sum(tally.stuck for tally in tallies),
        "contended_ms": round(statistics.median(waits), 2),
        "errors": [error for tally in tallies for error in tally.errors],
    }


def _quiet(root: Path, files: int, advance: Advance) -> dict[str, Any]:
    """Medians for one agent alone: before a write of each of its files, and before a command."""
    folder = root / "alone"
    folder.mkdir()
    with EngineProcess(root / "home", folder) as engine:
        engine.initialize()
        engine.open("alone")
        writes, commands = [], []
        for number in range(files):
            path, text = str(folder / f"{number}.txt"), f"{number}: text\n" * 200
            Path(path).write_text(text)
            shown = {"tool": "read", "input": {"path": path}}
            content = [{"type": "text", "text": text}]
            engine.tool_observed("alone", [{"id": f"r{number}", **shown, "content": content}])
            writes.append(_asked_ms(engine, f"w{number}", "write", {"path": path, "content": "x"}))
            commands.append(_asked_ms(engine, f"b{number}", "bash", {"command": "true"}))
            done = {"id": f"b{number}", "tool": "bash", "input": {"command": "true"}}
            engine.tool_observed("alone", [{**done, "content": []}])
            advance(f"{number + 1} files")
    return {
        "files": files,
        "write_ms": round(statistics.median(writes), 2),
        "command_ms": round(statistics.median(commands), 2),
    }


def _asked_ms(engine: EngineProcess, id: str, tool: str, arguments: dict[str, Any]) -> float:
    engine.open("alone")  # answered only when the notifications before it are served
    began = time.perf_counter()
    asked = {"session": "alone", "id": id, "tool": tool, "input": arguments}
    engine.ask("tool/prepare", asked)
    return (time.perf_counter() - began) * 1000


# The command


def _run(args: Namespace) -> int:
    with Progress("writing", total=args.rounds + args.files) as progress:
        found = run_guard(args.rounds, args.files, lambda note: progress.advance(note=note))
    print_figures(found, args)
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=1000,
        help="changes of the file, by both agents together (default: %(default)s)",
    )
    parser.add_argument(
        "--files",
        metavar="N",
        type=positive,
        default=200,
        help="files that the timed agent knows in the end (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let two agents with an engine each add lines to one file, each from what it last read,\n"
        "and count the lines that are gone in the end; then time the check before a write and\n"
        "before a command, as the host waits for it (median, in milliseconds). Exit code 1 where\n"
        "a line was lost, a write never got through, or the check of a write took over 5 ms."
    ),
    example="foredeck bench guard --rounds 1000 --json",
    configure=_configure,
    run=_run,
)
