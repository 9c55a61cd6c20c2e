"""The node of a state folder: its files, its lock, and how it starts and stops."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.regular_files import SMALL, open_regular, open_to_append, open_to_read, read_text
from foredeck.store.clock import now_ms
from foredeck.store.location import is_held, make_once, private_draft
from foredeck_xtdb.runtime import Runtime, in_use, java_options


@dataclass(frozen=True, slots=True)
class NodeInfo:
    pid: int
    port: int
    topology: str
    started_ms: int

    @property
    def url(self) -> str:
        """The address for `open_xtdb`."""
        return f"http://127.0.0.1:{self.port}"


class NodeFolder:
    """The files of one node: data, token, state, lock and log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        """XTDB's own folders."""
        self.token_file = root / "token"
        """The bearer token, mode 0600."""
        self.state_file = root / "node.json"
        """Which node was started last."""
        self.ready_file = root / "ready.json"
        """Written by the node once it answers."""
        self.log_file = root / "node.log"
        """What the node has said."""
        self.tmp = root / "tmp"
        self._stopped_file = root / "down"

    def token(self) -> str:
        """The token, made at first use."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not (token := self._read_token()):
            make_once(self.token_file, secrets.token_urlsafe(32).encode())
        return token

    def _read_token(self) -> str:
        """The node's token; an empty file, as after a power loss, is removed."""
        try:
            token = read_text(self.token_file).strip()
        except FileNotFoundError:
            return ""
        if not token:
            self.token_file.unlink(missing_ok=True)
        return token

    @property
    def is_stopped_by_user(self) -> bool:
        """Whether a user stopped the node, which engines respect."""
        return self._stopped_file.exists()

    def mark_stopped(self, stopped: bool) -> None:
        """Note that a user stops the node, or that it is started again."""
        if stopped:
            self._stopped_file.touch(mode=0o600)
        else:
            self._stopped_file.unlink(missing_ok=True)

    def running(self) -> NodeInfo | None:
        return None if self.is_free() else self.read_state()

    def is_free(self) -> bool:
        """Whether nothing holds the folder: no node, backup or restore."""
        if not self.root.is_dir():
            return True
        with self.lock(shared=True) as descriptor:
            return descriptor is not None

    def starting(self) -> int | None:
        """The process of a starting node, 0 before it has one; None without a start."""
        try:
            return int(json.loads(read_text(self.state_file))["pid"])
        except (OSError, ValueError, TypeError, LookupError):
            return None

    @contextmanager
    def kept_stopped(self) -> Iterator[bool]:
        """Whether no node runs here; none is started within the block then."""
        self.token()
        with self.lock() as descriptor:
            if descriptor is not None:
                # A killed node leaves them; by now its process id may be another's.
                self.state_file.unlink(missing_ok=True)
                self.ready_file.unlink(missing_ok=True)
            yield descriptor is not None

    def read_state(self) -> NodeInfo | None:
        """What is written down about the node; None before it was ready."""
        # The node's own file decides: it appears at the moment when the node is ready, whereas its
        # starter may be killed before it writes.
        try:
            ready = json.loads(read_text(self.ready_file))
            pid, port = int(ready["pid"]), int(ready["port"])
            written_ms = self.ready_file.stat().st_mtime_ns // 1_000_000
        except (OSError, ValueError, TypeError, LookupError):
            return None
        try:
            started = json.loads(read_text(self.state_file))
            if started["pid"] == pid:
                return NodeInfo(pid, port, str(started["topology"]), int(started["started_ms"]))
        except (OSError, ValueError, TypeError, LookupError):
            pass
        return NodeInfo(pid, port, "unknown", written_ms)

    def write_state(self, pid: int, topology: str) -> None:
        started_ms = now_ms()
        state = {"pid": pid, "topology": topology, "started_ms": started_ms}
        with private_draft(self.state_file) as draft:
            draft.write(json.dumps(state).encode())

    @contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[int | None]:
        """A locked descriptor, or None if a node holds the lock."""
        # A node inherits the descriptor that was locked before it started. So the lock is free as
        # soon as the process is gone, however it ended, and no stale process id can mislead anyone.
        descriptor = open_regular(self.root / "lock", os.O_RDWR | os.O_CREAT)
        try:
            yield None if is_held(descriptor, shared=shared) else descriptor
        finally:
            os.close(descriptor)


_ADVICE = (
    (r"No space left on device", "The disk is full: make room, then start it again."),
    (r"RocksDBException.*[Ll]ock", "Another process uses {data}: end it, then start this one."),
    (
        r"RocksDBException.*/index/",
        "Its index is damaged: delete {data}/index, from which nothing is lost; it is rebuilt.",
    ),
    (
        r"RocksDBException",
        "Its data are damaged: move {data} away, and `foredeck restore FILE` brings a backup back. "
        "Without one start it again; what this machine has written is delivered from its local "
        "copy, {home}/copies.",
    ),
    (
        r"PSQLException",
        "It needs Postgres: FOREDECK_XTDB_PGHOST, _PGPORT, _PGDATABASE, _PGUSER and _PGPASSWORD "
        "say where that is.",
    ),
)
"""What a log says, and what to do about it."""


def log_tail(log: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log after `since` bytes, without stack traces."""
    try:
        with open_to_read(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - SMALL))
            text = file.read(SMALL).decode("utf-8", "replace")
    except OSError:
        return ""
    kept = [line for line in text.splitlines() if not line.startswith("\t")]
    return "\n".join(kept[-lines:])


def why_it_did_not_start(log: Path, since: int) -> str:
    said = log_tail(log, since=since)
    root = log.parent
    for pattern, advice in _ADVICE:
        if re.search(pattern, said):
            return f"{said}\n{advice.format(data=root / 'data', home=root.parent)}"
    return said


START_SECONDS = 60.0
STOP_SECONDS = 15.0
_POLL = 0.02
_LOG_BYTES = 5 * 1024 * 1024


IsCancelled = Callable[[], bool]
"""Whether nobody wants the node any more."""


def never() -> bool:
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
    """The running node of `folder`, or a new one, and whether this call started it.

    `until_eof`: the node ends with this process at the latest. Raises `StoreUnavailable`, with the
    end of the log.
    """
    folder.token()
    for _ in _looks(START_SECONDS):
        with folder.lock() as descriptor:
            if is_cancelled():
                raise StoreUnavailable("the start of the node was cancelled")
            if descriptor is not None:
                process, written = _spawn(folder, runtime, topology, port, until_eof, descriptor)
                folder.write_state(process.pid, topology)
                return _await_ready(folder, process, written), True, process
            info = folder.read_state()
        if info is not None and _stays(folder, info.pid):
            return info, False, None
    raise StoreUnavailable(f"another process is starting the node in {folder.root}")


def _looks(seconds: float) -> Iterator[None]:
    """The looks at what is waited for, until it has taken too long."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() <= deadline:
        time.sleep(_POLL)
        yield


def _stays(folder: NodeFolder, pid: int) -> bool:
    try:
        os.kill(pid, 0)
        is_ready = bool(json.loads(read_text(folder.ready_file))["pid"] == pid)
        return is_ready and not folder.is_stopped_by_user
    except (OSError, ValueError, LookupError):
        return False


def _spawn(
    folder: NodeFolder, runtime: Runtime, topology: str, port: int, until_eof: bool, descriptor: int
) -> tuple[subprocess.Popen[bytes], int]:
    folder.mark_stopped(False)
    folder.ready_file.unlink(missing_ok=True)
    folder.write_state(0, topology)
    shutil.rmtree(folder.tmp, ignore_errors=True)
    folder.tmp.mkdir(mode=0o700, parents=True)
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
            [
                runtime.java.path,
                *java_options(runtime, folder.tmp),
                "foredeck.node.main",
                *arguments,
            ],
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


def _await_ready(folder: NodeFolder, process: subprocess.Popen[bytes], written: int) -> NodeInfo:
    for _ in _looks(START_SECONDS):
        info = folder.read_state()
        if info is not None and info.pid == process.pid:
            return info
        if process.poll() is not None:
            raise StoreUnavailable(
                f"the XTDB node did not start (exit code {process.returncode}); its log, "
                f"{folder.log_file}, says:\n{why_it_did_not_start(folder.log_file, written)}"
            )
    process.kill()
    raise StoreUnavailable(
        f"the XTDB node was not ready in {START_SECONDS:.0f} s; its log is {folder.log_file}"
    )


def await_settled(folder: NodeFolder, when_waiting: Callable[[], None]) -> NodeInfo | None:
    """The node once it has started or stopped, if it runs. Raises `StoreUnavailable`."""
    for look, _ in enumerate(_looks(START_SECONDS)):
        if folder.is_free():
            return None
        info = folder.running()
        if info is not None and _stays(folder, info.pid):
            return info
        if not look:
            when_waiting()
    raise StoreUnavailable(
        f"another process has been starting, stopping, backing up or restoring the node in "
        f"{folder.root} for {START_SECONDS:.0f} s: `foredeck xtdb status` shows its state"
    )


def stop(folder: NodeFolder) -> NodeInfo | None:
    """Stops the node, after its current work; killed after `STOP_SECONDS`, which loses nothing
    acknowledged."""
    info = folder.running()
    for _ in _looks(START_SECONDS):
        pid = _process_of(folder)
        if pid is None:
            return info
        if pid:
            _end(folder, pid)
    raise StoreUnavailable(f"another process is starting the node in {folder.root}")


def _process_of(folder: NodeFolder) -> int | None:
    if folder.is_free():
        return None
    ready = folder.running()
    return folder.starting() if ready is None else ready.pid


def _end(folder: NodeFolder, pid: int) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if any(folder.is_free() for _ in _looks(STOP_SECONDS)):
            return


@contextmanager
def private_node(root: Path, runtime: Runtime, topology: str = "memory") -> Iterator[NodeFolder]:
    """A node that ends with the block, or with this process."""
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


def own_node_folder(home: Path) -> NodeFolder:
    """The node's folder in a state folder."""
    return NodeFolder(home / "xtdb")
