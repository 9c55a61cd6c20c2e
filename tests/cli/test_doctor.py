"""`foredeck doctor`, on folders and programs that are made to be found."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.cli.doctor_command import check_programs, check_state
from foredeck.config import Config
from foredeck.finding import Finding
from foredeck.store.store import open_sqlite
from foredeck.version import PI_MIN, PI_TESTED
from foredeck_bench.scripted.pi_process import VERSIONS


def fake_program(folder: Path, name: str, says: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nprint({says!r})\n")
    program.chmod(0o755)


def by_name(findings: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a Node and a Pi that are new enough."""
    folder = tmp_path / "bin"
    fake_program(folder, "node", "v22.19.0")
    fake_program(folder, "pi", "1.6.0")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_a_sound_machine_is_exit_code_0(home: Path, programs: Path, foredeck: Foredeck) -> None:
    assert programs.is_dir()
    value = foredeck.json(home, "doctor")
    assert value["ok"] is True
    names = ["python", "sqlite", "node", "pi", "config", "home", "permissions", "disk", "store"]
    assert {check["name"] for check in value["checks"]} >= {*names, "file system"}
    assert "All well." in foredeck(home, "doctor")


@pytest.mark.usefixtures("programs")
def test_a_finding_is_exit_code_1_and_says_what_to_do(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    home.chmod(0o755)
    foredeck(home, "doctor", code=1)
    text = " ".join(foredeck.out.split())
    assert f"other users can get into {home} (mode 0755)" in text
    assert f"Run: chmod 700 {home}" in text
    assert "1 with something to do" in text


@pytest.mark.usefixtures("programs")
def test_a_broken_configuration_is_a_finding_and_the_rest_is_checked(
    home: Path, foredeck: Foredeck
) -> None:
    flags = ["--home", str(home), "--set", "layuot=pools"]
    checks = {check["name"]: check for check in foredeck.json("doctor", *flags, code=1)["checks"]}
    assert "did you mean 'layout'" in checks["config"]["text"]
    assert "store" in checks


def test_missing_and_old_programs_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", str(folder))
    missing = by_name(check_programs(tmp_path))
    assert (missing["node"].status, missing["pi"].status) == ("problem", "problem")
    assert "npm install -g" in missing["pi"].advice
    fake_program(folder, "node", "v20.20.2")
    fake_program(folder, "pi", "1.4.0")
    old = by_name(check_programs(tmp_path))
    assert old["node"].status == "problem"
    assert old["node"].text == f"20.20.2 at {folder}/node"
    assert old["pi"].status == "problem"
    assert old["pi"].text == f"1.4.0 at {folder}/pi: foredeck is off below 1.5.2"
    fake_program(folder, "pi", "1.7.0")
    newer = by_name(check_programs(tmp_path))["pi"]
    assert newer.status == "note"
    assert "newer than 1.6, the last that foredeck was tested with" in newer.text
    fake_program(folder, "node", "no version")
    assert "does not say its version" in by_name(check_programs(tmp_path))["node"].text


@pytest.mark.usefixtures("programs")
def test_without_a_pi_on_path_the_checkouts_own_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "node_modules" / ".bin"
    own.mkdir(parents=True)
    fake_program(own, "node", "v22.20.0")
    fake_program(own, "pi", "1.5.2")
    assert by_name(check_programs(tmp_path))["pi"].text == f"1.6.0 at {tmp_path}/bin/pi"
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    found = by_name(check_programs(tmp_path))
    assert {found[name].status for name in ("node", "pi")} == {"ok"}
    assert found["pi"].text.startswith(f"1.5.2 at {own}/pi (this checkout's own")
    assert found["node"].text.startswith(f"22.20.0 at {own}/node (this checkout's own")


def test_a_state_folder_to_be_made_is_no_finding_and_is_not_made(tmp_path: Path) -> None:
    home = tmp_path / "not" / "yet"
    assert {finding.status for finding in list(check_state(Config(home=home)))} == {"ok"}
    assert not home.parent.exists()


def test_a_file_in_its_place_is_found(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    [finding] = check_state(Config(home=file))
    assert "is not a folder" in finding.text


def test_a_sound_store_is_said_to_be_so(home: Path) -> None:
    config = Config(home=home)
    open_sqlite(config.sqlite_file).close()
    assert "no damage found" in by_name(check_state(config))["store"].text


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CREATE TABLE t (x)", "another program"),
        ("PRAGMA user_version = 99", "a newer foredeck wrote it"),
    ],
)
def test_a_store_that_is_not_for_us_is_found(home: Path, statement: str, told: str) -> None:
    config = Config(home=home)
    if "user_version" in statement:
        open_sqlite(config.sqlite_file).close()
    connection = sqlite3.connect(config.sqlite_file)
    connection.execute(statement)
    connection.close()
    finding = by_name(check_state(config))["store"]
    assert (finding.status, told in finding.text) == ("problem", True)
    assert "FOREDECK_HOME" in finding.advice


def test_a_damaged_store_is_found(home: Path) -> None:
    config = Config(home=home)
    config.sqlite_file.write_bytes(b"this is no database, but long enough to be looked at" * 100)
    finding = by_name(check_state(config))["store"]
    assert finding.status == "problem"
    assert "damaged" in finding.text
    assert "foredeck restore FILE --force" in finding.advice
    assert "move it away" in finding.advice


def test_an_address_of_a_proxy_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "none of claude" in by_name(check_programs(tmp_path))["proxy"].text
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/{'t' * 43}/openai")
        assert by_name(check_programs(tmp_path))["proxy"].status == "ok"
    assert by_name(check_programs(tmp_path))["proxy"].status == "problem"


def test_what_is_supported_is_what_is_tested(checkout: Path) -> None:
    """Doctor, the extension, and the pages speak of the versions that tests run on."""
    newest, oldest = VERSIONS
    assert tuple(map(int, oldest.split("."))) == PI_MIN
    minors = [version.rsplit(".", 1)[0] for version in VERSIONS]
    assert [".".join(map(str, version)) for version in PI_TESTED] == minors[::-1]
    manifest = json.loads((checkout / "package.json").read_text())
    assert manifest["devDependencies"]["@earendil-works/pi-coding-agent"] == newest
    assert f'OLDEST_PI = "{oldest}"' in (checkout / "ts-shim" / "host.ts").read_text()
    for page in ("README.md", "docs/upkeep.md"):
        assert " and ".join(minors) in (checkout / page).read_text()
