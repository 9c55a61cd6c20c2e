"""A conversation of any length about the sample repository, the same on every host.

Round after round the model looks at a module, its neighbours and the tests, changes a line, and
runs the tests; what it says names what it has read, some of it long before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foredeck_bench.demo.run import SAMPLE
from foredeck_bench.demo.story import TESTS
from foredeck_bench.scripted import Text, ToolCall
from foredeck_bench.scripted.steps import StepResult

_FUNCTION = re.compile(r"^( *)def (\w+)\(.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Round:
    """What the user says, and the model's replies to it."""

    prompt: str
    replies: tuple[StepResult, ...]


def rounds(count: int) -> list[Round]:
    """So many rounds, of six model calls each."""
    modules = sorted(path for path in (SAMPLE / "stocktake").glob("*.py") if _names(path))
    return [
        Round(_prompt(modules, number), tuple(_replies(modules, number))) for number in range(count)
    ]


def _names(path: Path) -> list[str]:
    return [match[2] for match in _FUNCTION.finditer(path.read_text(encoding="utf-8"))]


def _prompt(modules: list[Path], number: int) -> str:
    module = modules[number % len(modules)]
    return f"Round {number + 1}: have a look at {module.name}, and note in it that you did."


def _replies(modules: list[Path], number: int) -> Iterator[StepResult]:
    module = modules[number % len(modules)]
    neighbour = modules[(number + 1) % len(modules)]
    name, long_ago = _names(module)[0], _names(modules[(number - 3) % len(modules)])[-1]
    yield [_read(module), _read(neighbour)]
    yield _bash(f"grep -rn '{name}' --include='*.py' .")
    line = next(match[0] for match in _FUNCTION.finditer(module.read_text(encoding="utf-8")))
    indent = line[: len(line) - len(line.lstrip())]
    # The line stands there once in every round: the note goes above it.
    edit = {"oldText": line, "newText": f"{indent}# Looked at in round {number + 1}.\n{line}"}
    yield ToolCall("edit", {"path": _place(module), "edits": [edit]})
    yield _bash(_tests(number))
    yield _read(module)
    yield Text(f"{name} is noted. {long_ago} stays as it was.")


def _tests(number: int) -> str:
    """Run them. How long they took differs from round to round, as it does, but from host to host
    it must not: a result that is the same as an earlier one costs a line."""
    return f"{TESTS} -v 2>&1 | sed 's/ in [0-9.]*s$/ in 0.{number:03}s/'"


def _read(path: Path) -> ToolCall:
    return ToolCall("read", {"path": _place(path)})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


def _place(path: Path) -> str:
    return path.relative_to(SAMPLE).as_posix()
