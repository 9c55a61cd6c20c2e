"""The frame of the command line: help, exit codes, errors, and how commands end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from commands import Foredeck
from foredeck import __version__, errors
from foredeck.cli.main import EXIT_CODES, IN_PI, build_parser
from foredeck.cli.registry import COMMANDS, load
from processes import run_program

FOREDECK = [sys.executable, "-m", "foredeck.cli.main"]


def test_without_arguments_a_new_user_is_told_what_to_do_first(
    foredeck: Foredeck, snapshot: SnapshotAssertion
) -> None:
    foredeck(code=1)
    assert foredeck.out == snapshot


def test_without_arguments_the_help_is_printed_where_there_is_a_store(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    assert foredeck(code=1) == ""
    assert foredeck.out == build_parser().format_help()


def subclasses(kind: type[errors.ForedeckError]) -> set[type[errors.ForedeckError]]:
    found = {kind}
    for child in kind.__subclasses__():
        found |= subclasses(child)
    return found


def test_version(foredeck: Foredeck) -> None:
    assert foredeck("--version") == f"foredeck {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself_with_an_example(name: str, foredeck: Foredeck) -> None:
    text = foredeck(name, "--help")
    assert "\nexample:\n  " in text
    assert f"foredeck {name}" in load(name).example
    assert " ".join(load(name).description.split())[:40] in text
    parser = ArgumentParser()
    load(name).configure(parser)
    assert all(action.help for action in parser._actions)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["docter"], "did you mean 'doctor'?"),
        (["rewind"], "there is no command 'rewind'; in Pi it is `/foredeck rewind`."),
        (["tasks", "list", "--colour", "red"], "foredeck tasks: unrecognized arguments"),
        (["memory", "lst"], "foredeck memory: there is no 'lst'; did you mean 'list'?"),
        (["--home", "/state", "sessions"], "options follow the command: `foredeck COMMAND --home"),
        (["--json", "sessions"], "options follow the command: `foredeck COMMAND --json ...`"),
        (["qqqqqq"], "`foredeck --help` lists the commands"),
        (["config", "--jso"], "unrecognized arguments: --jso"),
        (["config", "--set", "layout"], "is not KEY=VALUE"),
        (["config", "--set", "layuot=pools"], "did you mean 'layout'?"),
    ],
)
def test_a_wrong_usage_is_exit_code_2(arguments: list[str], text: str, foredeck: Foredeck) -> None:
    assert text in foredeck.refused(*arguments, code=2)


def test_verbs_that_exist_in_pi_alone_are_known() -> None:
    shim = Path(__file__).parents[2] / "ts-shim" / "commands.json"
    verbs = json.loads(shim.read_text())["foredeck"]["verbs"]
    assert {*verbs} - {*COMMANDS, "help"} == IN_PI


def test_every_exit_code_of_an_error_is_documented() -> None:
    assert {kind.exit_code for kind in subclasses(errors.ForedeckError)} <= set(EXIT_CODES)


def test_only_the_chosen_command_is_imported_and_little_before_an_engine_runs() -> None:
    code = (
        "import sys; from foredeck.cli.main import build_parser; build_parser('engine')\n"
        "heavy = {'pydantic', 'asyncio', 'sqlite3', 'jsonrpcserver', 'watchdog', 'platformdirs'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "build_parser('config')\n"
        "commands = {name for name in sys.modules if name.startswith('foredeck.cli.arguments.')}\n"
        "assert commands == {f'foredeck.cli.arguments.{g}' for g in ('measure', 'upkeep')}\n"
        "assert not [name for name in sys.modules if name.endswith('_command')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unexpected_error_is_told_without_a_traceback_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    def break_it(**_arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("foredeck.config.load_config", break_it)
    monkeypatch.delenv("FOREDECK_DEBUG", raising=False)
    told = foredeck("config", code=1)
    assert "internal error: ZeroDivisionError: a bug" in told
    assert "Traceback" not in told
    monkeypatch.setenv("FOREDECK_DEBUG", "1")
    assert "Traceback" in foredeck("config", code=1)


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    source, sink = os.pipe()
    os.close(source)
    done = subprocess.run(
        [*FOREDECK, "config"], stdout=sink, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(sink)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_is_exit_code_130_in_one_line(tmp_path: Path) -> None:
    """`doctor` asks a `pi` that does not answer; Ctrl-C reaches it meanwhile."""
    ready = tmp_path / "ready"
    pi = tmp_path / "pi"
    pi.write_text(
        f"#!{sys.executable}\nimport pathlib, time\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)\n"
    )
    pi.chmod(0o755)
    process = subprocess.Popen(
        [*FOREDECK, "doctor"],
        env={**os.environ, "PATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A test run in the background has Ctrl-C ignored, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _out, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "foredeck: interrupted\n"


def test_a_terminal_that_lacks_a_character_does_not_end_the_command(tmp_path: Path) -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_program(*FOREDECK, "config", "--home", tmp_path / "héim", env=ascii_only)
    assert done.returncode == 0
    assert "h\\xe9im" in done.stdout
