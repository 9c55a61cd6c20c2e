"""The hostile repository as a fixture. What it tries is in `ground.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile.ground import Ground, make


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The repository, made anew, with the user's home beside it."""
    made = make(tmp_path / "ground")
    monkeypatch.setenv("HOME", str(made.user))
    return made
