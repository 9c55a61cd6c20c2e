"""Command lines as steps, and the commands of tool calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.commands import command_of, programs, steps
from foredeck.worklog.done import failed_run


def test_steps_are_split_where_the_shell_would() -> None:
    command = (
        "cd app && FOO=1 npm run -s 'a && b' 2>&1 | tail -3; cat <<'EOF' > x.py\n"
        "import os; os.system('rm')\nEOF\ngit -C sub log --oneline"
    )

    assert [(step.program, step.words[-1]) for step in steps(command)] == [
        ("cd", "app"),
        ("npm run", "'a && b'"),
        ("cat", "x.py"),
        ("git log", "--oneline"),
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("bash", {"command": "ls"}, "ls"),
        ("Bash", {"command": " "}, None),
        ("shell", {"command": ["bash", "-lc", "npm test"]}, "npm test"),
        ("shell", {"command": ["git", "log"]}, "git log"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("read", {"command": "ls"}, None),
        ("bash", {"command": 3}, None),
    ],
)
def test_command_of(tool: str, arguments: dict[str, object], expected: str | None) -> None:
    assert command_of(tool, arguments) == expected


SHELL = st.text(alphabet="ab -/.'\"<>|&;\\\n$()#=EOF", max_size=60)


@given(SHELL)
def test_any_text_is_a_command(command: str) -> None:
    for step in steps(command):
        assert step.words
        assert step.program or step.words[0].endswith("/")
    programs(command)
    assert failed_run("bash", {"command": command}) != ""
