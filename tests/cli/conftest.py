"""Fixtures for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_session import make_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the stored session."""
    return make_home(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is a project."""
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    return folder
