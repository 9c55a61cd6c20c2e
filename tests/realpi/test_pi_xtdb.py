"""Real Pi on a real XTDB node: the agent goes on while the node is away, and nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from faults import WORK
from foredeck.config import Config
from foredeck.errors import StoreError
from foredeck.model.documents import Document
from foredeck.store.place import open_store
from foredeck.store.store import Store
from foredeck_bench.twin.script import ModelRequest, Step, call
from foredeck_bench.twin.server import ScriptedModel
from foredeck_xtdb.link import copy_file, open_database
from foredeck_xtdb.local_copy import remote_of
from foredeck_xtdb.node import NodeFolder, own_node_folder, stop
from foredeck_xtdb.runtime import Runtime, find_runtime
from harness import TEXT, Pi
from observed import answered, assert_stable, calls_of, messages
from store.pulled import Pulled

SECONDS = 240.0


@pytest.fixture(scope="module")
def runtime(checkout: Path) -> Runtime:
    """The installed node; tests are skipped where there is none."""
    home = Path(os.environ.get("FOREDECK_TEST_XTDB", checkout / ".cache" / "xtdb"))
    try:
        return find_runtime(home)
    except StoreError as error:
        pytest.skip(f"{error} --home {home} (scripts/setup does)")


@pytest.fixture
def node(pi: Pi, runtime: Runtime) -> Iterator[NodeFolder]:
    """The node's folder in Pi's state folder, installed; whatever runs there is stopped."""
    folder = own_node_folder(pi.workspace.foredeck_home)
    folder.root.mkdir(parents=True, mode=0o700)
    (folder.root / runtime.folder.name).symlink_to(runtime.folder)
    yield folder
    stop(folder)


def config_of(pi: Pi) -> Config:
    """The configuration with which the engine worked."""
    return Config.model_validate({"home": pi.workspace.foredeck_home, "store": "xtdb"})


def all_versions(store: Store) -> dict[str, list[str]]:
    """The tokens of every version, by id."""
    ids = {change.id for change in store.changes_since(None, limit=10**6)}
    return {id: [str(head.token) for head in store.history(id)] for id in ids}


def assert_all_is_there(pi: Pi) -> None:
    """XTDB has what the local copy has: the same versions with the same content, each once."""
    config = config_of(pi)
    with closing(open_store(config)) as copy, closing(Pulled(open_database(config))) as remote:
        deadline = time.monotonic() + SECONDS
        while remote_of(copy).backlog.entries:
            assert time.monotonic() < deadline, "not everything was delivered"
            time.sleep(0.05)
        versions = all_versions(copy)
        assert versions == all_versions(remote)
        for id in versions:
            assert copy.get(id, Document) == remote.get(id, Document)


def prompts_with_sqlite(pi: Pi, script: list[Step]) -> list[object]:
    """What the provider gets in the same session on SQLite."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(script)
    assert pi.print("work", foredeck=True).code == 0
    return comparable(model)


def comparable(model: ScriptedModel) -> list[object]:
    """The messages of each request, as they reached the provider."""
    return [messages(request) for request in answered(model)]


def test_a_node_killed_in_mid_session_holds_nobody_up(pi: Pi, node: NodeFolder) -> None:
    killed: list[int] = []

    def kill(_: ModelRequest) -> Step:
        # The agent may be quicker than the node starts.
        deadline = time.monotonic() + SECONDS
        while (running := node.running()) is None:
            assert time.monotonic() < deadline, "the node did not start"
            time.sleep(0.05)
        os.kill(running.pid, signal.SIGKILL)
        killed.append(running.pid)
        return WORK[2]

    script: list[Step] = [*WORK[:2], kill, *WORK[3:]]
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(script)
    run = pi.print("work", foredeck=True, environment={"FOREDECK_STORE": "xtdb"})
    assert run.code == 0, run.stderr
    assert len(killed) == 1
    assert_stable(answered(model))
    with closing(open_store(config_of(pi), lazy=True)) as copy:
        assert len(calls_of(copy)) == len(WORK)
    assert_all_is_there(pi)
    assert comparable(model) == prompts_with_sqlite(pi, [*WORK])


def test_a_session_goes_on_while_its_node_is_down_and_is_resumed(pi: Pi, node: NodeFolder) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([*WORK, call("read", path="a.txt"), "more", "the end"])
    rpc = pi.rpc("work", foredeck=True, environment={"FOREDECK_STORE": "xtdb"})
    node.mark_stopped(True)
    stop(node)
    rpc.prompt("more")
    assert rpc.kill_engine()
    # The next engine starts the node again.
    rpc.prompt("end")
    rpc.shutdown()
    assert_stable(answered(model))
    assert copy_file(config_of(pi)).stat().st_mode & 0o777 == 0o600
    assert_all_is_there(pi)
