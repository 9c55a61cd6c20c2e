"""Export and import, from XTDB to XTDB, and between XTDB and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Store
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_xtdb.node import NodeFolder

from .contract_portable import AsNewContract, MakeStore, PortableContract, exported, lines_of
from .contract_refused import ContradictionContract
from .sessions import dump, write_sample
from .xtdb_node import opener


@pytest.fixture
def make_store(memory_node: NodeFolder) -> Iterator[MakeStore]:
    """Opens empty stores."""
    with ExitStack() as stack:

        def make() -> Store:
            return stack.enter_context(closing(opener(memory_node)()))

        yield make


class TestPortable(PortableContract):
    """Round trips."""


class TestAsNew(AsNewContract):
    """Fresh ids."""


class TestContradiction(ContradictionContract):
    """Files that say something else than the store."""


@pytest.mark.parametrize("to_xtdb", [True, False])
def test_a_session_moves_between_the_two_stores(
    make_store: MakeStore, tmp_path: Path, to_xtdb: bool
) -> None:
    with closing(open_sqlite(tmp_path / "store.db")) as sqlite:
        source, target = (sqlite, make_store()) if to_xtdb else (make_store(), sqlite)
        write_sample(source)
        text = exported(source)
        import_file(target, lines_of(text))
        assert dump(target) == dump(source)
        assert exported(target) == text
