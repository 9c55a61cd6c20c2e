"""Fixtures for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_session import make_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the stored session."""
    return make_home(tmp_path_factory.mktemp("stored"))
