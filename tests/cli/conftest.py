"""Fixtures for the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stored_session import make_home

from foredeck.cli.main import main


class Foredeck:
    """Runs commands on a state folder, and gives what they print: on stderr if they fail."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, home: Path, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main([*words, "--home", str(home)]) == code
        printed = self._capsys.readouterr()
        return printed.err if code else printed.out

    def refused(self, home: Path, *words: str, code: int = 4) -> str:
        """What a command says that prints nothing else."""
        self._capsys.readouterr()
        assert main([*words, "--home", str(home)]) == code
        printed = self._capsys.readouterr()
        assert printed.out == ""
        return printed.err

    def json(self, home: Path, *words: str) -> Any:
        return json.loads(self(home, *words, "--json"))


@pytest.fixture
def foredeck(capsys: pytest.CaptureFixture[str]) -> Foredeck:
    return Foredeck(capsys)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the stored session."""
    return make_home(tmp_path_factory.mktemp("stored"))
