"""Fixtures of the tests of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.desk import Desk, repeatable_ids


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Two sessions on one project."""
    with repeatable_ids():
        desk = Desk(tmp_path)
        yield desk
        desk.close()
