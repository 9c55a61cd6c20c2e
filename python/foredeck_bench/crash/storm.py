"""Files that change while their engine is stopped, killed, or watches nothing.

After each change the store must hold every file as on disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from foredeck.model.identity import sha256_hex
from foredeck_bench.crash.stores import Tally, opened
from foredeck_bench.engine_process import EngineProcess, run_step
from foredeck_bench.work_session import START_MS, Step, work_host

SESSION = "storm"
TRACKED = 200
FOLDERS = 7
BURST = 5_000
"""Other files that are written: more events than the system keeps."""
PATIENCE_S = 180.0
POLL_S = 0.1
WITHOUT_WATCHES = (
    *("unshare", "-Ur", "sh", "-c"),
    'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"',
    "sh",
)
"""Runs a command in a user namespace that may not watch anything."""

Change = Callable[[Path, list[Path]], None]


def rewrite(_repo: Path, files: list[Path]) -> None:
    for number in range(BURST):
        (files[number % len(files)].parent / f"junk-{number}").write_text("junk")
    for number, path in enumerate(files):
        path.write_text(f"written again {number} {time.time_ns()}\n")
    for path in files[::10]:
        path.unlink()


def save(_repo: Path, files: list[Path]) -> None:
    """Saves as editors do: by rename, by deleting, by emptying first."""
    for number, path in enumerate(files):
        text = f"saved {number} {time.time_ns()}\n"
        if number % 3 == 0:
            beside = path.with_name(path.name + ".swp")
            beside.write_text(text)
            beside.replace(path)
        else:
            if number % 3 == 1:
                path.unlink(missing_ok=True)
            path.write_text("")
            path.write_text(text)


def install(_repo: Path, files: list[Path]) -> None:
    """Replace folders as installers do."""
    for folder in sorted({path.parent for path in files})[:3]:
        fresh, old = (folder.with_name(folder.name + end) for end in (".fresh", ".old"))
        shutil.copytree(folder, fresh)
        for path in fresh.iterdir():
            path.write_text(f"installed {path.name} {time.time_ns()}")
        folder.rename(old)
        fresh.rename(folder)
        shutil.rmtree(old)


def check_out(repo: Path, files: list[Path]) -> None:
    """Commits a branch that differs in every file, and goes back."""
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")

    def git(*arguments: str) -> None:
        subprocess.run(["git", *author, *arguments], cwd=repo, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("checkout", "-q", "--orphan", f"b{time.time_ns()}")
    save(repo, files)
    git("add", "-A")
    git("commit", "-q", "-m", "two")
    git("checkout", "-q", "-f", "-")


CHANGES: tuple[Change, ...] = (rewrite, save, install, check_out)
STRIKES = ("nobody", "stopped", "killed")
"""What becomes of the engine while files change."""


class Storm:
    """The followed files, and one engine after the other."""

    def __init__(self, root: Path, tally: Tally, wrapper: tuple[str, ...] = ()) -> None:
        self._repo, self._home, self._tally = root / "repo", root / "home", tally
        self._wrapper = wrapper
        self._files = [self._repo / f"d{n % FOLDERS}" / f"f{n}.txt" for n in range(TRACKED)]
        for number, path in enumerate(self._files):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"first {number}\n")
        self.engine = self._started()
        run_step(self.engine, work_host(SESSION), _reads(self._files))
        self.settle("reading")

    def _started(self) -> EngineProcess:
        engine = EngineProcess(self._home, self._repo, wrapper=self._wrapper)
        engine.initialize()
        engine.open(SESSION)
        return engine

    def close(self) -> None:
        """End the engine."""
        self.engine.__exit__(None, None, None)

    def play(self, change: Change, strike: str) -> None:
        """Changes files under a strike, and checks that the engine learns of all."""
        if strike == "stopped":
            os.kill(self.engine.pid, signal.SIGSTOP)
        elif strike == "killed":
            self.engine.kill()
        change(self._repo, self._files)
        if strike == "stopped":
            os.kill(self.engine.pid, signal.SIGCONT)
        elif strike == "killed":
            self.engine = self._started()
        self.settle(f"{change.__name__}, {strike}")

    def settle(self, what: str) -> None:
        """Wait until the store holds what is on the disk."""
        began = time.monotonic()
        expected = {str(path): _hash(path) for path in self._files}
        while True:
            with opened(self._home, "sqlite") as store:
                heads = store.query("file")
            stored = {head.fields["source"]["path"]: head.fields["source_hash"] for head in heads}
            wrong = [path for path, hash in expected.items() if stored.get(path) != hash]
            if not wrong or time.monotonic() - began > PATIENCE_S:
                break
            time.sleep(POLL_S)
        self._tally.recovery_s.append(time.monotonic() - began)
        self._tally.compared["files"] += len(expected)
        if wrong:
            self._tally.fault("differing", f"{what}: {wrong[:3]}", len(wrong))


def storm_rounds(root: Path, rounds: int, tally: Tally) -> None:
    """Rounds of each change under each strike."""
    cases = [(change, strike) for change in CHANGES for strike in STRIKES]
    with closing(Storm(root / "watched", tally)) as storm:
        for number in range(max(1, rounds - 1)):
            change, strike = cases[number % len(cases)]
            storm.play(change, strike)
            tally.killed_at(f"{strike} {change.__name__}")
    probe = subprocess.run([*WITHOUT_WATCHES, "true"], capture_output=True, check=False)
    if rounds > 1 and probe.returncode == 0:
        with closing(Storm(root / "unwatched", tally, WITHOUT_WATCHES)) as storm:
            storm.play(save, "nobody")
            storm.engine.ask("ping", {})
            if not any("compared every" in notice for notice in storm.engine.notices):
                tally.fault("untold", "that nothing can be watched")
        tally.killed_at("nobody save, nothing watched")


def _reads(files: list[Path]) -> Step:
    calls, results, observed = [], [], []
    for n, path in enumerate(files):
        id, content = f"call_{n}", [{"type": "text", "text": path.read_text()}]
        arguments = {"path": str(path)}
        calls.append({"type": "toolCall", "id": id, "name": "read", "arguments": arguments})
        result = {"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": False}
        results.append({**result, "content": content, "timestamp": START_MS})
        tool = {"id": id, "tool": "read", "input": arguments, "content": content}
        observed.append({**tool, "parent": None, "details": None, "is_error": False})
    user = {"role": "user", "content": "read them", "timestamp": START_MS}
    assistant = {"role": "assistant", "content": calls, "stopReason": "toolUse"}
    return Step([user, {**assistant, "timestamp": START_MS}, *results], observed, START_MS)


def _hash(path: Path) -> str | None:
    return sha256_hex(path.read_bytes()) if path.exists() else None
