"""The hostile repository as a fixture. What it tries is in `ground.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.notes import markdown
from hostile.ground import Ground, make


@pytest.fixture(autouse=True)
def _little_time_for_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes that could take minutes are given up soon, as they are outside of tests."""
    monkeypatch.setattr(markdown, "LEAST_S", 0.1)
    monkeypatch.setattr(markdown, "MOST_S", 0.6)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The repository, made anew, with the user's home beside it."""
    made = make(tmp_path / "ground")
    monkeypatch.setenv("HOME", str(made.user))
    return made
