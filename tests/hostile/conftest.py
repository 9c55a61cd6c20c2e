"""The hostile repository as a fixture. What it tries is in `ground.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.notes import markdown
from hostile.ground import Ground, make


@pytest.fixture(autouse=True)
def _little_time_for_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    give_notes_up_soon(monkeypatch)


def give_notes_up_soon(patch: pytest.MonkeyPatch) -> None:
    """Notes that could take minutes are given up as soon as they are outside of tests."""
    patch.setattr(markdown, "LEAST_S", 0.1)
    patch.setattr(markdown, "MOST_S", 0.6)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The repository, made anew, with the user's home beside it."""
    made = make(tmp_path / "ground")
    monkeypatch.setenv("HOME", str(made.user))
    return made
