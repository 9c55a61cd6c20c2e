"""The surroundings in which goldens are made."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from goldens.sessions import be_repeatable


@pytest.fixture(autouse=True)
def _repeatable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        be_repeatable(patch)
        yield
    time.tzset()
