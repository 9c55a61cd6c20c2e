"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a red run is red again; FOREDECK_TEST_EXAMPLES=random
# looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("FOREDECK_TEST_EXAMPLES", "repeatable"))

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of this repository."""
    return CHECKOUT


@pytest.fixture(autouse=True)
def _private_state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep tests away from the state folder of whoever runs them."""
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path_factory.mktemp("foredeck-home")))
