"""Tasks as folders: what an agent finds, what it is asked, and the check of what it has done.

A task is a folder with `task.toml`, with `files/`, which the agent works on, and where wanted with
`check/`, which is laid over its work when it has ended: the agent never sees that.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.errors import ConfigError

MANIFEST = "task.toml"
SHIPPED = Path(__file__).parent / "shipped"
"""The short tasks that come with foredeck."""
LONG = SHIPPED / "long"
"""The long ones."""
TIMEOUT_S = 600.0
_KEYS = {"about", "prompts", "check", "setup", "timeout_s"}


@dataclass(frozen=True, slots=True)
class EvalTask:
    """One task. `check` and `setup` are command lines for `sh`, run where the agent works."""

    folder: Path
    prompts: tuple[str, ...]
    """What the user says, one after the other, in one session."""
    check: str
    """Exit code 0: the task is done."""
    setup: str = ""
    """Runs before the agent does; makes what is too large to be shipped."""
    timeout_s: float = TIMEOUT_S
    """So long the agent may work."""
    about: str = ""

    @property
    def name(self) -> str:
        """What it is called: its folder's name."""
        return self.folder.name

    @property
    def digest(self) -> str:
        """Of all that the task is: results of another state of it are not its results."""
        found = hashlib.sha256()
        for path in _files_in(self.folder):
            found.update(f"{path.relative_to(self.folder).as_posix()}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()[:16]


def load_tasks(folder: Path) -> list[EvalTask]:
    """The tasks of a folder, by name; or the one that it is itself. Raises `ConfigError`."""
    if (folder / MANIFEST).is_file():
        return [_task(folder.resolve())]
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder of tasks.")
    found = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    if not found:
        raise ConfigError(f"{folder}: holds no task: a task is a folder with {MANIFEST} in it.")
    return [_task(each.resolve()) for each in found]


def _task(folder: Path) -> EvalTask:
    try:
        values = tomllib.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / MANIFEST}: {error}") from error
    wrong = next(_faults(values, folder), None)
    if wrong is not None:
        raise ConfigError(f"{folder / MANIFEST}: {wrong}")
    return EvalTask(folder, **{**values, "prompts": tuple(values["prompts"])})


def _faults(values: dict[str, Any], folder: Path) -> Iterator[str]:
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        yield f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(_KEYS))}"
    prompts = values.get("prompts")
    if not isinstance(prompts, list) or not prompts or not all(map(_is_text, prompts)):
        yield "prompts must be a list of texts, one for each message of the user's"
    if not _is_text(values.get("check")):
        yield "check must be a command line; its exit code 0 says that the task is done"
    if not all(isinstance(values.get(key, ""), str) for key in ("setup", "about")):
        yield "setup and about must be texts"
    timeout = values.get("timeout_s", TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        yield f"timeout_s must be seconds, more than 0, not {timeout!r}"
    if not (folder / "files").is_dir():
        yield "beside it the folder `files` is missing, which the agent works on"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _files_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
