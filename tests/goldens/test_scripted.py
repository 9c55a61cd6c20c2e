"""The prompts of made-up sessions are those that they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldens.scripted import IN_SUITE, Scripted
from goldens.sessions import check


@pytest.mark.long
@pytest.mark.parametrize("seed", range(IN_SUITE))
def test_a_script(seed: int, tmp_path: Path) -> None:
    check(Scripted(seed), tmp_path)
