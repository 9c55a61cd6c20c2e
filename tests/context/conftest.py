"""Fixtures for the context core: hosts on a real SQLite store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.working import Work

NewHost = Callable[..., Host]


@pytest.fixture
def new_host(tmp_path: Path) -> Iterator[NewHost]:
    """Makes hosts on one database; they are closed at the end."""
    made: list[Host] = []

    def make(**options: Any) -> Host:
        made.append(Host(tmp_path / "home", **options))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture
def host(new_host: NewHost) -> Host:
    """A host with everything at its default, but for the policy (`driver.py`)."""
    return new_host()


@pytest.fixture
def work(new_host: NewHost, tmp_path: Path) -> Work:
    """An agent at work in an empty folder."""
    folder = tmp_path / "repo"
    folder.mkdir()
    return Work(new_host(cwd=str(folder.resolve()), disk=True))
