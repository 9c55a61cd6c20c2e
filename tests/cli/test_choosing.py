"""A session that is not named is chosen from a list at a terminal, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_screen import Screen
from stored_session import SESSION

from commands import Foredeck

COMMANDS = {
    "show --sets": f"session {SESSION}, call 5 of 5",
    "trace three": f"'three' in session {SESSION}",
    "observations": "No notes have been taken",
    "export -": f'"session":"{SESSION}"',
    "carry --to pi --dry-run": SESSION,
    "restore --call 1 --dry-run": f"what the tools of session {SESSION}",
    "forget --dry-run": f"Session {SESSION}:",
}
"""What shows that the session was meant."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_session_is_chosen_by_its_number(line: str, home: Path) -> None:
    screen = Screen(home, line.split(), {"PAGER": "cat"})
    assert " 1  0199cccc" in screen.read_until("another id:")
    screen.type(b"1\n")
    text, _ = screen.end()
    assert COMMANDS[line] in " ".join(text.partition("another id:")[2].split())


@pytest.mark.parametrize(
    ("typed", "said", "code"),
    [
        (b"0199\n", "call 5 of 5", 0),
        (b"7\n", "no session '7' is stored", 4),
        (b"\n", "no session was chosen", 2),
        (b"\x04", "no session was chosen", 2),
        (b"\x03", "foredeck: interrupted", 130),
    ],
)
def test_or_by_another_id_or_not_at_all(typed: bytes, said: str, code: int, home: Path) -> None:
    screen = Screen(home, ["show", "--sets"], {})
    screen.read_until("another id:")
    screen.type(typed)
    text, ended = screen.end()
    assert (said in text, ended) == (True, code)


@pytest.mark.parametrize("line", COMMANDS)
def test_elsewhere_the_error_says_how_to_get_an_id(
    line: str, home: Path, foredeck: Foredeck
) -> None:
    assert "`foredeck sessions` lists them" in foredeck(home, *line.split(), code=2).replace(
        ".venv/bin/", ""
    )


def test_without_a_store_the_error_says_what_fills_it(tmp_path: Path, foredeck: Foredeck) -> None:
    assert "nothing is stored yet" in foredeck(tmp_path, "show", code=3)
