"""The registry of stores: every name leads to a kind, and only what is named is imported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import foredeck
from foredeck.config import Config
from foredeck.config.sections import XtdbSection
from foredeck.errors import StoreUnavailable
from foredeck.store.place import StorePlace, store_place
from foredeck.store.protocol import ScanMark


@pytest.mark.parametrize(
    ("use", "timeout_ms"),
    [
        (lambda place: place.erase([], [], ScanMark(0, 0)), 300_000),
        (lambda place: place.open_to_copy(create=False), 60_000),
    ],
    ids=["erased from", "copied"],
)
def test_an_erasing_waits_for_xtdb_as_long_as_is_configured(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[StorePlace], object],
    timeout_ms: int,
) -> None:
    asked = []

    def open_database(_url: str, _token: object, _namespace: str, timeout_ms: int) -> None:
        asked.append(timeout_ms)
        raise StoreUnavailable("away")

    monkeypatch.setattr("foredeck_xtdb.link._open_database", open_database)
    xtdb = XtdbSection(url="http://127.0.0.1:1", timeout_ms=300_000)
    config = Config(home=tmp_path, store="xtdb", xtdb=xtdb)
    with pytest.raises(StoreUnavailable, match="away"):
        use(store_place(config))
    assert asked == [timeout_ms]


ASKS = re.compile(r"""(?:[=!]=|\bin \()\s*["'](?:sqlite|xtdb)["']""")


def test_only_its_own_package_asks_whether_a_store_is_configured() -> None:
    root = Path(foredeck.__file__).parent
    asking = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] != "xtdb"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ASKS.search(line)
    ]
    assert not asking, "\n".join(asking)
