"""A scripted model that does the shipped tasks as their solutions say.

For each of the user's messages it looks around, reads all files, runs the tests, writes what the
solution has, reads that again and runs the tests a last time: what agents do, without a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from foredeck.evaluation.task_folders import EvalTask
from foredeck_bench.scripted import ModelRequest, Text, ToolCall
from foredeck_bench.scripted.steps import StepResult

SOLUTIONS = Path(__file__).parent / "solutions"
"""A folder for each task, in it one for each message of the user's: files as they shall be, and in
`!` a command line that makes others."""
COMMANDS = "!"
_LOOK, _TESTS = "ls -R", "python3 -m unittest"


def solver(tasks: Sequence[EvalTask]) -> Callable[[ModelRequest], StepResult]:
    """Answers every request of runs of these tasks, in any order: it goes by what the request
    says."""
    replies = {task.prompts[0].strip(): list(_replies(task)) for task in tasks}

    def answer(request: ModelRequest) -> StepResult:
        said = request.text
        known = next((found for prompt, found in replies.items() if prompt in said), None)
        if known is None:
            return Text("This is no task that I know.")
        done = sum(message.get("role") == "assistant" for message in request.messages)
        return known[done] if done < len(known) else Text("All is done.")

    return answer


def _replies(task: EvalTask) -> Iterator[StepResult]:
    for number in range(1, len(task.prompts) + 1):
        folder = SOLUTIONS / task.name / str(number)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        yield _bash(_LOOK)
        yield [_read(name) for name in _shown(task)]
        yield _bash(_TESTS)
        for file in files:
            text = file.read_text(encoding="utf-8")
            if file.name == COMMANDS:
                yield _bash(text)
                continue
            name = file.relative_to(folder).as_posix()
            yield ToolCall("write", {"path": name, "content": text})
            yield _read(name)
        yield _bash(_TESTS)
        yield Text("That is done.")


def _shown(task: EvalTask) -> list[str]:
    """The files that the agent finds: what sets a task up is gone by then, and has made the table
    or log that the prompt names."""
    root = task.folder / "files"
    there = [path for path in sorted(root.rglob("*")) if path.is_file()]
    names = [path.relative_to(root).as_posix() for path in there]
    made = re.findall(r"\b\w+\.(?:csv|log)\b", task.prompts[0])
    return [*(name for name in names if name not in task.setup), *made]


def _read(path: str) -> ToolCall:
    return ToolCall("read", {"path": path})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})
