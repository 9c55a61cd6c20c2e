"""Tables, colours, progress, and odd streams."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from foredeck.cli import output
from foredeck.cli.output import Progress, typed
from foredeck.home import command_name


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_redraws_one_line_and_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "REDRAW_SECONDS", 0)
    stream = Terminal()
    with Progress("replaying", total=2, stream=stream) as shown:
        shown.advance(note="one")
        shown.advance(note="two")
    assert stream.getvalue() == ("\r\x1b[Kreplaying 1/2 one\r\x1b[Kreplaying 2/2 two\r\x1b[K")
    with Progress("looking", stream=stream) as shown:
        shown.advance()
        shown.clear()
        stream.write("Purge it?")
    assert stream.getvalue().endswith("looking 1\r\x1b[KPurge it?"), "nothing is cleared after it"


def test_progress_elsewhere_says_now_and_then_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    with Progress("replaying", stream=stream) as shown:
        shown.advance()
    assert stream.getvalue() == ""
    monkeypatch.setattr(output, "LINE_SECONDS", 0)
    with Progress("replaying", stream=stream) as shown:
        shown.advance(5)
    assert stream.getvalue() == "replaying 5\n"


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor as a POSIX shell does")
@pytest.mark.parametrize(
    ("command", "redirection", "code", "told"),
    [
        ("config", ">&-", 0, ""),
        ("--help", ">&-", 0, ""),
        ("engine </dev/null", ">&-", 2, "stdin or stdout is closed"),
        ("engine", "<&-", 2, "stdin or stdout is closed"),
        ("config", "| true", 0, ""),
        pytest.param(
            *("config", ">/dev/full", 1, "foredeck: No space left on device"),
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
        ),
    ],
)
def test_stdout_that_is_closed_or_full(
    command: str, redirection: str, code: int, told: str
) -> None:
    foredeck = f"{shlex.quote(sys.executable)} -m foredeck.cli.main"
    line = f"set -o pipefail; {foredeck} {command} {redirection}"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, told in ended.stderr) == (code, True), ended.stderr
    assert "Traceback" not in ended.stderr
    assert told or not ended.stderr


def test_commands_are_named_as_they_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def said(called: str, text: str = "see `foredeck cost 0199`; foredeck is off") -> str:
        command_name.cache_clear()
        monkeypatch.setattr(sys, "argv", [called])
        return typed(text)

    assert said("pytest") == "see `foredeck cost 0199`; foredeck is off"
    assert said(".venv/bin/foredeck").startswith("see `.venv/bin/foredeck cost 0199`;")
    assert said(f"{tmp_path}/my tools/foredeck").startswith("see `~/'my tools/foredeck' cost")
    beside = Path(sys.executable).with_name("foredeck")
    assert said(f"{tmp_path}/foredeck/cli/main.py").startswith(f"see `{beside} cost 0199`;")
    engine = tmp_path / ".local" / "state" / "foredeck"
    monkeypatch.setattr(sys, "executable", str(engine / "engines" / "1" / "bin" / "python"))
    (engine / "bin").mkdir(parents=True)
    (engine / "bin" / "foredeck").touch()
    called = f"{engine}/engines/1/bin/foredeck"
    assert said(called).startswith("see `~/.local/state/foredeck/bin/foredeck cost 0199`;")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "foredeck").touch(mode=0o755)
    assert said(called) == "see `foredeck cost 0199`; foredeck is off"
    command_name.cache_clear()
