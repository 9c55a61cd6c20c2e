"""Export and import, from SQLite to SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from foredeck.store.store import Store, open_sqlite

from .contract_portable import AsNewContract, MakeStore, PortableContract
from .contract_refused import ContradictionContract, RefusedContract


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[MakeStore]:
    """Opens empty stores."""
    numbers = count()
    with ExitStack() as stack:

        def make() -> Store:
            return stack.enter_context(closing(open_sqlite(tmp_path / f"{next(numbers)}.db")))

        yield make


class TestPortable(PortableContract):
    """Round trips."""


class TestAsNew(AsNewContract):
    """Fresh ids."""


class TestRefused(RefusedContract):
    """Damaged and forged files."""


class TestContradiction(ContradictionContract):
    """Files that say something else than the store."""
