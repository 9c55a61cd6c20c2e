"""The results of runs, one line each, in a file that a later evaluation goes on from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from foredeck.errors import ForedeckError

SIDES = ("pi", "foredeck")
"""Who works on a task: plain Pi, and Pi with foredeck."""


_BEGINNING = '{"task": '
"""Of a line. A last line with it that is no result was being written when a process was killed; one
without it is another file's."""


class ResultsUnusable(ForedeckError):
    """The file of results cannot be read or written."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run a result is of: no two of a file have the same."""

    task: str
    digest: str
    model: str
    settings: tuple[str, ...]
    """`KEY=VALUE` of foredeck's configuration."""
    round: int
    side: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of one run: see `RunFigures` and `OwnShare` for the figures."""

    key: RunKey
    outcome: str
    """`passed`, `failed`, or `timeout`: the agent's time was up, and the check failed."""
    calls: int
    fresh: int
    read: int
    written: int
    output: int
    cost: float
    """In dollars, with what foredeck itself has asked."""
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
        """Raises ValueError, KeyError or TypeError where it is none."""
        values: dict[str, Any] = json.loads(line)
        key = {each.name: values.pop(each.name) for each in fields(RunKey)}
        key["settings"] = tuple(key["settings"])
        return cls(RunKey(**key), **values)


class ResultsFile:
    """Results by their runs. Each is on the disk before the next run begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = {result.key: result for result in self._read()}

    def get(self, key: RunKey) -> RunResult | None:
        """The result of a run, if there is one."""
        return self._known.get(key)

    def add(self, result: RunResult) -> None:
        """Keep a result. Raises `ResultsUnusable`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.truncate(self._whole())
                file.write(f"{result.to_line()}\n".encode())
        except OSError as error:
            raise ResultsUnusable(f"{self.path}: {error.strerror or error}") from error
        self._known[result.key] = result

    def _whole(self) -> int:
        """Bytes of the whole lines: a process that is killed may leave half of one."""
        return self.path.read_bytes().rfind(b"\n") + 1

    def _read(self) -> Iterator[RunResult]:
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, ValueError) as error:
            raise ResultsUnusable(f"{self.path}: {error}") from error
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield RunResult.from_line(line)
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines) and line.startswith(_BEGINNING):
                    continue
                raise ResultsUnusable(
                    f"{self.path}, line {number}: is no result of `foredeck eval` ({error}). Name "
                    "another file with --results."
                ) from error
