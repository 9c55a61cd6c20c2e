"""`foredeck purge` on a state folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main

Purged = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def purge(home: Path, capsys: pytest.CaptureFixture[str]) -> Purged:
    """Runs the command without asking; what it has printed as JSON."""
    del home

    def run(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(["purge", *arguments, "--yes", "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run
