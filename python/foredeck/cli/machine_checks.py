"""This machine: Python, Node, Pi and other agents, and whether file watching works."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from foredeck.finding import Finding, note, ok, problem

PYTHON_MIN = (3, 11)
NODE_MIN = (22, 19)
PI_MIN = (0, 87)
PI_PACKAGE = "@earendil-works/pi-coding-agent"
ASK_SECONDS = 20
OF_CHECKOUT = " (this checkout's own: there is no pi on PATH)"


CHECKOUT = Path(__file__).parents[3]
"""The folder that this package runs from, where it is a checkout."""


AGENTS = ("claude", "codex", "opencode")
"""Those that `foredeck proxy` is tested with."""
_PROXIED = re.compile(r"http://127\.0\.0\.1:(\d+)/[\w-]{43}/")


def check_programs(checkout: Path = CHECKOUT) -> Iterator[Finding]:
    """Python with its SQLite, Node, Pi.

    Pi is the one on PATH, which runs on the Node there; where there is none, those that
    `scripts/setup` has put into the checkout.
    """
    yield _python()
    yield _sqlite()
    bin_folder = checkout / "node_modules" / ".bin"
    if shutil.which("pi") is None and shutil.which("pi", path=str(bin_folder)) is not None:
        where = str(bin_folder)
        yield _node(where, OF_CHECKOUT)
        yield _pi(where, OF_CHECKOUT)
    else:
        yield _node()
        yield _pi()
    yield _proxy()


def _proxy() -> Finding:
    """Other agents, and whether this shell has the address of a proxy that has ended."""
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        if (left := _PROXIED.match(os.environ.get(name, ""))) is None:
            continue
        try:
            socket.create_connection(("127.0.0.1", int(left[1])), timeout=1).close()
        except OSError:
            text = f"{name} has the address of a foredeck proxy that has ended"
            return problem("proxy", text, f"unset {name}, or take the address of one that runs.")
        return ok("proxy", f"{name} leads to one that runs")
    found = [name for name in AGENTS if shutil.which(name)]
    if not found:
        return ok("proxy", f"for agents beside Pi; none of {', '.join(AGENTS)} is on PATH")
    return ok("proxy", f"for {', '.join(found)}: foredeck proxy -- {found[0]}")


def _python() -> Finding:
    version = sys.version_info[:3]
    text = f"{_dotted(version)} at {sys.executable}"
    if version < PYTHON_MIN:
        return problem("python", text, f"Install Python {_dotted(PYTHON_MIN)} or later.")
    return ok("python", text)


def _sqlite() -> Finding:
    with closing(sqlite3.connect(":memory:")) as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    text = f"SQLite {sqlite3.sqlite_version}"
    if "ENABLE_FTS5" not in options:
        return problem(
            "sqlite",
            f"{text}, without full-text search (FTS5)",
            "Use a Python whose SQLite has FTS5, such as the one from python.org or from uv.",
        )
    return ok("sqlite", f"{text}, with full-text search")


def _node(where: str | None = None, whose: str = "") -> Finding:
    path = shutil.which("node", path=where)
    advice = f"Install Node {_dotted(NODE_MIN)} or later (https://nodejs.org); Pi needs it."
    if path is None:
        return problem("node", "not found on PATH", advice)
    version = _ask(path)
    if version is None:
        return problem("node", f"{path} does not say its version", advice)
    if version < NODE_MIN:
        return problem("node", f"{_dotted(version)} at {path}", advice)
    return ok("node", f"{_dotted(version)} at {path}{whose}")


def _pi(where: str | None = None, whose: str = "") -> Finding:
    path = shutil.which("pi", path=where)
    install = f"Install it: npm install -g {PI_PACKAGE}"
    if path is None:
        return problem("pi", "not found on PATH", install)
    version = _ask(path, where)
    if version is None:
        return problem("pi", f"{path} does not start", f"Run `{path} --version` to see why.")
    text = f"{_dotted(version)} at {path}{whose}"
    if version < PI_MIN:
        return note("pi", f"{text}, older than {_dotted(PI_MIN)}: some of it may not work", install)
    return ok("pi", text)


def _ask(program: str, where: str | None = None) -> tuple[int, ...] | None:
    """The version that `program --version` prints, None if it prints none.

    `where`: a folder whose programs it finds before those on PATH.
    """
    path = os.pathsep.join(filter(None, (where, os.environ.get("PATH"))))
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            cwd=Path(os.sep),  # a project's own settings must not change the answer
            env={**os.environ, "PATH": path},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout + done.stderr)
    return tuple(map(int, found.groups())) if found and done.returncode == 0 else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# File watching


WATCHES_MIN = 8192
INSTANCES_MIN = 64
EVENT_SECONDS = 5.0
INOTIFY = Path("/proc/sys/fs/inotify")

_WITHOUT = (
    "Without it, changes are found when a session resumes and when a tool touches the file. "
    "Set sources.watch = false to do without it and silence this."
)


def check_watcher() -> Iterator[Finding]:
    """The limits of the system, then one real event."""
    if sys.platform == "linux":
        yield from _limits()
    yield _event()


def _limits() -> Iterator[Finding]:
    for name, wanted in (("max_user_watches", WATCHES_MIN), ("max_user_instances", INSTANCES_MIN)):
        limit = _read_limit(name)
        if limit is not None and limit < wanted:
            setting = f"fs.inotify.{name}"
            yield note(
                "inotify",
                f"{setting} is {limit}, low for several sessions at once",
                f"Run: sudo sysctl {setting}={wanted * 8}",
            )
        elif limit is not None:
            yield ok("inotify", f"{name} {limit:,}")


def _read_limit(name: str) -> int | None:
    try:
        return int((INOTIFY / name).read_text())
    except (OSError, ValueError):
        return None


def _event() -> Finding:
    # watchdog logs what it cannot watch; the finding says it.
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
    seen = threading.Event()

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002
            seen.set()

    observer = Observer()
    try:
        with tempfile.TemporaryDirectory(prefix="foredeck-doctor-") as folder:
            observer.schedule(Handler(), folder)
            observer.start()
            try:
                (Path(folder) / "file").write_text("changed")
                arrived = seen.wait(EVENT_SECONDS)
            finally:
                observer.stop()
                observer.join()
    except OSError as error:
        return problem("watcher", f"cannot watch a folder: {error}", _WITHOUT)
    if not arrived:
        return problem("watcher", "no event came for a changed file", _WITHOUT)
    return ok("watcher", f"changes are seen ({type(observer).__name__})")
