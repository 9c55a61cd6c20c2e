"""Fixtures for tests on the real `pi` binary.

A test that takes `pi` runs once on each version of Pi that the project supports, in a scratch
folder of its own, and fails if a process of its run outlives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.bench.scripted.pi_process import VERSIONS, Workspace, checkout_pi
from harness import Pi


@pytest.fixture(params=VERSIONS)
def pi(request: pytest.FixtureRequest, tmp_path: Path, checkout: Path) -> Iterator[Pi]:
    """The real Pi, once per supported version. Skips where `scripts/setup` has not run."""
    install = checkout_pi(checkout, request.param)
    if install is None:
        pytest.skip(f"Pi {request.param} is not installed: run scripts/setup")
    harness = Pi(install, Workspace(tmp_path / "pi"), checkout)
    try:
        yield harness
    finally:
        harness.close()
