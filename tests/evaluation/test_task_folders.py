"""Tasks as folders, and those that ship."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from foredeck.errors import ConfigError
from foredeck_lab.evaluation.evaluating import ScratchRun, run_command
from foredeck_lab.evaluation.tasks import LONG, SHIPPED, EvalTask, load_tasks

SOLUTIONS = Path(__file__).parent / "solutions"
"""A folder for each task, in it one for each message of the user's: files as they shall be, and in
`!` a command line that makes others."""
COMMANDS = "!"

TASK = 'prompts = ["Do it."]\ncheck = "test -f done"\n'


def _task(folder: Path, text: str) -> Path:
    (folder / "one" / "files").mkdir(parents=True)
    (folder / "one" / "task.toml").write_text(text)
    return folder


def test_a_folder_is_a_task_or_holds_them(tmp_path: Path) -> None:
    folder = _task(tmp_path, TASK)
    (by_folder,), (itself,) = load_tasks(folder), load_tasks(folder / "one")
    assert by_folder == itself
    assert (itself.name, itself.prompts, itself.timeout_s) == ("one", ("Do it.",), 600)


def test_what_a_task_is_changes_its_digest(tmp_path: Path) -> None:
    (task,) = load_tasks(_task(tmp_path, TASK))
    before = task.digest
    (task.folder / "files" / "new").write_text("x")
    assert task.digest != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompts = []\ncheck = 'true'", "prompts must be a list"),
        ("prompts = ['x']", "check must be a command line"),
        (TASK + "timeout_s = 0", "timeout_s must be seconds"),
        (TASK + "prompt = 'x'", "unknown: prompt; known: about"),
        ("prompts = [", "task.toml"),
    ],
)
def test_a_task_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_tasks(_task(tmp_path, text))


def test_where_no_task_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no task"):
        load_tasks(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        load_tasks(tmp_path / "none")


def _checked(task: EvalTask, root: Path, *, solved: bool, spoiled: str = "") -> int | None:
    """What the check ends with; `spoiled` is a command line after the solution."""
    scratch = ScratchRun(root)
    scratch.prepare(task, root / "nobody")
    lines = [task.setup] if task.setup else []
    for step in sorted((SOLUTIONS / task.name).iterdir()) if solved else ():
        if (step / COMMANDS).is_file():
            lines.append((step / COMMANDS).read_text())
        shutil.copytree(
            step, scratch.work, dirs_exist_ok=True, ignore=shutil.ignore_patterns(COMMANDS)
        )
    if spoiled:
        lines.append(spoiled)
    for line in lines:
        assert run_command(("sh", "-c", line), scratch.work, scratch.environment({}), 60).code == 0
    scratch.lay_check(task)
    environment = scratch.environment({})
    return run_command(("sh", "-c", task.check), scratch.work, environment, 60).code


ALL = [*load_tasks(SHIPPED), *load_tasks(LONG)]


def test_ten_short_and_four_long_tasks_ship() -> None:
    assert (len(load_tasks(SHIPPED)), len(load_tasks(LONG))) == (10, 4)


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)
def test_a_shipped_task_can_be_done_and_is_not_done_yet(task: EvalTask, tmp_path: Path) -> None:
    assert _checked(task, tmp_path / "untouched", solved=False) not in (0, None)
    assert _checked(task, tmp_path / "solved", solved=True) == 0


SPOILED = {
    "broken-modules": "sed -i 's/ if part//' tools/parsed_b.py",
    "five-orders": "sed -i 's/E648/E649/' answer.json",
    "fleet-limits": "sed -i 's/count >= /count > /' fleet/tug.py",
    "thirty-files": "sed -i 's/^keys.py: ./keys.py: 9/' CHANGES.md",
}


@pytest.mark.parametrize("task", load_tasks(LONG), ids=lambda task: task.name)
def test_a_long_task_with_one_mistake_left_fails(task: EvalTask, tmp_path: Path) -> None:
    assert _checked(task, tmp_path, solved=True, spoiled=SPOILED[task.name]) not in (0, None)
