"""`foredeck export`, `import` and `name`."""

from __future__ import annotations

import io
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from stored_session import SECOND, SESSION, copy_home

from commands import Foredeck
from foredeck.cli.main import main


@pytest.fixture
def exported(home: Path, tmp_path: Path, foredeck: Foredeck) -> Path:
    file = tmp_path / "session.jsonl"
    foredeck(home, "export", SESSION[:8], file)
    return file


def test_a_round_trip_is_equal_and_a_second_import_a_no_op(
    home: Path, exported: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    other = tmp_path / "state" / "other"
    summary = foredeck.json(other, "import", exported)
    assert summary["session"] == SESSION
    assert summary["new_documents"] == summary["documents"] > 20
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert foredeck.json(other, "show", SESSION) == foredeck.json(home, "show", SESSION)
    again = tmp_path / "again.jsonl"
    foredeck(other, "export", SESSION, again)
    assert again.read_bytes() == exported.read_bytes()
    assert "is here already, and identical" in foredeck(other, "import", exported)


def test_fresh_ids_stand_beside_the_old_ones(
    home: Path, exported: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    both = copy_home(home, tmp_path / "home")
    session = foredeck.json(both, "import", exported, "--as-new")["session"]
    assert session != SESSION
    assert foredeck.json(both, "show", session) == foredeck.json(both, "show", SESSION)
    assert len(foredeck.json(both, "sessions")["sessions"]) == 2


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


def test_a_nickname_is_unique_and_can_move(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    home = copy_home(home, tmp_path / "home")

    def name(object: str, nickname: str, code: int = 0) -> str:
        return foredeck(home, "name", object, nickname, code=code)

    assert name("a.txt", "spec") == "/repo/src/a.txt is called spec.\n"
    assert name("a.txt", "spec") == "/repo/src/a.txt is called spec already.\n"
    assert "belongs to another object" in name("toolu_c", "spec", code=1)
    name("spec", "notes")
    name("toolu_c", "spec")
    for wrong in ("@4", "two words", "src/a", "12", "v3", "", "deadbeefdeadbeef", "a" * 101):
        assert "cannot be a nickname" in name("a.txt", wrong, code=1), wrong
    assert foredeck.json(home, "cat", "notes")["content"] == SECOND
    assert foredeck.json(home, "name", "notes", "final")["new"] is True


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


def test_how_to_use_a_copy_is_told(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    copy = tmp_path / "copy.db"
    assert f"`foredeck restore {copy}` makes foredeck use the copy" in foredeck(
        home, "migrate", "sqlite", f"sqlite:{copy}"
    )
    foredeck(tmp_path / "new", "restore", copy)
    foredeck(tmp_path / "new", "show", SESSION)
    back = ["migrate", f"sqlite:{copy}", "sqlite", "--home", str(tmp_path / "other")]
    assert "FOREDECK_STORE=sqlite makes foredeck use the copy" in foredeck(*back)
