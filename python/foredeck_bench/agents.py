"""Several agents at once: engines on one database that work on the same files.

First all of them work at the same time. Then each in turn changes a file that all have read, and
the others must get one notice of it. The files themselves are changed under a lock, as an editor
would; the engines must not lose any of the changes.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck.context.messages.shape import Message
from foredeck.model.canonical import sha256_hex
from foredeck_bench.arguments import print_figures
from foredeck_bench.crash.checks import check_answered, check_records
from foredeck_bench.crash.homes import opened, prepared, settings
from foredeck_bench.crash.tally import Tally
from foredeck_bench.engine_process import PROGRAM
from foredeck_bench.figures import quantile
from foredeck_bench.process_host import ProcessHost, starter
from foredeck_bench.work_session import START_MS, Step

SHARED = 8
"""Files that all agents read and change."""
LINES = 60
_LOSSES = ("lost_updates", "missed_notices", "repeated_notices")

Advance = Callable[[str], None]


@dataclass
class Agent:
    """One agent: its engine, its session, and the times of its calls."""

    name: str
    repo: Path
    host: ProcessHost
    random: random.Random
    seconds: list[float] = field(default_factory=list)
    _calls: int = 0
    _pending: list[Message] = field(default_factory=list)
    _observed: list[dict[str, Any]] = field(default_factory=list)

    def say(self, text: str) -> str:
        """Send a message of the user; returns the text of the newest message in the prompt."""
        self._pending.append({"role": "user", "content": [_block(text)], "timestamp": self._now})
        return self._ask()

    def read(self, path: Path) -> str:
        """Read a file; returns the text of the newest message in the next prompt."""
        return self._run("read", {"path": str(path)}, path.read_text())

    def edit(self, path: Path, lock: threading.Lock) -> str:
        """Change a line of a file; returns the text of the newest message in the next prompt."""
        with lock:
            lines = path.read_text().split("\n")
            at = self.random.randrange(len(lines) - 1)
            old, new = lines[at], f"{self.name} was here at step {self._calls}: {lines[at]}"[:200]
            lines[at] = new
            path.write_text("\n".join(lines))
        arguments = {"path": str(path), "edits": [{"oldText": old, "newText": new}]}
        return self._run("edit", arguments, f"Successfully replaced 1 block(s) in {path}.")

    @property
    def _now(self) -> int:
        return START_MS + 1000 * self._calls

    def _run(self, tool: str, arguments: dict[str, Any], output: str) -> str:
        id, content = f"{self.name}_{self._calls}", [_block(output)]
        called = {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
        assistant = {"role": "assistant", "content": [called], "stopReason": "toolUse"}
        self._pending.append({**assistant, "timestamp": self._now})
        result = {"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": False}
        self._pending.append({**result, "content": content, "timestamp": self._now})
        event = {"id": id, "tool": tool, "input": arguments, "content": content}
        self._observed.append({**event, "parent": None, "details": None, "is_error": False})
        return self._ask()

    def _ask(self) -> str:
        step = Step(self._pending, self._observed, self._now)
        self._pending, self._observed = [], []
        self._calls += 1
        began = time.perf_counter()
        self.host.step(step)
        self.seconds.append(time.perf_counter() - began)
        _, prompt = self.host.answered[-1]
        return "\n".join(str(block.get("text")) for block in prompt[-1]["content"])


def run_agents(
    count: int = 10,
    store: str = "sqlite",
    steps: int = 60,
    installed: Path | None = None,
    advance: Advance = lambda _note: None,
) -> dict[str, Any]:
    """Run one agent alone, then `count` at once; returns what `--json` prints.

    Latencies are in milliseconds as the agent sees them, `tool/observed` included.
    """
    alone, _ = _play(1, store, steps, installed, advance)
    tally = Tally()
    together, losses = _play(count, store, steps, installed, advance, tally)
    ratio = together["p50_ms"] / alone["p50_ms"] if alone["p50_ms"] else None
    return {
        "agents": count,
        "store": store,
        "calls": tally.acknowledged,
        "alone": alone,
        "together": together,
        "ratio": None if ratio is None else round(ratio, 2),
        "missing": tally.missing,
        "doubled": tally.doubled,
        "half_transactions": tally.half,
        **losses,
        "examples": tally.examples,
        "ok": not (tally.failures or any(losses[name] for name in _LOSSES)),
    }


def _play(
    count: int,
    store: str,
    steps: int,
    installed: Path | None,
    advance: Advance,
    tally: Tally | None = None,
) -> tuple[dict[str, float], dict[str, int]]:
    with tempfile.TemporaryDirectory(prefix="foredeck-agents-") as name:
        home, repo = Path(name) / "home", Path(name) / "repo"
        files = list(_make_files(repo))
        with prepared(home, store, installed):
            agents = [_agent(home, repo, store, number) for number in range(count)]
            try:
                for agent in agents:
                    agent.host.ready()
                _work(agents, files, steps, advance)
                losses = _count_notices(agents, files, advance)
            finally:
                for agent in agents:
                    agent.host.close()
            if tally is not None:
                losses["lost_updates"] = _check(home, store, agents, files, tally)
    taken = [seconds * 1000 for agent in agents for seconds in agent.seconds]
    figures = {f"p{share}_ms": round(quantile(taken, share / 100), 2) for share in (50, 95, 99)}
    return {**figures, "max_ms": round(max(taken), 2)}, losses


def _make_files(repo: Path) -> Iterator[Path]:
    for number in range(SHARED):
        path = repo / f"shared_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {n} of file {number}\n" for n in range(LINES)))
        yield path


def _agent(home: Path, repo: Path, store: str, number: int) -> Agent:
    name = f"agent{number}"
    start = starter(home, repo, ("-c", PROGRAM, "engine"), settings(store))
    host = ProcessHost(name, start)
    return Agent(name, repo, host, random.Random(number))


def _work(agents: list[Agent], files: list[Path], steps: int, advance: Advance) -> None:
    """Let all agents read and change the files at the same time."""
    locks = {path: threading.Lock() for path in files}
    failures: list[BaseException] = []

    def work(agent: Agent) -> None:
        try:
            agent.say("work")
            for _ in range(steps):
                path = agent.random.choice(files)
                if agent.random.random() < 0.5:
                    agent.read(path)
                else:
                    agent.edit(path, locks[path])
                advance(agent.name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _count_notices(agents: list[Agent], files: list[Path], advance: Advance) -> dict[str, int]:
    """Let each agent in turn change a file that all have read; counts missing and repeated
    notices to the others."""
    counts = {"changes": 0, "missed_notices": 0, "repeated_notices": 0, "lost_updates": 0}
    for agent in agents:
        for path in files:
            agent.read(path)
    for number, author in enumerate(agents):
        path = files[number % len(files)]
        for agent in agents:
            agent.say("anything new?")
            agent.read(path)
        author.edit(path, threading.Lock())
        for agent in agents:
            if agent is not author:
                counts["changes"] += 1
                counts["missed_notices"] += f"{path} changed on disk" not in agent.say("and now?")
        for agent in agents:
            counts["repeated_notices"] += f"{path} changed on disk" in agent.say("and now?")
        advance(f"{author.name} has changed {path.name}")
    return counts


def _check(home: Path, store: str, agents: list[Agent], files: list[Path], tally: Tally) -> int:
    """Check that each session is complete and has only its own calls; returns how many files have
    a newest version that is not what is on disk."""
    with opened(home, store) as found:
        for agent in agents:
            tally.acknowledged += len(agent.host.answered)
            check_answered(found, agent.name, agent.host.answered, tally)
            check_records(found, agent.name, tally)
        heads = {h.fields["source"]["path"]: h for h in found.query("file")}
        if len(heads) != len(files):
            tally.fault("doubled", f"{len(heads)} objects for {len(files)} files")
        hashes = {str(path.resolve()): sha256_hex(path.read_bytes()) for path in files}
        return sum(heads[path].fields["source_hash"] != hash for path, hash in hashes.items())


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# The command


def _run(args: Namespace) -> int:
    with Progress("working, step") as progress:
        found = run_agents(
            args.n, args.store, args.steps, advance=lambda note: progress.advance(note=note)
        )
    print_figures(found, args)
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--n", metavar="N", type=positive, default=10, help="agents (default: %(default)s)"
    )
    parser.add_argument(
        "--steps",
        metavar="N",
        type=positive,
        default=60,
        help="model calls of each agent while all work at once (default: %(default)s)",
    )
    parser.add_argument(
        "--store",
        choices=("sqlite", "xtdb"),
        default="sqlite",
        help="the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let several agents, each with an engine of its own, work on one database and change the\n"
        "same files: first all at once, then each changes a file that the others have read.\n"
        "Prints the latency per call against one agent's alone, lost updates, calls that are\n"
        "missing or recorded twice, and notices of a change that an agent missed or got twice.\n"
        "Exit code 1 if there are any."
    ),
    example="foredeck bench agents --n 10 --json",
    configure=_configure,
    run=_run,
)
