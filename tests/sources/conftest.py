"""Fixtures for the sources: a real SQLite store and a real folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from work_folder import Work

from foredeck.store.store import Store


@pytest.fixture
def work(tmp_path: Path, store: Store) -> Work:
    folder = (tmp_path / "work").resolve()
    folder.mkdir()
    return Work(folder, store)
