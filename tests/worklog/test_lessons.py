"""Which failing command is answered with which form that worked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.commands import command_of, programs, steps
from foredeck.worklog.lessons import (
    Lesson,
    Run,
    SessionLessons,
    acts,
    as_typed,
    complaint,
    worked_as,
)

MINUTE = 60_000


def ran(*runs: tuple[str, str, bool], session: str = "s", start_ms: int = 0) -> list[Lesson]:
    """What a session learns from commands, one a minute: command, output, whether it failed."""
    learning, found = SessionLessons(), []
    for number, (command, output, failed) in enumerate(runs):
        found += learning.take(Run(session, start_ms + number * MINUTE, command, output, failed))
    return found


def failing(command: str, output: str) -> Run:
    """A failure of a later session."""
    return Run("later", 10_000 * MINUTE, command, output, failed=True)


@pytest.mark.parametrize(
    ("failed", "said", "worked", "again", "said_again", "expected"),
    [
        pytest.param(
            "gh pr diff 88 --stat",
            "unknown flag: --stat",
            "gh pr diff 88 --name-only 2>&1 | head -20",
            "gh pr diff 104 --stat",
            "unknown flag: --stat",
            "gh pr diff 88 --name-only",
            id="an option",
        ),
        pytest.param(
            "pytest -q tests/a.py",
            "bash: line 1: pytest: command not found",
            ".venv/bin/pytest -q tests/a.py",
            "pytest tests/a.py -x",
            "bash: line 1: pytest: command not found",
            ".venv/bin/pytest -q tests/a.py",
            id="a program",
        ),
        pytest.param(
            "tsc --noEmit -p .",
            "sh: 1: tsc: not found",
            "npx tsc --noEmit -p .",
            "tsc --noEmit",
            "sh: 1: tsc: not found",
            "npx tsc --noEmit -p .",
            id="a program that another runs",
        ),
        pytest.param(
            "go test ./integration -run TestA -v",
            "package x/integration: build constraints exclude all Go files in /x/integration",
            "go test -tags=integration ./integration -run TestA -v | tail -40",
            "go test -v ./integration -run TestB",
            "package x/integration: build constraints exclude all Go files in /x/integration",
            "go test -tags=integration ./integration -run TestA -v",
            id="a selection",
        ),
        pytest.param(
            "grep -rn foo --include=*.go .",
            "(eval):1: no matches found: --include=*.go",
            'grep -rn foo --include="*.go" .',
            'grep -rn "some words" internal/ --include=*.go',
            "(eval):1: no matches found: --include=*.go",
            'grep -rn foo --include="*.go" .',
            id="quoting",
        ),
        pytest.param(
            "gh api repos/o/r/pulls/112/comments/2734 --jq .body",
            "gh: Not Found (HTTP 404)",
            "gh api 'repos/o/r/pulls/112/comments?per_page=100' --jq '.[] | select(.id == 2734)'",
            "gh api repos/o/r/pulls/141/comments/2761",
            "gh: Not Found (HTTP 404)",
            "gh api 'repos/o/r/pulls/112/comments?per_page=100' --jq '.[] | select(.id == 2734)'",
            id="an address",
        ),
        pytest.param(
            "cargo test --features fuse",
            "error: could not find `Cargo.toml` in `/src/app` or any parent directory",
            "cd desktop/src-tauri && cargo test --features fuse",
            "cargo test --features fuse",
            "error: could not find `Cargo.toml` in `/src/app` or any parent directory",
            "cd desktop/src-tauri && cargo test --features fuse",
            id="a folder",
        ),
    ],
)
def test_a_form_that_worked_answers_the_same_failure(
    failed: str, said: str, worked: str, again: str, said_again: str, expected: str
) -> None:
    lessons = ran((failed, said, True), (worked, "done", False))

    found = worked_as(failing(again, said_again), lessons)

    assert found is not None
    assert as_typed(found) == expected


@pytest.mark.parametrize(
    ("failed", "said", "worked"),
    [
        pytest.param("pytest -q", "1 failed, 3 passed in 0.2s", "pytest -q -x", id="tests fail"),
        pytest.param("go build ./a", "a/b.go:3:1: undefined: x", "go build ./...", id="code"),
        pytest.param("npm test -s", "Missing script: test", "npm test -s", id="the same form"),
        pytest.param("x -q", "unknown option -q", "x --help", id="help"),
        pytest.param("x -q", "unknown option -q", "x -v 2>/dev/null", id="what hides its failure"),
        pytest.param("x -q || true", "unknown option -q", "x -v", id="a failure reckoned with"),
        pytest.param("x -q", "unknown option -q", "y -v", id="another program"),
        pytest.param(
            "go test ./cli/session -run TestA",
            "stat /src/cli/cli/session: directory not found",
            "go test -run TestA",
            id="whatever is in this folder",
        ),
        pytest.param(
            "gh api repos/o/r/comments/1",
            "gh: Not Found (HTTP 404)",
            "gh api repos/o/r/reviews",
            id="another object",
        ),
        pytest.param(
            "grep foo a.py b.py c.py -n",
            "grep: a.py: No such file or directory",
            "grep bar x.py",
            id="little in common",
        ),
    ],
)
def test_what_is_not_the_same_act_in_another_form_teaches_nothing(
    failed: str, said: str, worked: str
) -> None:
    assert ran((failed, said, True), (worked, "done", False)) == []


def test_what_worked_long_after_teaches_nothing() -> None:
    between = [("ls -la", "a", False)] * 8

    assert ran(("x -q", "unknown option -q", True), *between, ("x -v", "done", False)) == []


def test_another_complaint_is_not_answered() -> None:
    lessons = ran(("x -q a", "unknown option -q", True), ("x -v a", "done", False))

    assert worked_as(failing("x -q a", "x: a: permission denied"), lessons) is None


def test_the_form_that_worked_is_no_answer_to_its_own_failure() -> None:
    lessons = ran(("x -q a", "unknown option -q", True), ("x -v a", "done", False))

    assert worked_as(failing("x -v a", "unknown option -q"), lessons) is None


@pytest.mark.parametrize(
    ("output", "failed", "key"),
    [
        ("sed: -e expression #1: unknown option to `s'", True, None),
        ("unknown flag: --stat\nUsage: gh pr diff", False, "unknown flag: --stat"),
        ('return fmt.Errorf("not a git repository: %w", err)', False, None),
        ("a.ts:3:1 - error TS2304: Cannot find name 'x'", True, None),
        ("x" * 2000 + "\nunknown flag: --stat", False, None),
        ("zsh:1: command not found: staticcheck", True, "zsh:0: command not found: staticcheck"),
        (
            "go: cannot write multiple packages to non-directory /tmp/x",
            True,
            "go: cannot write multiple packages to non-directory /",
        ),
        ("cat: /tmp/a17: No such file or directory", True, "cat: /: No such file or directory"),
    ],
)
def test_complaints(output: str, failed: bool, key: str | None) -> None:
    found = complaint(output, failed=failed)

    if key is None:
        assert found is None or "unknown option" in found.key
    else:
        assert found is not None
        assert found.key == key


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
    assert acts(command) == acts(command)
    programs(command)


@given(st.lists(st.tuples(SHELL, st.sampled_from(["unknown option -q", "ok", ""]), st.booleans())))
def test_lessons_follow_from_the_runs_alone(runs: list[tuple[str, str, bool]]) -> None:
    lessons = ran(*runs)

    assert lessons == ran(*runs)
    for lesson in lessons:
        assert lesson.text
        assert worked_as(failing(lesson.text, "unknown option -q"), [lesson]) is None
