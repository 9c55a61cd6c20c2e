"""The command line that an engine in Pi names, and puts on the PATH."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from foredeck.engine.commands import put_on_path
from foredeck.errors import ToolError
from foredeck.home import typed_command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder in which Pi has set this engine up, in a home folder of its own."""
    home = tmp_path / "state"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "foredeck").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(home / "engines" / "1" / "bin" / "python"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / ".local" / "bin"))
    return home


def test_it_is_called_by_its_name_once_that_is_on_the_path(home: Path) -> None:
    assert typed_command(home) == "~/state/bin/foredeck"
    put = home.parent / ".local" / "bin" / "foredeck"
    for _ in range(2):
        assert put_on_path(home) == f"{put} runs foredeck's command line."
    assert put.resolve() == home / "bin" / "foredeck"
    assert typed_command(home) == "foredeck"


def test_a_folder_that_is_not_on_the_path_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert "bin to your PATH" in put_on_path(home)


def test_what_is_not_foredecks_is_never_replaced(home: Path) -> None:
    theirs = home.parent / ".local" / "bin" / "foredeck"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(ToolError, match="is there already"):
        put_on_path(home)
    assert theirs.read_text() == "theirs"
    (home / "bin" / "foredeck").unlink()
    with pytest.raises(ToolError, match="/foredeck setup first"):
        put_on_path(home)


def test_a_folder_that_cannot_be_made_is_named(home: Path) -> None:
    (home.parent / ".local").write_text("no folder")
    with pytest.raises(ToolError, match="bin/foredeck cannot be made"):
        put_on_path(home)


def test_on_windows_it_is_a_copy_in_a_folder_that_is_on_the_path_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "bin" / "foredeck").rename(home / "bin" / "foredeck.cmd")
    (home / "bin" / "foredeck.cmd").write_text("run")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(home.parent / "Local"))
    put = home.parent / "Local" / "Microsoft" / "WindowsApps" / "foredeck.cmd"
    for _ in range(2):
        assert put_on_path(home).startswith(str(put))
    assert put.read_text() == "run"
    put.write_text("theirs")
    with pytest.raises(ToolError, match="is there already"):
        put_on_path(home)
