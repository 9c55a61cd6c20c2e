"""Fixtures for observations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.store.store import Store, open_sqlite


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_sqlite(tmp_path / "store.db")) as store:
        yield store
