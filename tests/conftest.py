"""Fixtures for all tests."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

import foredeck
import foredeck_bench
from commands import Foredeck
from foredeck.cli import person
from foredeck.store.store import Store, open_sqlite
from hostile.injections import Injections, NoInjections, load_injections
from patience import be_patient
from processes import STARTED
from search.sessions import Searched, searched
from store.xtdb_node import memory_node, runtime

# Here once for all: imported into each module, each of them would start nodes of its own.
__all__ = ["memory_node", "runtime"]

# The same examples in every run, so that a red run is red again; FOREDECK_TEST_EXAMPLES=random
# looks for new ones.
# On a busy machine everything is slow.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", patient, derandomize=True, max_examples=30)
settings.register_profile("random", patient)
settings.load_profile(os.environ.get("FOREDECK_TEST_EXAMPLES", "repeatable"))


def _import_all(package: ModuleType) -> None:
    """Import each module of a package.

    Hypothesis draws from the constants of whatever is imported: without this a run's examples
    would depend on which tests ran before, and in which worker.
    """
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


_import_all(foredeck)
_import_all(foredeck_bench)

CHECKOUT = Path(__file__).resolve().parent.parent
collect_ignore = ["evaluation/solutions"]  # somebody else's projects, with tests of their own

SHARED = (
    *("tests/machines/", "tests/bench/test_release.py", "tests/bench/test_site.py"),
    *("tests/cli/test_documented_examples.py", "tests/cli/test_query_command.py"),
    *("tests/context/test_hits_opened.py", "tests/histories/test_projection.py"),
    *("tests/hostile/test_commands.py", "tests/hostile/test_terminal.py"),
    *("tests/hostile/test_written.py", "tests/replay/test_trace.py"),
    *("tests/rpc/test_engine_process.py", "tests/search/test_unspaced.py"),
    *("tests/sources/test_host_tools.py", "tests/store/test_xtdb_backup.py"),
    *("tests/ui/test_access.py", "tests/ui/test_memory_pages.py", "tests/ui/test_pages.py"),
    *("tests/ui/test_turns.py", "tests/realpi/test_demo.py"),
    "tests/realpi/test_pi_npm_extensions.py",
)
"""Folders and files whose tests look at something that takes long to make: one worker runs them.
By path, since pytest 9.2 no longer sees the mark of pytest-xdist."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Tests go to any worker, but for those that share something."""
    return _Sharing(config, log)


class _Sharing(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return next((shared for shared in SHARED if nodeid.startswith(shared)), nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin first, so that no worker is left with one at the end; then those that start
    nodes or Pi, which wait the longest: others fill the gaps.

    What waits for processes gets a second try, which the summary lists: a machine may be too busy.
    """
    items.sort(key=_turn)
    for item in items:
        if _turn(item) < 2:
            item.add_marker(pytest.mark.flaky(reruns=1))


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("long") is not None:
        return 0
    starts_pi = "realpi" in item.path.parts
    return 1 if starts_pi or "runtime" in getattr(item, "fixturenames", ()) else 2


@pytest.fixture(autouse=True)
def _processes_end() -> Iterator[None]:
    """No process outlives the test that has started it; fixtures of several tests come first."""
    STARTED.forget()
    yield
    left = STARTED.end()
    assert not left, f"still running when the test was over: {left}"


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of this repository."""
    return CHECKOUT


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder for each test of this process. They are numbered here: `mktemp` looks at
    every folder that there is before it makes one."""
    root = tmp_path_factory.mktemp("foredeck-homes")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def _private_state(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the state folder of whoever runs them."""
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("FOREDECK_HOME", str(home))


@pytest.fixture(scope="session", autouse=True)
def _typed_by_a_person() -> Iterator[None]:
    """What tests run in this process is typed in a terminal, also while an engine is at work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(person, "has_terminal", lambda: True)
        yield


@pytest.fixture(scope="session", autouse=True)
def _time_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        yield


@pytest.fixture(name="foredeck")
def _foredeck(capsys: pytest.CaptureFixture[str]) -> Foredeck:
    """Runs commands."""
    return Foredeck(capsys)


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens empty stores."""
    numbers = count()
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_sqlite(tmp_path / f"{next(numbers)}.db")))


@pytest.fixture
def store(make_store: Callable[[], Store]) -> Store:
    """An empty store."""
    return make_store()


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Searched]:
    """A store without anything yet, and its index."""
    with searched(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="session")
def injections(request: pytest.FixtureRequest) -> Injections:
    """Those of AgentDojo; skips where they cannot be had."""
    try:
        return load_injections(request.config.rootpath / ".cache" / "agentdojo")
    except NoInjections as reason:
        pytest.skip(str(reason))
