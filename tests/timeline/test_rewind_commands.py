"""Rewinding as users ask for it: `/foredeck rewind` and `foredeck restore`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from file_agent import FileAgent as Agent
from foredeck.cli.main import main
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandParams


def typed(agent: Agent, arguments: str = "") -> str:
    """What `/foredeck rewind ARGUMENTS` shows."""
    params = CommandParams(session=agent.session, name="rewind", args=arguments)
    return agent.engine.command(params)["text"]


def test_a_preview_then_the_rewinding_then_back(at_work: Agent) -> None:
    listed = typed(at_work).splitlines()[0]
    assert re.fullmatch(r"call    1  \d\d-\d\d \d\d:\d\d  a\.txt, new/b\.txt(  .+)?", listed), (
        listed
    )
    shown = typed(at_work, "1")
    assert shown.startswith("change back  a.txt\ndelete       new/b.txt\n\n/foredeck rewind 1 yes")
    assert "-two\n+one" in typed(at_work, "1 diff")
    assert (at_work.cwd / "a.txt").read_text() == "two\n"
    assert typed(at_work, "1 yes").startswith("2 files brought back.")
    assert (at_work.cwd / "a.txt").read_text() == "one\n"
    assert not (at_work.cwd / "new/b.txt").exists()
    assert typed(at_work, "1") == "2 files are as they were."
    typed(at_work, "undo yes")
    assert (at_work.cwd / "new/b.txt").read_text() == "b\n"


def test_a_persons_change_is_named_and_stays(at_work: Agent) -> None:
    (at_work.cwd / "a.txt").write_text("a person's\n")
    shown = typed(at_work, "1")
    assert "a.txt  (changed since by a person or another program)" in shown
    done = typed(at_work, "1 yes")
    assert "left as it is: a.txt, which somebody else has changed" in done
    assert (at_work.cwd / "a.txt").read_text() == "a person's\n"
    typed(at_work, "1 yes all")
    assert (at_work.cwd / "a.txt").read_text() == "one\n"
    typed(at_work, "undo yes")
    assert (at_work.cwd / "a.txt").read_text() == "a person's\n"


def test_what_cannot_be_asked_says_what_can(at_work: Agent) -> None:
    for arguments in ("x", "1 no", "9", "continue"):
        with pytest.raises(ToolError):
            typed(at_work, arguments)


def test_a_chat_that_goes_back_is_told_that_the_files_have_not(at_work: Agent) -> None:
    at_work.back_to(1)
    call = at_work.answer()
    assert at_work.notices == [
        "The chat has gone back, the files have not: 2 files are not as then. "
        f"/foredeck rewind {call} shows what would change."
    ]
    typed(at_work, f"{call} yes")
    assert (at_work.cwd / "a.txt").read_text() == "one\n"
    at_work.answer()
    assert len(at_work.notices) == 1


def test_a_persons_change_alone_is_no_reason_to_offer_it(at_work: Agent) -> None:
    (at_work.cwd / "a.txt").write_text("a person's\n")
    at_work.answer()
    assert at_work.notices == []


def restore(
    agent: Agent, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    """The exit code and JSON of `foredeck restore`."""
    capsys.readouterr()
    code = main(["restore", agent.session, *arguments, "--json", "--home", str(agent.home)])
    return code, json.loads(capsys.readouterr().out)


def test_from_the_shell(at_work: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = restore(at_work, capsys, "--call", "1", "--dry-run")
    assert code == 0
    assert [file["action"] for file in shown["files"]] == ["write", "delete"]
    path = str(at_work.cwd / "a.txt")
    assert restore(at_work, capsys, "--call", "1", "--path", path)[1]["done"] == [path]
    assert (at_work.cwd / "new/b.txt").exists()
    assert restore(at_work, capsys, "--undo")[1]["done"] == [path]
    (at_work.cwd / "a.txt").write_text("a person's\n")
    code, done = restore(at_work, capsys, "--call", "1")
    assert (code, done["skipped"]) == (1, [path])
    assert restore(at_work, capsys, "--call", "1", "--overwrite")[1]["done"] == [path]
    assert (at_work.cwd / "a.txt").read_text() == "one\n"


def test_asking_for_differences_restores_nothing(
    at_work: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["restore", at_work.session, "--call", "1", "--diff", "--home", str(at_work.home)]
    assert main(words) == 2
    assert "--diff needs --dry-run" in capsys.readouterr().err
    assert (at_work.cwd / "a.txt").read_text() != "one\n"
    assert main([*words, "--dry-run"]) == 0


def test_a_session_without_a_call_is_told_what_to_type(
    at_work: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", at_work.session, "--home", str(at_work.home)]) == 2
    assert f"`foredeck restore {at_work.session} --call " in capsys.readouterr().err


def test_into_another_folder(
    at_work: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "then"
    code, _ = restore(at_work, capsys, "--call", "3", "--to", str(folder))
    assert code == 0
    assert (folder / "a.txt").read_text() == "two\n"
    assert (folder / "new/b.txt").read_text() == "b\n"
    code, done = restore(at_work, capsys, "--call", "1", "--to", str(folder))
    assert code == 1
    assert "is there already" in done["failed"][str(at_work.cwd / "a.txt")]
    assert (at_work.cwd / "a.txt").read_text() == "two\n"


def test_an_unknown_path_is_an_error(at_work: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["restore", "s", "--call", "1", "--path", "/nowhere", "--home", str(at_work.home)])
    assert code == 4
    assert "have not changed /nowhere" in capsys.readouterr().err
