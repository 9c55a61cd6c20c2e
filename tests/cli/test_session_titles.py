"""What sessions are called: Pi's name, a command, the first prompt; ids and projects in short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.lookup.sessions import project_folder
from foredeck.model.figures import lasted
from foredeck.names import short_ids


def message(text: str, id: str = "e1") -> dict[str, Any]:
    return {"type": "message", "id": id, "message": {"role": "user", "content": text}}


ANSWER = {
    "type": "message",
    "id": "e2",
    "parentId": "e1",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
}


def sessions_of(tmp_path: Path, foredeck: Foredeck, *entries: dict[str, Any]) -> str:
    """The table of one session of Pi's, with these entries before the answer."""
    lines = [{"type": "session", "id": "0199aaaa-1", "cwd": "/w/app/.worktrees/fix"}]
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *entries, ANSWER]))
    home = str(tmp_path / "home")
    foredeck("ingest", file, "--home", home)
    return foredeck("sessions", "--home", home)


def test_a_session_is_called_by_its_first_prompt_cut_to_the_width(
    tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = sessions_of(tmp_path, foredeck, message("Mend the\nlogin " + "page " * 50))
    assert "  app      Mend the login page pag…" in text
    assert max(map(len, text.splitlines())) <= 80


TITLES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the name given in Pi goes before the prompt": (
        [
            {"type": "session_info", "name": "Old name"},
            {"type": "session_info", "name": "Login page"},
            message("Mend it"),
        ],
        "Login page",
    ),
    "a command of Claude Code is shown as it was typed": (
        [
            message(
                "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n"
                "<command-args>the login</command-args>"
            )
        ],
        "/plan the login",
    ),
    "what an agent put there makes no title": (
        [
            message("<environment_context>\n<cwd>/w</cwd>\n</environment_context>"),
            message("<command-name>/clear</command-name>\n<command-args></command-args>", "e3"),
            message("<local-command-stdout>Cleared.</local-command-stdout>", "e4"),
            message("<system-reminder>\nMonday.\n</system-reminder>\nMove the button", "e5"),
        ],
        "Move the button",
    ),
    "a later answer may be the first that was asked for": (
        [*[message("/help"), ANSWER] * 5, message("Move the button")],
        "Move the button",
    ),
    **{
        f"{first} is no title": (
            [message(first), message("Write about geese", "e3")],
            "Write about geese",
        )
        for first in ("hello", "clear", "Hi!", "/mode")
    },
    "an accepted plan is called by its heading": (
        [message("Implement the following plan:\n\n# Plan: Switch the keys\n\nFirst")],
        "Plan: Switch the keys First",
    ),
    "where nothing was asked the first command is the title": (
        [
            message("<system-reminder>Monday.</system-reminder>"),
            message("/model opus", "e3"),
            message("/clear", "e4"),
        ],
        "/model opus",
    ),
}


@pytest.mark.parametrize("case", TITLES)
def test_what_a_session_is_called(
    case: str, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    entries, title = TITLES[case]
    assert sessions_of(tmp_path, foredeck, *entries).splitlines()[3].endswith(f"  {title}")


def test_ids_are_as_short_as_tells_them_apart() -> None:
    assert short_ids(["0199aaaa-1111", "0199aaaa-1122", "0199bbbb-1", "x"]) == {
        "0199aaaa-1111": "0199aaaa-111",
        "0199aaaa-1122": "0199aaaa-112",
        "0199bbbb-1": "0199bbbb",
        "x": "x",
    }


def test_a_worktree_belongs_to_the_project_it_was_made_from(tmp_path: Path) -> None:
    assert project_folder("/w/app/.claude/worktrees/fix/src") == "/w/app"
    assert project_folder("/w/app") == "/w/app"
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: /w/app/.git/worktrees/elsewhere\n")
    assert project_folder(str(tree)) == "/w/app"


@pytest.mark.parametrize(
    ("duration_ms", "said"),
    [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (22_320_000, "6h 12m"), (90_000_000, "1d 1h")],
)
def test_durations_have_their_two_largest_units(duration_ms: int, said: str) -> None:
    assert lasted(duration_ms) == said
