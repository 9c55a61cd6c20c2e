"""Command lines as steps, and the commands of tool calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.commands import command_of, programs, steps
from foredeck.worklog import failed_run


def test_steps_are_split_where_the_shell_would() -> None:
    command = (
        "cd app && FOO=1 npm run -s 'a && b' 2>&1 | tail -3; cat <<'EOF' > x.py\n"
        "import os; os.system('rm')\nEOF\ngit -C sub log --oneline"
    )

    assert [(step.program, step.words[-1]) for step in steps(command)] == [
        ("cd", "app"),
        ("npm run", "'a && b'"),
        ("cat", "cat"),
        ("git log", "--oneline"),
    ]
    _, tests, written, _ = steps(command)
    assert tests.is_piped
    assert tests.redirections == (("2>&", "1"),)
    assert written.redirections == (("<<", "'EOF'"), (">", "x.py"))
    assert written.heredoc.text == "import os; os.system('rm')\n"


def test_a_here_document_ends_at_its_mark_alone() -> None:
    [tabs, here] = steps("cat <<-EOF\n\ta\n\tEOF\n cat <<< EOF")
    [spaces] = steps("cat <<'EOF'\n$a\n EOF\nEOF")
    [expanded] = steps("cat <<EOF\n$a\nEOF")
    [unended] = steps("cat <<EOF\na; ls")

    assert tabs.heredoc.text == "a\n"
    assert here.heredoc is None
    assert here.redirections == (("<<<", "EOF"),)
    assert spaces.heredoc.text == "$a\n EOF\n"
    assert expanded.heredoc.text is None
    assert unended.heredoc is None


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
