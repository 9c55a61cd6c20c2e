"""`foredeck config`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.config import user_config_file
from foredeck.config.keys import all_keys


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and a project as the current folder."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    project = tmp_path / "project"
    (project / ".pi").mkdir(parents=True)
    monkeypatch.chdir(project)
    return project


def test_it_prints_every_key_with_its_origin(
    folder: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_SEED_WINDOW__TURNS", "7")
    monkeypatch.setenv("COLUMNS", "300")
    text = foredeck("config", "--set", "layout=pools")
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines() if line}
    assert set(all_keys()) <= set(rows)
    assert rows["seed_window.turns"] == "environment: FOREDECK_SEED_WINDOW__TURNS  7"
    assert rows["layout"].split("  ")[0] == "flag: --set layout"
    assert rows["rebase.cache_ttl_s"].endswith("  unset")
    assert f"project file: {folder}/.pi/foredeck.toml (does not exist)" in text
    assert "\x1b" not in text


def test_json_is_the_same_for_programs(folder: Path, foredeck: Foredeck) -> None:
    file = user_config_file()
    file.parent.mkdir(parents=True)
    file.write_text("[rebase]\ncache_ttl_s = 60\n")
    value = foredeck.json("config")
    assert set(value["values"]) == set(all_keys())
    assert value["values"]["rebase.cache_ttl_s"] == {
        "value": 60,
        "origin": "user",
        "place": str(file),
    }
    assert value["values"]["deadline_ms"] == {"value": 3000, "origin": "default", "place": None}
    assert value["files"] == [
        {"layer": "user", "path": str(file), "exists": True, "read": True},
        {
            "layer": "project",
            "path": str(folder / ".pi" / "foredeck.toml"),
            "exists": False,
            "read": False,
        },
    ]


def test_the_projects_file_is_read_when_trusted_and_said_when_not(
    folder: Path, foredeck: Foredeck
) -> None:
    (folder / ".pi" / "foredeck.toml").write_text("seed_window.turns = 123\n")
    untrusted = foredeck("config")
    assert "123" not in untrusted
    assert "not read: it applies where Pi trusts the project" in untrusted
    assert "123" in foredeck("config", "--trusted")
    assert "123" not in foredeck("config", "--trusted", "--project", folder.parent)


@pytest.mark.usefixtures("folder")
def test_a_configuration_of_the_user_that_cannot_be_used_is_exit_code_2(foredeck: Foredeck) -> None:
    file = user_config_file()
    file.parent.mkdir(parents=True)
    file.write_text("store = 'mongo'\n")
    assert "must be 'sqlite' or 'xtdb', not 'mongo'" in foredeck("config", code=2)


def test_it_says_what_is_left_out_of_a_projects_configuration(
    folder: Path, foredeck: Foredeck
) -> None:
    file = folder / ".pi" / "foredeck.toml"
    file.write_text("store = 'sqlite'\ndeadline_ms = 'x'\n[seed_window]\nturns = 123\n")
    printed = foredeck("config", "--trusted")
    assert f"left out: {file}: 'store' cannot be set by a project" in printed
    assert "deadline_ms" in printed.partition("left out:")[2].partition("\n")[2]
    assert "  123\n" in printed


def test_home_is_a_flag_of_its_own(folder: Path, foredeck: Foredeck) -> None:
    values = foredeck.json("config", "--home", "state")["values"]
    assert values["home"]["value"] == str(folder / "state")


def test_the_shell_completes_commands_and_options(foredeck: Foredeck) -> None:
    script = foredeck("config", "--completion")

    def completed(*words: str) -> list[str]:
        line = " ".join(words)
        asked = f'COMP_WORDS=({line} ""); COMP_CWORD={len(words) - 1}; _foredeck'
        command = ["bash", "-c", f'{script}\n{asked}; echo "${{COMPREPLY[@]}}"']
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert completed("foredeck", "se") == ["sessions", "search"]
    assert completed("foredeck", "history", "--di") == ["--diff"]
    assert completed("foredeck", "tasks", "rea") == ["ready"]
    assert completed("foredeck", "nothing", "--") == []
