"""Fixtures for tests on the real `pi` binary.

A test that takes `pi` runs on the newest version of Pi that the project supports, with
`both_versions` on each, in a scratch folder of its own, and fails if a process of its run outlives
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_bench.crash.stores import prepared
from foredeck_bench.scripted.pi_process import PiWorkspace, checkout_pi
from harness import STORE, TESTED, Asked, Pi


@pytest.fixture(scope="session")
def node_home(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[Path | None]:
    """The state folder of the XTDB node that all runs share; None where they use SQLite."""
    if STORE == "sqlite":
        yield None
        return
    home = tmp_path_factory.mktemp("node")
    with prepared(home, STORE, checkout / ".cache" / "xtdb"):
        yield home


@pytest.fixture(params=TESTED)
def pi(
    request: pytest.FixtureRequest, tmp_path: Path, checkout: Path, node_home: Path | None
) -> Iterator[Pi]:
    """The real Pi. Skips where `scripts/setup` has not run."""
    install = checkout_pi(checkout, request.param)
    if install is None:
        pytest.skip(f"Pi {request.param} is not installed: run scripts/setup")
    harness = Pi(install, PiWorkspace(tmp_path / "pi"), checkout, node_home)
    try:
        yield harness
    finally:
        harness.close()


@pytest.fixture
def asked(pi: Pi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """Runs a command of foredeck's on the store of this Pi; what it has printed."""
    config = pi.config()
    monkeypatch.setenv("FOREDECK_HOME", str(config.home))
    monkeypatch.setenv("FOREDECK_STORE", config.store)
    monkeypatch.setenv("FOREDECK_XTDB__NAMESPACE", config.xtdb.namespace)

    def ask(*arguments: str) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    return ask
