"""`foredeck export`, `import` and `name`."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stored_session import SECOND, SESSION, copy_home

from cli.conftest import Foredeck
from foredeck.cli.main import main


@pytest.fixture
def exported(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "session.jsonl"
    assert main(["export", SESSION[:8], str(file), "--home", str(home)]) == 0
    capsys.readouterr()
    return file


def shown(capsys: pytest.CaptureFixture[str], home: Path, session: str = SESSION) -> Any:
    assert main(["show", session, "--json", "--home", str(home)]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_round_trip_is_equal_and_a_second_import_a_no_op(
    home: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    other = tmp_path / "state" / "other"
    assert main(["import", str(exported), "--home", str(other), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["session"] == SESSION
    assert summary["new_documents"] == summary["documents"] > 20
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert shown(capsys, other) == shown(capsys, home)
    again = tmp_path / "again.jsonl"
    assert main(["export", SESSION, str(again), "--home", str(other)]) == 0
    assert again.read_bytes() == exported.read_bytes()
    capsys.readouterr()
    assert main(["import", str(exported), "--home", str(other)]) == 0
    assert "is here already, and identical" in capsys.readouterr().out


def test_fresh_ids_stand_beside_the_old_ones(
    home: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = copy_home(home, tmp_path / "home")
    assert main(["import", str(exported), "--as-new", "--home", str(both), "--json"]) == 0
    session = json.loads(capsys.readouterr().out)["session"]
    assert session != SESSION
    assert shown(capsys, both, session) == shown(capsys, both)
    assert main(["sessions", "--json", "--home", str(both)]) == 0
    assert len(json.loads(capsys.readouterr().out)["sessions"]) == 2


def test_a_file_that_was_tampered_with_is_exit_code_5_and_stores_nothing(
    exported: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    exported.write_text(exported.read_text().replace("three", "threw"))
    other = tmp_path / "other"
    assert foredeck(other, "import", str(exported), code=5).startswith(
        f"foredeck: {exported} is not imported: line "
    )
    assert foredeck.json(other, "sessions") == {"sessions": []}


def test_standard_streams(
    home: Path,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "session.jsonl"
    assert main(["export", SESSION, str(file), "--home", str(home)]) == 0
    capsysbinary.readouterr()
    assert main(["export", SESSION, "-", "--home", str(home)]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == file.read_bytes()
    assert b"versions of its objects" in captured.err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(captured.out)))
    assert main(["import", "-", "--home", str(tmp_path / "other")]) == 0


def test_a_nickname_is_unique_and_can_move(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = copy_home(home, tmp_path / "home")

    def name(object: str, nickname: str) -> tuple[int, str]:
        code = main(["name", object, nickname, "--home", str(home)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert name("a.txt", "spec") == (0, "/repo/src/a.txt is called spec.\n")
    assert name("a.txt", "spec") == (0, "/repo/src/a.txt is called spec already.\n")
    code, told = name("toolu_c", "spec")
    assert (code, "belongs to another object" in told) == (1, True)
    assert name("spec", "notes")[0] == 0
    assert name("toolu_c", "spec")[0] == 0
    for wrong in ("@4", "two words", "src/a", "12", "v3", "", "deadbeefdeadbeef", "a" * 101):
        code, told = name("a.txt", wrong)
        assert (code, "cannot be a nickname" in told) == (1, True), wrong
    assert main(["cat", "notes", "--json", "--home", str(home)]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == SECOND
    assert main(["name", "notes", "final", "--json", "--home", str(home)]) == 0
    assert json.loads(capsys.readouterr().out)["new"] is True


def test_the_hashes_are_what_the_documentation_says(exported: Path, tmp_path: Path) -> None:
    """The script in docs/objects.md knows nothing of foredeck, and finds every hash in order."""
    page = (Path(__file__).parents[2] / "docs" / "objects.md").read_text()
    script = page.split("```python\n")[1].split("```")[0]
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(exported.read_bytes().replace(b'"turn_count":2', b'"turn_count":9'))
    for file, code in ((exported, 0), (changed, 1)):
        command = [sys.executable, "-c", script, str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode == code, ended.stderr


def test_how_to_use_a_copy_is_told(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    assert main(["migrate", "sqlite", f"sqlite:{copy}", "--home", str(home)]) == 0
    assert f"`foredeck restore {copy}` makes foredeck use the copy" in capsys.readouterr().out
    assert main(["restore", str(copy), "--home", str(tmp_path / "new")]) == 0
    assert main(["show", SESSION, "--home", str(tmp_path / "new")]) == 0
    back = ["migrate", f"sqlite:{copy}", "sqlite", "--home", str(tmp_path / "other")]
    assert main(back) == 0
    assert "FOREDECK_STORE=sqlite makes foredeck use the copy" in capsys.readouterr().out
