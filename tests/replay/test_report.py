"""What a session has cost and done, on one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.histories.pi import load_transcript
from foredeck.replay.replayed_session import replayed as replayed_session
from replay.recordings import SOURCE, Recording, call, text

PAUSE_MS = 3_600_000
SECRET = "sk-ant-0123456789abcdefghijklmn"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = Recording()
    recording.user("Rename the first value.")
    recording.run("toolu_1", "read", SOURCE, path="src/values.ts")
    edit = {"oldText": "value1 = 1;", "newText": "one = 1;"}
    recording.run("toolu_2", "edit", "Edited.", path="src/values.ts", edits=[edit])
    recording.run("toolu_3", "write", "Wrote 20 bytes", path="long.txt", content="line\n" * 90)
    failing = f"curl -H 'x-key: {SECRET}' {Path.home()}/x"
    recording.assistant(call("toolu_4", "bash", command=failing), stop="toolUse")
    recording.result("toolu_4", "bash", text("no such file"), failed=True)
    recording.assistant(text("Done."))
    recording.user("And now?", wait_ms=PAUSE_MS)
    asked = {**call("toolu_5", "activate"), "arguments": {"id": "@2"}}
    recording.assistant(asked, stop="toolUse")
    recording.result("toolu_5", "activate", text("@2 is in view again."))
    recording.assistant(text("The same."))
    folder = tmp_path_factory.mktemp("report")
    path = recording.write(folder / "session.jsonl")
    with replayed_session(load_transcript(path), home=folder / "home"):
        pass
    return folder / "home"


def report(home: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert main(["cost", Recording.id[:6], "--report", "--home", str(home), *flags]) == 0
    return capsys.readouterr().out


def test_the_page(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = report(home, capsys)
    assert page.startswith(f"Session {Recording.id}\n")
    assert "with plain Pi, over" in page
    assert "-export const value1 = 1; // line 1\n+export const one = 1; // line 1" in page
    assert "+1 -1 lines in 1 version" in page
    assert "+90 -0 lines in 1 version" in page
    assert "more lines: --full)" in page
    assert "@2 was asked for again at call" in page


def test_it_is_redacted_unless_full(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, value = report(home, capsys), report(home, capsys, "--json")
    for shown in (page, value):
        assert SECRET not in shown
        assert str(Path.home()) not in shown
        assert "~/x" in shown
    full = report(home, capsys, "--full")
    assert SECRET in full
    assert "more lines: --full" not in full
    assert SECRET in report(home, capsys, "--full", "--json")


def test_the_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = json.loads(report(home, capsys, "--json"))
    assert (value["calls"], value["models"]) == (7, ["anthropic/m"])
    edited, written = value["files"]
    assert (edited["versions"], edited["added"], edited["removed"]) == (1, 1, 1)
    assert written["path"].endswith("/long.txt")
    assert [(f["tool"], f["call"]) for f in value["failed"]] == [("bash", 4)]
    assert [(a["what"], a["times"]) for a in value["asked_back"]] == [("@2", 1)]
    assert value["figure"]["foredeck"] > 0


def test_a_session_without_calls(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["cost", "nowhere", "--report", "--home", str(home)]) == 4
    assert "no session" in capsys.readouterr().err
    assert main(["cost", "nowhere", "--report", "--home", str(tmp_path)]) != 0
    assert "nothing is stored yet" in capsys.readouterr().err
