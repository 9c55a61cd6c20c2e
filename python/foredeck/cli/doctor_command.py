"""`foredeck doctor`: checks this machine, and says what to do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, coloured, hanging, typed
from foredeck.cli.stored import rebuild, vacuum
from foredeck.cli.stored_checks import check_stored
from foredeck.config import Config, foreign_owner, looser_than_private
from foredeck.errors import ConfigError, ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.memory.trust import KEY_FILE, load_user
from foredeck.store.backup import ELSEWHERE
from foredeck.store.location import is_network_filesystem
from foredeck.store.place import store_place
from foredeck.version import PI_PACKAGE, dotted, pi_finding, version_in

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "red")}


def run(args: Namespace) -> int:
    """`foredeck doctor`."""
    if args.rebuild:
        return rebuild(args)
    if args.vacuum:
        return vacuum(args)
    with Progress("checking") as progress:
        findings = []
        for finding in _check(args):
            findings.append(finding)
            progress.advance(note=finding.name)
    sound = all(finding.status == "ok" for finding in findings)
    value = {"ok": sound, "checks": [asdict(finding) for finding in findings]}
    return answer(args, value, _lines(findings), 0 if sound else 1)


def _check(args: Namespace) -> Iterator[Finding]:
    yield from check_programs()
    config, finding = check_config(args)
    yield finding
    findings_of_state = list(check_state(config))
    yield from findings_of_state
    if findings_of_state[-1].status != "problem":
        yield from check_stored(config, forget_refusals=args.forget_refusals)


def _lines(findings: list[Finding]) -> Iterator[str]:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word, colour = _MARKS[finding.status]
        mark = coloured(word.ljust(7), colour)
        said = [*finding.text.split("\n"), *([typed(finding.advice)] if finding.advice else [])]
        text = "\n".join(hanging(line, len("problem    ") + width) for line in said)
        yield f"{mark}  {finding.name.ljust(width)}  {text.lstrip()}"
    problems = sum(finding.status != "ok" for finding in findings)
    yield (
        f"\n{len(findings)} checks, {problems} with something to do" if problems else "\nAll well."
    )


# Configuration, state folder and store


FREE_BYTES_MIN = 256 * 1024 * 1024


def check_config(args: Namespace) -> tuple[Config, Finding]:
    """The configuration, or the defaults if it cannot be used."""
    try:
        resolved = resolve_config(args)
    except ConfigError as error:
        advice = "Correct it; docs/configuration.md explains the keys. Checked with defaults."
        return Config(), problem("config", str(error), advice)
    if resolved.warning:
        advice = "Tell whoever keeps the project, or set it in your own configuration."
        return resolved.config, note("config", resolved.warning, advice)
    return resolved.config, ok("config", "every layer can be read")


def check_state(config: Config) -> Iterator[Finding]:
    """The state folder and the store in it; changes nothing."""
    home = config.home
    if not home.exists():
        yield _home_to_be(home)
    elif not home.is_dir():
        yield problem("home", f"{home} is not a folder", ELSEWHERE)
        return
    else:
        yield _permissions(home)
        yield _writable(home)
    yield _space(home)
    yield _file_system(home)
    if home.is_dir():
        yield from _user_key(home)
    yield from store_place(config).findings()


def _user_key(home: Path) -> Iterator[Finding]:
    if not (home / KEY_FILE).exists():
        return
    try:
        load_user(home)
    except (OSError, ForedeckError) as error:
        advice = "Bring it back from a backup. Nothing that you said is lost, only that you did."
        yield problem("user key", str(error), advice)
    else:
        yield ok("user key", f"{home / KEY_FILE}: keep it with your backups")


def _home_to_be(home: Path) -> Finding:
    parent = _existing(home)
    if not os.access(parent, os.W_OK | os.X_OK):
        advice = f"Make {parent} writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} is not there, and {parent} is not writable", advice)
    return ok("home", f"{home} (made at first use)")


def _permissions(home: Path) -> Finding:
    if (owner := foreign_owner(home)) is not None:
        return problem(
            "permissions",
            f"{home} belongs to user {owner}, who can read and change what is in it",
            "Set FOREDECK_HOME to a folder of your own.",
        )
    if looser_than_private(home):
        mode = stat.S_IMODE(home.stat().st_mode)
        return problem(
            "permissions",
            f"other users can get into {home} (mode {mode:04o})",
            f"Run: chmod 700 {home}",
        )
    return ok("permissions", f"{home} is yours alone")


def _writable(home: Path) -> Finding:
    try:
        # Permissions do not say it all: the file system may be read-only, or over its quota.
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"foredeck doctor")
            file.flush()
    except OSError as error:
        advice = "Make it writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} cannot be written: {error.strerror}", advice)
    return ok("home", str(home))


def _space(home: Path) -> Finding:
    free = shutil.disk_usage(_existing(home)).free
    text = f"{free // (1024 * 1024):,} MiB free"
    if free < FREE_BYTES_MIN:
        return problem("disk", text, "Free some space, or set FOREDECK_HOME to another disk.")
    return ok("disk", text)


def _file_system(home: Path) -> Finding:
    if is_network_filesystem(_existing(home)):
        return problem(
            "file system",
            f"{home} is on a network file system, where SQLite cannot lock reliably",
            "Set FOREDECK_HOME to a folder on a local disk.",
        )
    return ok("file system", "local")


def _existing(path: Path) -> Path:
    return path if path.is_dir() or path == path.parent else _existing(path.parent)


# This machine: Python, Node, Pi and other agents


NODE_MIN = (22, 19)
ASK_SECONDS = 20
OF_CHECKOUT = " (this checkout's own: there is no pi on PATH)"


CHECKOUT = Path(__file__).parents[3]
"""The folder of the checkout that this package runs from, if any."""


AGENTS = ("claude", "codex", "opencode")
"""Those that `foredeck proxy` is tested with."""
_PROXIED = re.compile(r"http://127\.0\.0\.1:(\d+)/[\w-]{43}/")


def check_programs(checkout: Path = CHECKOUT) -> Iterator[Finding]:
    """Python with its SQLite, Node, Pi: those on PATH, else the checkout's."""
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
        if (match := _PROXIED.match(os.environ.get(name, ""))) is None:
            continue
        try:
            socket.create_connection(("127.0.0.1", int(match[1])), timeout=1).close()
        except OSError:
            text = f"{name} has the address of a foredeck proxy that has ended"
            return problem("proxy", text, f"unset {name}, or take the address of one that runs.")
        return ok("proxy", f"{name} leads to one that runs")
    agents = [name for name in AGENTS if shutil.which(name)]
    if not agents:
        return ok("proxy", f"for agents beside Pi; none of {', '.join(AGENTS)} is on PATH")
    return ok("proxy", f"for {', '.join(agents)}: foredeck proxy -- {agents[0]}")


def _python() -> Finding:
    return ok("python", f"{dotted(sys.version_info[:3])} at {sys.executable}")


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
    advice = f"Install Node {dotted(NODE_MIN)} or later (https://nodejs.org); Pi needs it."
    if path is None:
        return problem("node", "not found on PATH", advice)
    version = _ask(path)
    if version is None:
        return problem("node", f"{path} does not say its version", advice)
    if version < NODE_MIN:
        return problem("node", f"{dotted(version)} at {path}", advice)
    return ok("node", f"{dotted(version)} at {path}{whose}")


def _pi(where: str | None = None, whose: str = "") -> Finding:
    path = shutil.which("pi", path=where)
    install = f"Install it: npm install -g {PI_PACKAGE}"
    if path is None:
        return problem("pi", "not found on PATH", install)
    version = _ask(path, where)
    if version is None:
        return problem("pi", f"{path} does not start", f"Run `{path} --version` to see why.")
    return pi_finding(version, f" at {path}{whose}")


def _ask(program: str, where: str | None = None) -> tuple[int, ...] | None:
    """The version that `program --version` prints, if any."""
    path = os.pathsep.join(filter(None, (where, os.environ.get("PATH"))))
    try:
        process = subprocess.run(
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
    return None if process.returncode else version_in(process.stdout + process.stderr)
