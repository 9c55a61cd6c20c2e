"""Work that takes longer than a page may."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.lookup.reader import Reader
from foredeck.store.place import open_store
from foredeck_inspector import work as module
from foredeck_inspector.work import Work


def test_a_defect_in_the_background_reaches_the_page_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(home=tmp_path)
    open_store(config).close()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(module, "trace", fail)
    work = Work(Reader(config)).patient()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="a defect"):
            work.trace("session", "text", 1)
