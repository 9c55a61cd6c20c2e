"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

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
