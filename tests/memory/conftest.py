"""Fixtures of the tests of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.store.store import open_sqlite
from memory.desk import Table


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """A store with sessions, and the hands that reach it."""
    with closing(open_sqlite(tmp_path / "memory.db")) as store:
        yield Table(store)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A folder with a file that memory can rest on."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_text("one = 1\n")
    return folder
