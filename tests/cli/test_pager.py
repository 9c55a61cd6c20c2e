"""Long texts on a terminal go through the user's pager, and nothing else does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from command_screen import FOREDECK, Screen

from processes import run_program

MARKS = "sed s/^/|/"
"""A pager whose screen tells what went through it."""
LONG = ["show", "0199"]
WAITS = """
import signal, sys
left = iter(["still here"])
signal.signal(signal.SIGINT, lambda *_: print(next(left, None) or sys.exit(), flush=True))
print("ready", flush=True)
while True:
    signal.pause()
"""
"""A pager that Ctrl-C does not end, as less; a second one does."""


def shown(home: Path, command: list[str], **environment: str) -> tuple[str, int]:
    return Screen(home, command, environment).end()


def is_paged(text: str) -> bool:
    return all(line.startswith("|") for line in text.splitlines())


@pytest.mark.parametrize("command", [LONG, ["cat", "/repo/src/a.txt", "--at", "1"], ["--help"]])
def test_a_long_text_goes_through_the_pager(home: Path, command: list[str]) -> None:
    text, code = shown(home, command, PAGER=MARKS)
    assert (is_paged(text), code) == (True, 0)


def test_colours_go_through_the_pager_but_not_with_no_color(home: Path) -> None:
    assert "\x1b[1m" in shown(home, LONG, PAGER=MARKS)[0]
    assert "\x1b" not in shown(home, LONG, PAGER=MARKS, NO_COLOR="1")[0]


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        (["sessions"], {"PAGER": MARKS}),
        ([*LONG, "--json"], {"PAGER": MARKS}),
        (LONG, {"PAGER": MARKS, "TERM": "dumb"}),
        (LONG, {"PAGER": ""}),
        (LONG, {"PAGER": "cat"}),
        (LONG, {"PAGER": "no-such-pager -x"}),
        (LONG, {"PAGER": "'"}),
    ],
)
def test_nothing_else_does(home: Path, command: list[str], environment: dict[str, str]) -> None:
    text, code = shown(home, command, **environment)
    assert code == 0
    assert text
    assert "\n|" not in text


def test_nothing_is_paged_in_a_pipe(home: Path) -> None:
    environment = {**os.environ, "PAGER": MARKS, "FOREDECK_HOME": str(home)}
    text = run_program(FOREDECK, *LONG, env=environment, check=True).stdout
    assert "--- 1 user" in text
    assert "\n|" not in text


def test_a_pager_that_is_left_early_ends_the_command_quietly(home: Path) -> None:
    text, code = shown(home, LONG, PAGER="head -n 2")
    assert (len(text.splitlines()), code) == (2, 0)


def test_ctrl_c_is_the_pagers(home: Path, tmp_path: Path) -> None:
    (tmp_path / "pager.py").write_text(WAITS)
    screen = Screen(home, LONG, {"PAGER": f"{sys.executable} {tmp_path / 'pager.py'}"})
    screen.read_until("ready")
    screen.type(b"\x03")
    screen.read_until("still here")
    screen.type(b"\x03")
    text, code = screen.end()
    assert ("foredeck:" in text, code) == (False, 0)
