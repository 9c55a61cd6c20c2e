"""Tasks as folders.

`task.toml`, `files/` for the agent, and `check/`, laid over its work afterwards.
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
    """One task; `check` and `setup` are `sh` command lines."""

    folder: Path
    prompts: tuple[str, ...]
    """The user's words in one session."""
    check: str
    """Exit code 0: the task is done."""
    setup: str = ""
    """Runs first; makes what is too large to ship."""
    timeout_s: float = TIMEOUT_S
    """So long the agent may work."""
    about: str = ""

    @property
    def name(self) -> str:
        """What it is called: its folder's name."""
        return self.folder.name

    @property
    def digest(self) -> str:
        """Results of another state are not this task's."""
        hasher = hashlib.sha256()
        for path in _files_in(self.folder):
            hasher.update(f"{path.relative_to(self.folder).as_posix()}\0".encode())
            hasher.update(hashlib.sha256(path.read_bytes()).digest())
        return hasher.hexdigest()[:16]


def load_tasks(folder: Path) -> list[EvalTask]:
    """A folder's tasks by name, or itself. Raises `ConfigError`."""
    if (folder / MANIFEST).is_file():
        return [_task(folder.resolve())]
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder of tasks.")
    folders = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    if not folders:
        raise ConfigError(f"{folder}: holds no task: a task is a folder with {MANIFEST} in it.")
    return [_task(each.resolve()) for each in folders]


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
