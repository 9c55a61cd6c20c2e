"""The prompts of recorded sessions are those that they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldens.recorded import IN_SUITE, SHARED, Recorded
from goldens.sessions import check


@pytest.mark.long
@pytest.mark.parametrize("session", IN_SUITE, ids=lambda session: session.name)
def test_a_recording(session: Recorded, tmp_path: Path) -> None:
    if not session.path.exists():
        pytest.skip(f"the recorded sessions are not in {SHARED}")
    check(session, tmp_path)
