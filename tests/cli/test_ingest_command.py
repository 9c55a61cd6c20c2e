"""`foredeck ingest` as a user runs it: what it finds, asks, says and leaves behind."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Foredeck
from histories.written_histories import ClaudeCode, said, use

SESSION = "5e551011-0000-4000-8000-00000000000c"


def claude_lines(session: str = SESSION, question: str = "What is in it?") -> str:
    history = ClaudeCode(session)
    history.user(question)
    history.answer("m", use(f"toolu_{session}", "Bash", command="ls"))
    history.result(f"toolu_{session}", "a.py")
    history.answer("n", said("A."))
    return "".join(json.dumps(line) + "\n" for line in history.lines)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has worked with Claude Code."""
    for name in ("PI_CODING_AGENT_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "state"))
    folder = tmp_path / ".claude" / "projects" / "-repo"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(claude_lines())
    (folder / "notes.txt").write_text("not a history")
    return tmp_path


def test_the_session_can_be_listed_shown_exported_and_forgotten(
    user: Path, foredeck: Foredeck
) -> None:
    out = foredeck("ingest", user / ".claude")
    assert out == (
        "1 file read (1 of claude-code), 0 with nothing new, 0 skipped\n"
        "1 new session, 0 with more in them; 3 messages, 1 tool call\n\n"
        "Try `foredeck sessions`, `foredeck search WORDS`, or `foredeck ui` to see them in the "
        "browser.\n"
    )
    (session,) = foredeck.json("sessions")["sessions"]
    assert (session["harness"], session["ingested"], session["gone"]) == (
        "claude-code",
        True,
        False,
    )
    assert session["last_ms"] - session["first_ms"] == 3000
    assert "read from claude-code" in foredeck("sessions")
    assert "What is in it?" in foredeck("cat", f"chat:{SESSION}")
    assert foredeck("cat", f"{SESSION}:@1").strip() == "a.py"
    file = user / "session.jsonl"
    foredeck("export", SESSION, file)
    foredeck(user / "other", "import", file)
    other = foredeck.json(user / "other", "sessions")
    assert [s["ingested"] for s in other["sessions"]] == [True]
    out, err = foredeck("show", SESSION), foredeck.err
    assert "What is in it?" in out
    assert "did not record this session: this is a replay of" in err
    for more in ([], ["--call", "1"]):
        assert "was read from a history: nothing to restore." in foredeck(
            "restore", SESSION, *more, code=4
        )
    foredeck("forget", SESSION, "--yes")
    out = foredeck("ingest", user / ".claude")
    assert "1 session skipped: you forgot them (--forgotten" in out
    out = foredeck("ingest", user / ".claude", "--forgotten")
    assert "1 new session, 0 with more in them; 3 messages, 1 tool call" in out


def test_without_a_path_it_says_what_lies_there(user: Path, foredeck: Foredeck) -> None:
    out, err = foredeck("ingest"), foredeck.err
    assert out == ""
    assert (
        f"Claude Code: 1 file, 0.8kB, in {user / '.claude' / 'projects'}" in err or "1 file" in err
    )
    assert "Nothing was read: `foredeck ingest --yes`" in err
    assert not (user / "state").exists()
    out = foredeck("ingest", "--dry-run")
    assert out.startswith("1 file would be read (1 of claude-code)")
    assert not (user / "state").exists()
    out = foredeck("ingest", "--yes")
    assert out.startswith("1 file read (1 of claude-code)")


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize(("answer", "sessions"), [("y", 1), ("", 0)])
def test_in_a_terminal_it_asks(answer: str, sessions: int) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "foredeck.cli.main", "ingest", "--json"]
    running = subprocess.Popen(command, stdin=end, stderr=end, stdout=subprocess.PIPE)
    os.close(end)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, answer.encode() + b"\n")
    out, _ = running.communicate()
    os.close(terminal)
    assert running.returncode == 0
    assert (json.loads(out)["new"] if out else 0) == sessions


def test_nothing_anywhere_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "No history of Pi" in foredeck.refused("ingest", code=0)
    for path, reason in ((tmp_path, "no history"), (tmp_path / "x", "does not exist")):
        assert reason in foredeck("ingest", path, code=4)


TORN = claude_lines("another").count("\n") + 1


def test_the_report_for_programs(user: Path, foredeck: Foredeck) -> None:
    folder = user / ".claude" / "projects" / "-repo"
    (folder / "odd.jsonl").write_text("{}\n")
    (folder / "torn.jsonl").write_text(claude_lines("another") + '{"type": "us')
    assert foredeck.json("ingest", folder) == {
        "files": {"claude-code": 2},
        "unchanged": 0,
        "skipped": {str(folder / "odd.jsonl"): "holds no session of Pi, Claude Code or Codex"},
        "new": 2,
        "grown": 0,
        "recorded": 0,
        "forgotten": 0,
        "messages": 6,
        "tool_calls": 2,
        "unreadable": {"cut off": 1},
        "damaged": {str(folder / "torn.jsonl"): {"cut off": [TORN]}},
        "other": {},
        "dry_run": False,
    }
    with (folder / "torn.jsonl").open("a") as file:
        file.write("er\n")
    out = foredeck("ingest", folder)
    assert f"skipped: {folder / 'odd.jsonl'} holds no session" in out
    assert f"{folder / 'torn.jsonl'}: line {TORN} not JSON" in out


START = SESSION[:8]
REPLAYING = {
    f"show {START} --call 1": "call 1 of 2",
    f"cost {START}": "with plain Pi, over 2 calls.",
    f"trace a.py {START}": "2      in view",
}


@pytest.mark.parametrize(("command", "said"), REPLAYING.items())
def test_its_prompts_are_replayed(user: Path, command: str, said: str, foredeck: Foredeck) -> None:
    foredeck("ingest", "--yes")
    out, err = foredeck(*command.split()), foredeck.err
    assert said in out
    assert "this is a replay of" in err
    for file in (user / ".claude").rglob("*.jsonl"):
        file.unlink()
    assert "no longer exists" in foredeck(*command.split(), code=4)
