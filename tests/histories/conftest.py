"""A store for what histories hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.store.place import open_store
from foredeck.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(Config(home=tmp_path / "state"))) as opened:
        yield opened
