"""Sets up a Python environment for foredeck's engine, in a folder of its own.

    python3 -I setup_engine.py FOLDER [--uv UV] [--check]

The Pi extension runs this once for each version of foredeck. The environment has the packages of
`requirements.lock`, each checked by its hash, and foredeck as it lies beside this file. It is made
with uv where that is named, else with venv and pip. Where the package brings a folder `wheels`,
nothing is fetched.

What happens goes to stdout as lines of JSON: `progress` texts, then the `python` of the environment
or an `error` for the user. Only the standard library is needed. Any number of these may run at
once: one works, the others wait for it. `engine.json` in the folder is written last, so a folder
without it is an attempt that was interrupted, and is made again.

Exit code: 0, 1 after an `error`, and 3 where this Python is too old.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK_FILE = "requirements.lock"
BUNDLED = ROOT / "wheels"
MARKER = "engine.json"

WINDOWS = os.name == "nt"
OLDEST = (3, 11)
TOO_OLD = 3
UNUSED_S = 30 * 24 * 60 * 60

NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""On Windows no console window opens for a program that is started."""

FETCHED = r"^\S+ @ |^\S+==(?!.*sys_platform ==)"

AGAIN = "/foredeck setup tries again."
CAUSES = (
    (r"no space left|not enough space", f"the disk is full: make room, then {AGAIN}"),
    (
        r"do not match|hash mismatch",
        f"a package is not the one that foredeck was tested with. {AGAIN}",
    ),
    (
        r"name resolution|connection|timed out|unreachable|dns error|no matching distribution"
        r"|error sending request|failed to fetch|not found in the (cache|package registry)",
        f"its packages cannot be fetched, so check the network; {AGAIN}",
    ),
)


class SetupFailed(Exception):
    """The text is for the user."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--uv")
    parser.add_argument("--check", action="store_true", help="start the engine that is there")
    args = parser.parse_args(arguments)
    if sys.version_info < OLDEST:
        return TOO_OLD
    try:
        folder = args.folder.absolute()
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with alone(folder.with_name(f"{folder.name}.lock")):
            if not (folder / MARKER).exists() or (args.check and not starts(folder)[0]):
                build(folder, args.uv)
                remove_unused(folder)
        say(python=json.loads((folder / MARKER).read_text(encoding="utf-8"))["python"])
    except (SetupFailed, OSError) as error:
        say(error=f"foredeck's engine could not be set up: {error}")
        return 1
    return 0


def say(**fields: str) -> None:
    """One line for the extension."""
    print(json.dumps(fields), flush=True)


# ------------------------------------------------------------------ one at a time


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Holds the lock file `path` until this process ends."""
    with path.open("ab") as file:
        waits = False
        while not take(file.fileno()):
            if not waits:
                say(progress="waiting for another Pi that sets it up")
            waits = True
            time.sleep(0.2)
        yield


def take(descriptor: int) -> bool:
    if WINDOWS:
        from importlib import import_module

        system = import_module("msvcrt")
        try:
            system.locking(descriptor, system.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


# ------------------------------------------------------------------ the environment


def build(folder: Path, uv: str | None) -> None:
    """Make the environment from nothing. Raises `SetupFailed`."""
    say(progress="making a Python environment")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    wanted = folder / "requirements.txt"
    wheel = write_wheel(folder)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own = f"foredeck @ {wheel.as_uri()} --hash=sha256:{digest}\n"
    wanted.write_text((ROOT / LOCK_FILE).read_text(encoding="utf-8") + own, encoding="utf-8")
    try:
        if uv is None:
            with_pip(folder, wanted)
        else:
            with_uv(uv, folder, wanted)
    except SetupFailed:
        # pip may be configured for a network that uv knows nothing of.
        if uv is None or BUNDLED.is_dir():
            raise
        with_pip(folder, wanted)
    say(progress="starting it for the first time")
    works, output = starts(folder)
    if not works:
        raise SetupFailed(f"it is installed but does not start: {last_line(output)}")
    wheel.unlink()
    wanted.unlink()
    write_launcher(folder)
    write_whole(folder / MARKER, json.dumps({"python": str(python_of(folder))}))


def with_uv(uv: str, folder: Path, wanted: Path) -> None:
    """Make and fill the environment with uv."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    run([uv, "venv", "--quiet", "--clear", "--python", base, str(folder / "venv")], folder)
    say(progress="installing its packages")
    install = [uv, "pip", "install", "--python", str(python_of(folder)), "--compile-bytecode"]
    run([*install, *sources("--offline"), "--require-hashes", "-r", str(wanted)], folder)


def with_pip(folder: Path, wanted: Path) -> None:
    import importlib.util
    import venv
    from importlib.metadata import version

    # The pip of this Python spares the environment one of its own, where it is new enough for that.
    lent = importlib.util.find_spec("pip") is not None and reaches_others(version("pip"))
    # Debian has it in a package of its own.
    if not lent and importlib.util.find_spec("ensurepip") is None:
        raise SetupFailed(
            f"this Python cannot install packages. Run `sudo apt install python3-venv`; {AGAIN}"
        )
    made = venv.EnvBuilder(clear=True, symlinks=not WINDOWS, with_pip=not lent)
    try:
        made.create(folder / "venv")
    except subprocess.CalledProcessError as error:
        raise SetupFailed(explained(str(error.output or error))) from None
    inside = str(python_of(folder))
    pip = [sys.executable, "-m", "pip", "--python", inside] if lent else [inside, "-m", "pip"]
    expected = len(re.findall(FETCHED, wanted.read_text(encoding="utf-8"), re.MULTILINE))
    seen: set[str] = set()

    def report(line: str) -> None:
        found = re.match(r"(?:Collecting|Processing) (\S+)", line)
        if found:
            seen.add(found[1])
            say(progress=f"fetching its packages, {len(seen)} of {max(expected, len(seen))}")
        elif line.startswith("Installing"):
            say(progress="installing its packages")

    options = ["--disable-pip-version-check", "--no-input", "--no-compile", "--retries", "2"]
    fetch = [*pip, "install", *options, *sources(), "--require-hashes", "-r", str(wanted)]
    run(fetch, folder, report)
    # pip itself would take one processor for it.
    compile = [inside, "-m", "compileall", "-q", "-j", "0", str(folder / "venv")]
    subprocess.run(compile, cwd=folder, stdout=subprocess.DEVNULL, creationflags=NO_WINDOW)


def reaches_others(version: str) -> bool:
    """Whether this pip can install into another environment."""
    return tuple(map(int, re.findall(r"\d+", version)[:2])) >= (22, 3)


def sources(*further: str) -> list[str]:
    """Where packages come from: the usual place, or the folder `wheels` alone."""
    bundled = ["--no-index", "--find-links", BUNDLED.as_uri(), *further]
    return bundled if BUNDLED.is_dir() else []


def python_of(folder: Path) -> Path:
    """The interpreter of the environment."""
    return folder / "venv" / ("Scripts/python.exe" if WINDOWS else "bin/python")


def starts(folder: Path) -> tuple[bool, str]:
    """Whether the engine starts, and what it says."""
    code = "from foredeck.cli.main import main; raise SystemExit(main())"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FOREDECK", "PYTHON"))}
    try:
        done = subprocess.run(
            [str(python_of(folder)), "-P", "-c", code, "engine"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            creationflags=NO_WINDOW,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return done.returncode == 0, done.stdout.decode("utf-8", "replace")


def remove_unused(current: Path) -> None:
    """Removes other versions unused for a month."""
    for path in current.parent.iterdir():
        if path.is_dir() and path != current:
            used = max(each.stat().st_mtime for each in (path, path / MARKER) if each.exists())
            if time.time() - used > UNUSED_S:
                shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------------------ foredeck itself


def write_wheel(folder: Path) -> Path:
    """Packs foredeck as `pyproject.toml` says, without a builder."""
    import tomllib

    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, target = described["project"], described["tool"]["hatch"]["build"]["targets"]["wheel"]
    info = f"foredeck-{project['version']}.dist-info"
    contents = {
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: foredeck\nVersion: {project['version']}\n"
            f"Requires-Python: {project['requires-python']}\n"
        ).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(
            ["[console_scripts]", *(f"{k} = {v}" for k, v in project["scripts"].items()), ""]
        ).encode(),
    }
    places = {each: Path(each).name for each in target["packages"]}
    for source, name in {**places, **target.get("force-include", {})}.items():
        for path in sorted(files_of(ROOT / source)):
            inner = path.relative_to(ROOT / source).as_posix()
            contents[name if inner == "." else f"{name}/{inner}"] = path.read_bytes()
    record = "".join(f"{name},{hash_of(data)},{len(data)}\n" for name, data in contents.items())
    wheel = folder / f"foredeck-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as packed:
        for name, data in contents.items():
            packed.writestr(name, data)
        packed.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return wheel


def files_of(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for each in path.rglob("*") if path.is_dir() else ():
        if each.is_file() and "__pycache__" not in each.parts:
            yield each


def hash_of(data: bytes) -> str:
    """A hash as wheels note it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def write_launcher(folder: Path) -> None:
    bin = folder.parent.parent / "bin"
    bin.mkdir(exist_ok=True, mode=0o700)
    if WINDOWS:
        script = folder / "venv" / "Scripts" / "foredeck.exe"
        write_whole(bin / "foredeck.cmd", f'@"{script}" %*\r\n')
    else:
        command = str(folder / "venv" / "bin" / "foredeck").replace("'", "'\\''")
        write_whole(bin / "foredeck", f"#!/bin/sh\nexec '{command}' \"$@\"\n", mode=0o755)


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8", newline="")
    part.chmod(mode)
    part.replace(path)


# ------------------------------------------------------------------ installers


def run(words: list[str], folder: Path, report: Callable[[str], object] = str) -> None:
    """Runs an installer in the engine's folder, away from the project's settings. Raises
    `SetupFailed`."""
    said = ""
    try:
        with subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            creationflags=NO_WINDOW,
        ) as process:
            for line in process.stdout or ():
                said = (said + line)[-4000:]
                report(line)
    except OSError as error:
        raise SetupFailed(str(error)) from None
    if process.returncode != 0:
        print(f"{' '.join(words)} ended with {process.returncode}:\n{said}", file=sys.stderr)
        raise SetupFailed(explained(said))


def explained(said: str) -> str:
    """What went wrong and what helps, by an installer's words."""
    for pattern, text in CAUSES:
        if re.search(pattern, said, re.IGNORECASE):
            return text
    return f"{last_line(said)} {AGAIN}"


def last_line(output: str) -> str:
    """The last words of a program."""
    return ["", *output.strip().splitlines()][-1].strip() or "no output"


if __name__ == "__main__":
    sys.exit(main())
