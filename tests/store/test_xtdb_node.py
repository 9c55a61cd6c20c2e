"""The node's process: started once, found again, stopped, and never two on one folder."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from foredeck.errors import StoreUnavailable
from foredeck_xtdb.installing import remove_old
from foredeck_xtdb.node import NodeFolder, NodeInfo, private_node, start, stop
from foredeck_xtdb.runtime import Runtime, in_use, runtime_folder

from .journaled import until


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[NodeFolder]:
    """A folder for a node, which is stopped at the end."""
    made = NodeFolder(tmp_path / "xtdb")
    yield made
    stop(made)


def started(folder: NodeFolder, runtime: Runtime, topology: str = "memory") -> NodeInfo:
    """A node that this call has started."""
    node, mine, process = start(folder, runtime, topology=topology)
    assert mine
    # Somebody has to take note of its end; elsewhere that is init.
    threading.Thread(target=process.wait, daemon=True).start()
    return node


def test_a_running_node_is_found_and_stopped(folder: NodeFolder, runtime: Runtime) -> None:
    node = started(folder, runtime)
    assert folder.running() == node
    assert start(folder, runtime)[:2] == (node, False)
    assert stop(folder) == node
    assert folder.running() is None
    assert stop(folder) is None
    assert "stopped" in folder.log_file.read_text()


def test_a_starting_node_is_stopped(folder: NodeFolder, runtime: Runtime) -> None:
    def go() -> None:
        with suppress(StoreUnavailable):
            start(folder, runtime, topology="rocksdb")

    thread = threading.Thread(target=go)
    thread.start()
    until(lambda: folder.starting() is not None)
    stop(folder)
    assert folder.is_free()
    thread.join()
    assert folder.running() is None


def test_no_node_is_started_once_it_is_cancelled(folder: NodeFolder, runtime: Runtime) -> None:
    with pytest.raises(StoreUnavailable, match="cancelled"):
        start(folder, runtime, is_cancelled=lambda: True)
    assert folder.is_free()
    assert not folder.data.exists()


def test_several_processes_that_start_at_once_share_one_node(
    folder: NodeFolder, runtime: Runtime
) -> None:
    found: list[tuple[NodeInfo, bool]] = []

    def go() -> None:
        node, mine, process = start(folder, runtime, topology="memory")
        found.append((node, mine))
        if process is not None:
            process.wait()

    threads = [threading.Thread(target=go, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(found) < 3:
        threads[0].join(0.05)
    assert len({node for node, _ in found}) == 1
    assert [mine for _, mine in found].count(True) == 1


def test_a_killed_node_leaves_nothing_in_the_way(folder: NodeFolder, runtime: Runtime) -> None:
    first = started(folder, runtime)
    os.kill(first.pid, signal.SIGKILL)
    while folder.running() is not None:
        pass
    assert json.loads(folder.state_file.read_text())["pid"] == first.pid
    second = started(folder, runtime)
    assert second.pid != first.pid
    assert folder.running() == second


def test_a_stale_state_file_names_no_node(folder: NodeFolder, runtime: Runtime) -> None:
    folder.token()
    state = {"pid": os.getpid(), "topology": "memory", "started_ms": 0}
    folder.state_file.write_text(json.dumps(state))
    folder.ready_file.write_text(json.dumps({"pid": os.getpid(), "port": 1}))
    assert folder.running() is None
    assert stop(folder) is None
    node = started(folder, runtime)
    assert node.port != 1
    folder.state_file.write_text("{")
    running = folder.running()
    assert (running.pid, running.port) == (node.pid, node.port)


def test_only_this_user_gets_in(folder: NodeFolder, runtime: Runtime) -> None:
    node = started(folder, runtime)
    assert stat.S_IMODE(folder.token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.log_file.stat().st_mode) & 0o077 == 0
    assert httpx.get(f"{node.url}/_xtdb/status").status_code == 401
    assert folder.token() == folder.token()
    assert folder.token() not in folder.log_file.read_text()


def test_an_empty_token_file_is_replaced(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "node")
    lost = folder.token()
    folder.token_file.write_text("")
    assert len(folder.token()) > 16
    assert folder.token() != lost
    assert stat.S_IMODE(folder.token_file.stat().st_mode) == 0o600
    assert [path.name for path in folder.root.iterdir()] == ["token"]


def test_a_token_that_others_can_read_is_refused(folder: NodeFolder, runtime: Runtime) -> None:
    folder.token()
    folder.token_file.chmod(0o644)
    with pytest.raises(StoreUnavailable, match="chmod 600"):
        start(folder, runtime, topology="memory")
    assert folder.running() is None


def test_a_port_in_use_is_reported(
    memory_node: NodeFolder, folder: NodeFolder, runtime: Runtime
) -> None:
    node = memory_node.running()
    with pytest.raises(StoreUnavailable, match="already in use"):
        start(folder, runtime, topology="memory", port=node.port)


def test_a_private_node_ends_with_the_process_that_started_it(
    runtime: Runtime, tmp_path: Path
) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from foredeck_xtdb.runtime import Java\n"
        "from foredeck_xtdb.node import private_node\n"
        "from foredeck_xtdb.runtime import Runtime\n"
        "runtime = Runtime(Path(sys.argv[1]), Java(sys.argv[2], int(sys.argv[3])))\n"
        "with private_node(Path(sys.argv[4]), runtime):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(60)\n"
    )
    java = runtime.java
    arguments = [str(runtime.folder), java.path, str(java.version), str(tmp_path / "private")]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "up\n"
    node = NodeFolder(tmp_path / "private")
    assert node.running() is not None
    process.kill()
    process.wait()
    process.stdout.close()
    while node.running() is not None:
        pass


def test_a_private_node_uses_what_it_runs_from_and_ends_with_its_block(
    runtime: Runtime, tmp_path: Path
) -> None:
    with private_node(tmp_path, runtime) as node:
        assert node.running() is not None
        with in_use(runtime.folder, exclusive=True) as descriptor:
            assert descriptor is None
    assert node.running() is None


def test_what_other_versions_have_installed_is_removed_unless_a_node_runs_from_it(
    tmp_path: Path,
) -> None:
    current = runtime_folder(tmp_path)
    old, used = (current.with_name(f"runtime-{name}") for name in ("old", "used"))
    for folder in (current, old, used):
        (folder / "lib").mkdir(parents=True)
    with in_use(used):
        remove_old(tmp_path)
        assert sorted(current.parent.iterdir()) == sorted([current, used])
    remove_old(tmp_path)
    assert list(current.parent.iterdir()) == [current]
