"""A scripted model that does the shipped tasks as their solutions say.

For each of the user's messages it looks around, reads all files, runs the tests, writes what the
solution has, reads that again and runs the tests a last time: what agents do, without a mistake.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck.evaluation.task_folders import EvalTask
from foredeck.model.portions import portions
from foredeck_bench.scripted import ModelRequest, Text, ToolCall
from foredeck_bench.scripted.request import message_text
from foredeck_bench.scripted.steps import StepResult

SOLUTIONS = Path(__file__).parent / "solutions"
"""A folder for each task, in it one for each message of the user's: files as they shall be, and in
`!` a command line that makes others."""
COMMANDS = "!"
MANY = 15
"""From how many files on each is read by a call of its own."""
_LOOK, _TESTS = "ls -R", "python3 -m unittest"


def solver(tasks: Sequence[EvalTask]) -> Callable[[ModelRequest], StepResult]:
    """Answers every request of runs of these tasks, in any order: what comes next follows from the
    newest message, since older ones may have left the prompt."""
    after: dict[str, StepResult] = {}
    openings: dict[str, StepResult] = {}
    for task in tasks:
        for number, prompt in enumerate(task.prompts, 1):
            replies = list(_replies(task, number))
            openings[prompt.strip()] = replies[0]
            for at, reply in enumerate(replies[1:]):
                after[_id(task, number, at)] = reply

    def answer(request: ModelRequest) -> StepResult:
        ids = _answered(request.messages[-1])
        if ids:
            return after[ids[0].rpartition("_")[0]]
        said = message_text(request.messages[-1])
        found = (reply for prompt, reply in openings.items() if prompt in said)
        return next(found, Text("This is no task that I know."))

    return answer


def _answered(message: dict[str, Any]) -> list[str]:
    """The ids of the tool calls that a message has the results of."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [str(block["tool_use_id"]) for block in blocks if block.get("type") == "tool_result"]


def _id(task: EvalTask, number: int, at: int) -> str:
    """Of the calls of one reply."""
    return f"{task.name}_{number}_{at}"


def _replies(task: EvalTask, number: int) -> Iterator[StepResult]:
    """What the model says after a message of the user's, each call under its id."""
    for at, calls in enumerate(_calls(task, number)):
        name = _id(task, number, at)
        yield [replace(call, id=f"{name}_{place}") for place, call in enumerate(calls)]
    yield Text("That is done.")


def _calls(task: EvalTask, number: int) -> Iterator[list[ToolCall]]:
    folder = SOLUTIONS / task.name / str(number)
    yield [_bash(_LOOK)]
    shown = _shown(task)
    at_once = 1 if len(shown) >= MANY else MANY
    yield from ([_read(name) for name in group] for group in portions(shown, at_once))
    yield [_bash(_TESTS)]
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = file.read_text(encoding="utf-8")
        if file.name == COMMANDS:
            yield [_bash(text)]
            continue
        name = file.relative_to(folder).as_posix()
        yield [ToolCall("write", {"path": name, "content": text})]
        yield [_read(name)]
    yield [_bash(_TESTS)]


def _shown(task: EvalTask) -> list[str]:
    """The files that the agent finds, those that setting the task up makes included."""
    with tempfile.TemporaryDirectory(prefix="foredeck-eval-files-") as folder:
        root = Path(folder) / "work"
        shutil.copytree(task.folder / "files", root, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["sh", "-c", task.setup or "true"], cwd=root, check=True)
        there = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return [path.relative_to(root).as_posix() for path in there]


def _read(path: str) -> ToolCall:
    return ToolCall("read", {"path": path})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})
