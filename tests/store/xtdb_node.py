"""A real XTDB node for tests: one in memory for the whole run, empty namespaces for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foredeck.errors import StoreError
from foredeck_xtdb.node import NodeFolder, private_node
from foredeck_xtdb.runtime import Runtime, find_runtime
from processes import STARTED

from .pulled import Pulled, open_pulled

CHECKOUT = Path(__file__).resolve().parents[2]


def installed_home() -> Path:
    """The state folder into which scripts/setup installs the node."""
    return Path(os.environ.get("FOREDECK_TEST_XTDB", CHECKOUT / ".cache" / "xtdb"))


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """The installed node; tests are skipped where there is none."""
    try:
        return find_runtime(installed_home())
    except StoreError as error:
        pytest.skip(f"{error} --home {installed_home()} (scripts/setup does)")


@pytest.fixture(scope="session")
def memory_node(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeFolder]:
    """A node in memory, shared by all tests of this process."""
    with private_node(tmp_path_factory.mktemp("xtdb"), runtime) as folder:
        STARTED.forget()
        yield folder


def options_of(node: NodeFolder, **more: object) -> dict[str, Any]:
    """What `open_xtdb` takes for a namespace on the node, new and empty. Generous with time."""
    running = node.running()
    options = {"namespace": f"t{secrets.token_hex(8)}", "timeout_ms": 60_000}
    return {"url": running.url, "token": node.token(), **options, **more}


def opener(node: NodeFolder, **more: object) -> partial[Pulled]:
    """Opens one namespace, new and empty, again and again; picklable."""
    return partial(open_pulled, **options_of(node, **more))
