"""One evaluation with the scripted model on loopback."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.eval_command import checkout, run_evaluation
from foredeck.cli.registry import Command
from foredeck.errors import CommandRefused
from foredeck.evaluation.evaluating import EvalPlan
from foredeck.evaluation.task_folders import LONG, SHIPPED, EvalTask, load_tasks
from foredeck.store.protocol import portions
from foredeck_bench.scripted import ModelRequest, ScriptedModel, Text, ToolCall, write_agent_dir
from foredeck_bench.scripted.agent_dir import MODEL, PROVIDER
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi
from foredeck_bench.twin.request import message_text
from foredeck_bench.twin.steps import StepResult

PATIENT = ("deadline_ms=30000", "prepare_ms=10000", "opening_ms=10000")
"""What a conversation costs must not depend on how busy this machine is."""
NOTE = (
    "A scripted model answered, which knows the solutions: these figures say what the same "
    "conversation costs with and without foredeck, and nothing of what a model can do."
)


def evaluate_scripted(
    rounds: int, file: Path, names: list[str], settings: tuple[str, ...], *, as_json: bool
) -> int:
    """Run the shipped tasks (`names`: only these) through the Pi of this checkout. The exit code
    is 1 where a task that the model solves did not pass its check."""
    install = checkout_pi(checkout(), VERSIONS[0])
    if install is None:
        raise CommandRefused(f"Pi {VERSIONS[0]} is not installed here: run scripts/setup.")
    tasks = _chosen(names)
    with tempfile.TemporaryDirectory(prefix="foredeck-eval-model-") as folder:
        with ScriptedModel(solver(tasks)) as model:
            agent_dir = write_agent_dir(Path(folder), model.url)
            plan = EvalPlan(
                tasks,
                f"{PROVIDER}/{MODEL}",
                rounds,
                install.command,
                checkout(),
                agent_dir,
                (*PATIENT, *settings),
            )
            code = run_evaluation(plan, file, as_json=as_json, said=NOTE)
        return max(code, 1 if model.violations else 0)


def _chosen(names: list[str]) -> list[EvalTask]:
    short, long = load_tasks(SHIPPED), load_tasks(LONG)
    known = {task.name for task in [*short, *long]}
    unknown = sorted(set(names) - known)
    if unknown:
        raise CommandRefused(f"no task {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return [task for task in [*short, *long] if task.name in names] if names else short


# The command


def _run(args: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="foredeck-eval-results-") as folder:
        file = Path(args.results) if args.results else Path(folder) / "results.jsonl"
        return evaluate_scripted(args.rounds, file, args.only, tuple(args.set), as_json=args.json)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=1,
        help="how often each task is done by each side (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        metavar="TASK",
        action="append",
        default=[],
        help="only this task of the shipped ones, which may be a long one; may be repeated",
    )
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="go on from these results, and keep them (default: they are thrown away)",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a configuration key for foredeck's side; may be repeated",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run `foredeck eval` on the shipped tasks with a scripted model on loopback, which knows\n"
        "the solutions: whether the tasks can be passed, and what the same conversation costs\n"
        "with and without foredeck. It says nothing of what a model can do. Exit code 1 where a\n"
        "provider would have refused a prompt."
    ),
    example="foredeck bench eval --only look-back --json",
    configure=_configure,
    run=_run,
)


# The scripted solver


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
        ids = _answered(request.newest)
        if ids:
            return after[ids[0].rpartition("_")[0]]
        said = message_text(request.newest)
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
