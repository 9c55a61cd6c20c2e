"""Starting and stopping the node of a state folder, and opening the store on it: it is started when
it is needed, and again when it has ended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from foredeck.errors import StoreUnavailable
from foredeck.regular_files import open_to_append, read_text
from foredeck.xtdb.node.folder import NodeFolder, NodeInfo, why_it_did_not_start
from foredeck.xtdb.node.runtime import Runtime, find_runtime, in_use, java_options

START_SECONDS = 60.0
STOP_SECONDS = 15.0
_POLL = 0.02
_LOG_BYTES = 5 * 1024 * 1024


IsCancelled = Callable[[], bool]
"""Whether whoever wanted a node has gone, so that none should be started any more."""


def never() -> bool:
    """An `IsCancelled` for those who wait to the end."""
    return False


def start(
    folder: NodeFolder,
    runtime: Runtime,
    *,
    topology: str = "rocksdb",
    port: int = 0,
    until_eof: bool = False,
    is_cancelled: IsCancelled = never,
) -> tuple[NodeInfo, bool, subprocess.Popen[bytes] | None]:
    """The node of `folder`: the one that runs, or else a new one.

    Returns the node, whether this call has started it, and its process if so. `until_eof`: the
    node ends when its standard input does, so with this process at the latest. Raises
    `StoreUnavailable`, with the end of the log, when it does not start, or when it is not wanted
    any more (`is_cancelled`).
    """
    folder.token()
    deadline = time.monotonic() + START_SECONDS
    while True:
        with folder.lock() as descriptor:
            if is_cancelled():
                raise StoreUnavailable("the start of the node was cancelled")
            if descriptor is not None:
                process, written = _spawn(folder, runtime, topology, port, until_eof, descriptor)
                folder.write_state(process.pid, topology)
                return _await_ready(folder, process, deadline, written), True, process
            info = folder.read_state()
        if info is not None and _stays(folder, info.pid):
            return info, False, None
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"another process is starting the node in {folder.root}")
        time.sleep(_POLL)


def _stays(folder: NodeFolder, pid: int) -> bool:
    """Whether the process `pid` is alive and has reported that it answers, and is not being
    stopped."""
    try:
        os.kill(pid, 0)
        is_ready = bool(json.loads(read_text(folder.ready_file))["pid"] == pid)
        return is_ready and not folder.is_stopped_by_user
    except (OSError, ValueError, LookupError):
        return False


def _spawn(
    folder: NodeFolder, runtime: Runtime, topology: str, port: int, until_eof: bool, descriptor: int
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the length of the log before it: what follows is its own."""
    folder.mark_stopped(False)
    folder.ready_file.unlink(missing_ok=True)
    folder.write_state(0, topology)
    shutil.rmtree(folder.tmp, ignore_errors=True)
    folder.tmp.mkdir(mode=0o700, parents=True)
    folder.adopt_restored()
    folder.data.mkdir(mode=0o700, exist_ok=True)
    if folder.log_file.exists() and folder.log_file.stat().st_size > _LOG_BYTES:
        folder.log_file.replace(folder.log_file.with_suffix(".log.1"))
    arguments = ["--config", str(runtime.config_file(topology)), "--data-dir", str(folder.data)]
    arguments += ["--token-file", str(folder.token_file), "--ready-file", str(folder.ready_file)]
    arguments += ["--port", str(port), *(["--until-eof", "true"] if until_eof else [])]
    folder.log_file.touch(mode=0o600)
    with open_to_append(folder.log_file) as log, in_use(runtime.folder) as used:
        if used is None:
            raise StoreUnavailable(f"{runtime.folder} is being removed: `foredeck xtdb install`")
        written = os.fstat(log.fileno()).st_size
        process = subprocess.Popen(
            [runtime.java.path, *java_options(runtime, folder), "foredeck.node.main", *arguments],
            stdin=subprocess.PIPE if until_eof else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A session of its own: the terminal's end and its Ctrl-C are not the node's.
            start_new_session=True,
            pass_fds=[descriptor, used],
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
            cwd=folder.root,
        )
    return process, written


def _await_ready(
    folder: NodeFolder, process: subprocess.Popen[bytes], deadline: float, written: int
) -> NodeInfo:
    while not ((info := folder.read_state()) and info.pid == process.pid):
        if process.poll() is not None:
            raise StoreUnavailable(
                f"the XTDB node did not start (exit code {process.returncode}); its log, "
                f"{folder.log_file}, says:\n{why_it_did_not_start(folder.log_file, written)}"
            )
        if time.monotonic() > deadline:
            process.kill()
            raise StoreUnavailable(
                f"the XTDB node was not ready in {START_SECONDS:.0f} s; its log is "
                f"{folder.log_file}"
            )
        time.sleep(_POLL)
    return info


def await_settled(folder: NodeFolder, when_waiting: Callable[[], None]) -> NodeInfo | None:
    """The node that answers, None where none runs; one that is being started or stopped is waited
    for, after a call of `when_waiting`.

    Raises `StoreUnavailable` where that takes longer than a start may.
    """
    deadline, waits = time.monotonic() + START_SECONDS, False
    while not folder.is_free():
        info = folder.running()
        if info is not None and _stays(folder, info.pid):
            return info
        if time.monotonic() > deadline:
            raise StoreUnavailable(
                f"another process has been starting, stopping, backing up or restoring the node in "
                f"{folder.root} for {START_SECONDS:.0f} s: `foredeck xtdb status` shows its state"
            )
        if not waits:
            waits = True
            when_waiting()
        time.sleep(_POLL)
    return None


def stop(folder: NodeFolder) -> NodeInfo | None:
    """Stop the node of `folder`, or one that is being started; the node, None if none was ready.

    It gets time to answer what it is working on; after `STOP_SECONDS` it is killed, which loses
    nothing that was acknowledged. When this returns, its process has ended.
    """
    info = folder.running()
    deadline = time.monotonic() + START_SECONDS
    while (pid := _process_of(folder)) is not None:
        if pid:
            _end(folder, pid)
        elif time.monotonic() > deadline:
            raise StoreUnavailable(f"another process is starting the node in {folder.root}")
        time.sleep(_POLL)
    return info


def _process_of(folder: NodeFolder) -> int | None:
    """The node's process; 0 where it has none yet, None where no node runs or is being started."""
    if folder.is_free():
        return None
    ready = folder.running()
    return folder.starting() if ready is None else ready.pid


def _end(folder: NodeFolder, pid: int) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if _wait(folder.is_free, STOP_SECONDS):
            return


def _wait(done: Callable[[], Any], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


@contextmanager
def private_node(root: Path, runtime: Runtime, topology: str = "memory") -> Iterator[NodeFolder]:
    """A node for this process alone, in the folder `root`; it ends with the block, or with this
    process, however that ends."""
    folder = NodeFolder(root)
    _, _, process = start(folder, runtime, topology=topology, until_eof=True)
    try:
        yield folder
    finally:
        stop(folder)
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(STOP_SECONDS)


MOST_STARTS = 5
"""How often a node that keeps ending is started again within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0
_FIRST_PAUSE = 0.1


def own_node_folder(home: Path) -> NodeFolder:
    """The node's folder in a state folder."""
    return NodeFolder(home / "xtdb")


class Supervisor:
    """Keeps the node of one state folder running while a store uses it."""

    def __init__(self, home: Path, topology: str) -> None:
        self.folder = own_node_folder(home)
        self._home = home
        self._topology = topology
        self._starts: deque[float] = deque()

    def ensure(self, is_cancelled: IsCancelled = never) -> str:
        """The address of the node, which runs when this returns; once it `is_cancelled` none is
        started, and `StoreUnavailable` is raised."""
        runtime = find_runtime(self._home)
        node, _, _ = start(self.folder, runtime, topology=self._topology, is_cancelled=is_cancelled)
        return node.url

    def revive(self, is_cancelled: IsCancelled = never) -> str:
        """As `ensure`, for a node that does not answer: with a pause that doubles each time. Raises
        `StoreUnavailable` for a node that keeps ending."""
        now = time.monotonic()
        while self._starts and now - self._starts[0] > WINDOW_SECONDS:
            self._starts.popleft()
        if len(self._starts) >= MOST_STARTS:
            raise StoreUnavailable(
                f"the XTDB node has ended {MOST_STARTS} times in {WINDOW_SECONDS:.0f} s; its log "
                f"says why: {self.folder.log_file}"
            )
        if self._starts:
            time.sleep(_FIRST_PAUSE * 2 ** len(self._starts))
        self._starts.append(now)
        return self.ensure(is_cancelled)
