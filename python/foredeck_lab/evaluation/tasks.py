"""Tasks of an evaluation, and the results of their runs."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from foredeck.errors import ConfigError, ForedeckError

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


SIDES = ("pi", "foredeck")
"""Who works on a task: plain Pi, and Pi with foredeck."""


_BEGINNING = '{"task": '
"""Of a line; without it the file is another's."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Identifies a run in a file."""

    task: str
    digest: str
    model: str
    settings: tuple[str, ...]
    """`KEY=VALUE` of foredeck's configuration."""
    round: int
    side: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run's outcome."""

    key: RunKey
    outcome: str
    """`passed`, `failed`, or `timeout` with a failed check."""
    calls: int
    fresh: int
    read: int
    written: int
    output: int
    cost: float
    """Dollars, with foredeck's questions."""
    managed: int
    asked: int
    seconds: float
    said: str
    """The end of what the check printed."""

    @property
    def tokens(self) -> int:
        """Input, however it was paid for."""
        return self.fresh + self.read + self.written

    def to_line(self) -> str:
        """One line of the file."""
        values = asdict(self)
        return json.dumps({**values.pop("key"), **values}, ensure_ascii=True)

    @classmethod
    def from_line(cls, line: str) -> RunResult:
        """The result in a line. Raises ValueError, KeyError or TypeError for another line."""
        values: dict[str, Any] = json.loads(line)
        key = {each.name: values.pop(each.name) for each in fields(RunKey)}
        key["settings"] = tuple(key["settings"])
        return cls(RunKey(**key), **values)


class ResultsFile:
    """Results by run, each on disk before the next run begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = {result.key: result for result in self._read()}

    def get(self, key: RunKey) -> RunResult | None:
        return self._known.get(key)

    def add(self, result: RunResult) -> None:
        """Keep a result. Raises `ForedeckError`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # A process that was killed may have left half of a line.
                file.truncate(self._whole())
                file.write(f"{result.to_line()}\n".encode())
        except OSError as error:
            raise ForedeckError(f"{self.path}: {error.strerror or error}") from error
        self._known[result.key] = result

    def _whole(self) -> int:
        return self.path.read_bytes().rfind(b"\n") + 1

    def _read(self) -> Iterator[RunResult]:
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, ValueError) as error:
            raise ForedeckError(f"{self.path}: {error}") from error
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield RunResult.from_line(line)
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines) and line.startswith(_BEGINNING):
                    # The line that was being written when a process was killed.
                    continue
                raise ForedeckError(
                    f"{self.path}, line {number}: is no result of `foredeck eval` ({error}). Name "
                    "another file with --results."
                ) from error


# Side by side


@dataclass(slots=True)
class SideSum:
    runs: int = 0
    passed: int = 0
    timeouts: int = 0
    calls: int = 0
    tokens: int = 0
    output: int = 0
    cost: float = 0.0
    managed: int = 0
    asked: int = 0
    seconds: float = 0.0

    def add(self, result: RunResult) -> None:
        """One run."""
        self.runs += 1
        self.passed += result.outcome == "passed"
        self.timeouts += result.outcome == "timeout"
        self.calls += result.calls
        self.tokens += result.tokens
        self.output += result.output
        # Rounded: the JSON would show the noise of adding floats.
        self.cost = round(self.cost + result.cost, 6)
        self.managed += result.managed
        self.asked += result.asked
        self.seconds = round(self.seconds + result.seconds, 1)

    @property
    def cost_per_pass(self) -> float | None:
        return round(self.cost / self.passed, 6) if self.passed else None


Comparison = dict[str, dict[str, SideSum]]
"""Sums by task and side."""


def paired(results: Sequence[RunResult]) -> list[RunResult]:
    counts = Counter((result.key.task, result.key.round) for result in results)
    return [r for r in results if counts[r.key.task, r.key.round] == len(SIDES)]


def compared(results: Iterable[RunResult]) -> Comparison:
    comparison: Comparison = {}
    for result in results:
        sides = comparison.setdefault(result.key.task, {side: SideSum() for side in SIDES})
        sides[result.key.side].add(result)
    return comparison


def summed(results: Sequence[RunResult]) -> dict[str, SideSum]:
    """Over all tasks, by side."""
    sums = {side: SideSum() for side in SIDES}
    for result in results:
        sums[result.key.side].add(result)
    return sums


def comparison_json(results: Sequence[RunResult]) -> dict[str, Any]:
    """Sums by task and side."""
    return {
        "tasks": {
            task: {side: _json(each) for side, each in sides.items()}
            for task, sides in compared(results).items()
        },
        "all": {side: _json(each) for side, each in summed(results).items()},
    }


def _json(sums: SideSum) -> dict[str, Any]:
    return {**asdict(sums), "cost_per_pass": sums.cost_per_pass}
