"""Files that change under a running engine: many at once, by git, by editors, by installers.

A real engine follows files that its session has read. After each phase every one of them must
be in the store as it is on disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.errors import ForedeckError
from foredeck.model.canonical import sha256_hex
from foredeck.store.protocol import Store
from foredeck_bench.crash.homes import opened
from foredeck_bench.engine_process import EngineProcess, run_step
from foredeck_bench.process_usage import busy_seconds, peak_mb_of, resident_mb
from foredeck_bench.work_session import START_MS, Step, work_host

SESSION = "storm"
FOLDERS = 49
PATIENCE_S = 180.0
POLL_S = 0.1
REST_S = 5.0
"""The engine is idle once it has done nothing for this long, whatever a burst of changes needs on a
busy machine."""
REST_SHARE = 0.01
"""The share of a core that counts as nothing."""
CHUNK = 500
EDITED = 500
LIMIT_FILES = 20

Advance = Callable[[str], None]
WITHOUT_WATCHES = (
    "unshare",
    "-Ur",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"',
    "sh",
)
"""Runs a command in a user namespace of its own that may not watch anything."""


class CannotStorm(ForedeckError):
    """Something that the bench needs is missing here."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One kind of change. `wrong`: tracked files whose newest version is not what is on the disk
    after PATIENCE_S. `settle_s`: from the last write until all were right."""

    name: str
    written: int
    wrong: int
    settle_s: float
    note: str = ""


@dataclass
class Storm:
    """The tracked files, the engine that follows them, and the store that it writes."""

    repo: Path
    engine: EngineProcess
    store: Store
    advance: Advance
    files: list[Path]

    def settle(self, name: str, written: int, note: str = "") -> Phase:
        """Wait until the store holds what is on the disk."""
        began = time.monotonic()
        expected = {str(path): state_of(path) for path in self.files}
        while True:
            held = self._held()
            wrong = [path for path, state in expected.items() if held.get(path) != state]
            took = time.monotonic() - began
            if not wrong or took > PATIENCE_S:
                return Phase(name, written, len(wrong), round(took, 2), note)
            self.advance(f"{name}: {len(wrong)} files to come")
            time.sleep(POLL_S)

    def _held(self) -> dict[str, str | None]:
        return {
            head.fields["source"]["path"]: head.fields["source_hash"]
            for head in self.store.query("file")
        }

    # ------------------------------------------------------------ phases

    def paused(self, count: int) -> Phase:
        """Stop the engine while `count` files are written, the tracked ones among them."""
        os.kill(self.engine.pid, signal.SIGSTOP)
        try:
            for number in range(count - len(self.files)):
                place = self.files[number % len(self.files)].parent
                (place / f"junk-{number}").write_text("junk")
                if number % 5000 == 0:
                    self.advance(f"writing, {number} files")
            self._rewrite("after the storm", deletes=True)
        finally:
            os.kill(self.engine.pid, signal.SIGCONT)
        return self.settle("storm, reader stopped", count)

    def _rewrite(self, text: str, *, deletes: bool = False) -> None:
        for number, path in enumerate(self.files):
            if deletes and number % 10 == 0:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"{text} {number}\n")

    def checkout(self) -> Iterator[Phase]:
        """Check out a branch that differs in every tracked file, and go back."""
        for path in self.repo.rglob("junk-*"):
            path.unlink()
        self._rewrite("on the first branch")
        _git(self.repo, "init", "-q", "-b", "one")
        _commit(self.repo, "one")
        _git(self.repo, "checkout", "-q", "-b", "two")
        self._rewrite("on the second branch", deletes=True)
        _commit(self.repo, "two")
        yield self.settle("git commit", len(self.files))
        for branch in ("one", "two"):
            _git(self.repo, "checkout", "-q", branch)
            yield self.settle(f"git checkout {branch}", len(self.files))

    def editors(self) -> Phase:
        """Save as editors do: by rename, by deleting and writing again, by emptying first."""
        chosen = self.files[: 3 * EDITED]
        for number, path in enumerate(chosen):
            if number % 3 == 0:
                beside = path.with_name(path.name + ".swp")
                beside.write_text(f"saved by rename {number}\n")
                beside.replace(path)
            elif number % 3 == 1:
                path.unlink(missing_ok=True)
                path.write_text(f"made again {number}\n")
            else:
                path.write_text("")
                path.write_text(f"written in two steps {number}\n")
        return self.settle("editors", len(chosen))

    def install(self) -> Phase:
        """Create, delete and swap folders full of packages, as installers do."""
        count = 0
        for number in range(200):
            staged = self.repo / "node_modules" / f".staging-{number}"
            staged.mkdir(parents=True)
            for name in ("package.json", "index.js", "README.md"):
                (staged / name).write_text(f"{name} {number}")
                count += 1
            staged.rename(self.repo / "node_modules" / f"package-{number}")
        folders = sorted({path.parent for path in self.files})[:5]
        for folder in folders:
            fresh = folder.with_name(folder.name + ".fresh")
            shutil.copytree(folder, fresh)
            for path in fresh.iterdir():
                path.write_text(f"installed again: {path.name}")
                count += 1
            folder.rename(folder.with_name(folder.name + ".old"))
            fresh.rename(folder)
            shutil.rmtree(folder.with_name(folder.name + ".old"))
        shutil.rmtree(self.repo / "node_modules")
        return self.settle("installer", count)


def run_storm(
    written: int = 100_000,
    tracked: int = 5_000,
    idle_s: float = 35.0,
    advance: Advance = lambda _note: None,
) -> dict[str, Any]:
    """All phases; idling is watched for `idle_s` seconds.

    Returns what `foredeck bench storm --json` prints: times in seconds, memory in
    megabytes. Raises `CannotStorm` where git or signals are missing."""
    if not hasattr(signal, "SIGSTOP") or shutil.which("git") is None:
        raise CannotStorm("this bench needs git, and signals that stop a process")
    with tempfile.TemporaryDirectory(prefix="foredeck-storm-") as name:
        root = Path(name)
        with _followed(root / "a", tracked, advance) as storm:
            quiet_mb = _rounded(resident_mb(storm.engine.pid))
            phases = [storm.paused(written), *storm.checkout(), storm.editors(), storm.install()]
            peak_mb = _rounded(peak_mb_of(storm.engine.pid))
            rest_s, idle = _idle_share(storm.engine.pid, idle_s, advance)
            notices = storm.engine.notices
        phases.append(_without_watches(root / "b", advance))
    return {
        "tracked": tracked,
        "written": sum(phase.written for phase in phases),
        "wrong": sum(phase.wrong for phase in phases),
        "settle_s": max(phase.settle_s for phase in phases),
        "phases": [asdict(phase) for phase in phases],
        "quiet_mb": quiet_mb,
        "peak_mb": peak_mb,
        "rest_s": rest_s,
        "idle_cpu_percent": idle,
        "notices": notices,
        "ok": all(phase.wrong == 0 for phase in phases),
    }


@contextmanager
def _followed(
    root: Path, count: int, advance: Advance, wrapper: tuple[str, ...] = ()
) -> Iterator[Storm]:
    """An engine whose session has read `count` files."""
    repo, home = root / "repo", root / "home"
    files = [repo / f"d{n % FOLDERS}" / f"f{n}.txt" for n in range(count)]
    for number, path in enumerate(files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"first {number}\n")
    with EngineProcess(home, repo, wrapper=wrapper) as engine:
        engine.initialize()
        engine.open(SESSION)
        host = work_host(SESSION)
        for start in range(0, count, CHUNK):
            run_step(engine, host, _reads(files[start : start + CHUNK], start))
            advance(f"reading, {start} files")
        with opened(home, "sqlite") as store:
            storm = Storm(repo, engine, store, advance, files)
            storm.settle("reading", count)
            yield storm


def _reads(files: list[Path], number: int) -> Step:
    """One turn in which the model reads these files."""
    time_ms = START_MS + number
    calls, results, observed = [], [], []
    for n, path in enumerate(files, start=number):
        id, content = f"call_{n}", [{"type": "text", "text": path.read_text()}]
        arguments = {"path": str(path)}
        calls.append({"type": "toolCall", "id": id, "name": "read", "arguments": arguments})
        result = {"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": False}
        results.append({**result, "content": content, "timestamp": time_ms})
        told = {"id": id, "tool": "read", "input": arguments, "content": content}
        observed.append({**told, "parent": None, "details": None, "is_error": False})
    user = {"role": "user", "content": f"read from {number} on", "timestamp": time_ms}
    assistant = {"role": "assistant", "content": calls, "stopReason": "toolUse"}
    return Step([user, {**assistant, "timestamp": time_ms}, *results], observed, time_ms)


def _without_watches(root: Path, advance: Advance) -> Phase:
    """Run with no watches left: files must be compared, and the user told."""
    name = "no watches left"
    probe = subprocess.run([*WITHOUT_WATCHES, "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        return Phase(name, 0, 0, 0.0, "not applicable: no user namespaces here")
    with _followed(root, LIMIT_FILES, advance, WITHOUT_WATCHES) as storm:
        storm._rewrite("without watches", deletes=True)
        found = storm.settle(name, LIMIT_FILES)
        storm.engine.ask("ping", {})
        note = "; ".join(storm.engine.notices)
    return Phase(name, found.written, found.wrong + (not note), found.settle_s, note)


def state_of(path: Path) -> str | None:
    """Hash of a file's bytes, None where there is none."""
    try:
        return sha256_hex(path.read_bytes())
    except FileNotFoundError:
        return None


def _rounded(megabytes: float | None) -> float | None:
    return None if megabytes is None else round(megabytes, 1)


def _idle_share(pid: int, seconds: float, advance: Advance) -> tuple[float, float | None]:
    """Seconds until the engine was idle, and the percent of one core that it uses from then on."""
    began = time.monotonic()
    span = min(REST_S, seconds)
    while (used := busy_seconds(pid, span)) is not None and used > REST_SHARE * span:
        if time.monotonic() - began > PATIENCE_S:
            break
        advance("waiting for it to rest")
    rest_s = round(time.monotonic() - began - span, 1)
    advance("watching it idle")
    used = busy_seconds(pid, seconds)
    return rest_s, None if used is None else round(100 * used / seconds, 2)


def _git(repo: Path, *arguments: str) -> None:
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    command = ["git", *author, "-c", "gc.auto=0", *arguments]
    subprocess.run(command, cwd=repo, check=True, capture_output=True)


def _commit(repo: Path, message: str) -> None:
    _git(repo, "add", "-A")
    _git(repo, "commit", "-q", "-m", message)


# The command


def _run(args: Namespace) -> int:
    with Progress("storm") as progress:
        found = run_storm(
            args.written, args.tracked, args.idle, lambda note: progress.advance(note=note)
        )
    if args.json:
        print_json(found)
    else:
        rows = [
            (p["name"], f"{p['written']:,}", str(p["wrong"]), f"{p['settle_s']:g} s", p["note"])
            for p in found["phases"]
        ]
        print(table([("phase", "written", "wrong", "settled in", ""), *rows]))
        print(
            f"\nmemory {found['quiet_mb']} MB at rest, {found['peak_mb']} MB at most; "
            f"idle {found['idle_cpu_percent']}% of a core, at rest {found['rest_s']:g} s after the "
            "last change was stored"
        )
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--written",
        metavar="N",
        type=positive,
        default=100_000,
        help="files written while the engine is stopped (default: %(default)s)",
    )
    parser.add_argument(
        "--tracked",
        metavar="N",
        type=positive,
        default=5_000,
        help="files that the engine follows (default: %(default)s)",
    )
    parser.add_argument(
        "--idle",
        metavar="SECONDS",
        type=positive,
        default=35,
        help="how long it is watched idling once it rests; everything is compared each half "
        "minute (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Change files under a running engine: more at once than the system can tell while the\n"
        "engine is stopped, by git checkout, as editors save, as installers do, and where nothing\n"
        "can be watched. After each phase the store must hold what is on the disk. Prints files\n"
        "written, wrong states, time to settle, peak memory and what idling costs. Takes a few\n"
        "minutes in a scratch folder; exit code 1 if a state is wrong."
    ),
    example="foredeck bench storm --json",
    configure=_configure,
    run=_run,
)
