"""The library's loop and the real Pi on the same conversation: the same engine decides for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck_bench.library.comparing import compare
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi


def test_a_loop_costs_and_shows_what_pi_does(checkout: Path, tmp_path: Path) -> None:
    install = checkout_pi(checkout, VERSIONS[0])
    if install is None:
        pytest.skip("Pi is not installed: run scripts/setup")
    pi, managed_pi, loop, managed_loop = compare(2, tmp_path, install, checkout)
    assert {each.refused for each in (pi, managed_pi, loop, managed_loop)} == {0}
    assert {each.calls for each in (pi, managed_pi, loop, managed_loop)} == {12}
    # Without foredeck both hosts send the same but for a few words of a tool's answer.
    assert loop.prompt == pytest.approx(pi.prompt, rel=0.02)
    assert managed_loop.prompt == pytest.approx(managed_pi.prompt, rel=0.02)
    assert managed_loop.prompt < 0.9 * loop.prompt
    assert managed_loop.names == managed_pi.names == 1.0
