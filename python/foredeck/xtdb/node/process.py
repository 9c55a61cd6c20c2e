"""Starting, finding and stopping the node of a state folder.

A running node holds a lock: the descriptor that was locked before it started is its own, too, so
the lock is free as soon as the process is gone, however it went, and no stale process id can
mislead anyone.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.errors import StoreUnavailable
from foredeck.store.location import sync_folder
from foredeck.xtdb.node.node_log import why_it_did_not_start
from foredeck.xtdb.node.runtime import Runtime, in_use

START_SECONDS = 60.0
STOP_SECONDS = 15.0
_POLL = 0.02
_LOG_BYTES = 5 * 1024 * 1024


GivenUp = Callable[[], bool]
"""Whether whoever wanted a node is gone, so that none is to be started any more."""


def never() -> bool:
    """A `GivenUp` of those who wait to the end."""
    return False


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A running node: where it answers, and which process it is."""

    pid: int
    port: int
    topology: str
    started_ms: int

    @property
    def url(self) -> str:
        """The address for `open_xtdb`."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """The files of one node: data, token, state, lock and log."""

    root: Path

    @property
    def data(self) -> Path:
        """XTDB's own folders."""
        return self.root / "data"

    @property
    def restoring(self) -> Path:
        """Data of a backup that is being unpacked."""
        return self.root / "restoring"

    @property
    def restored(self) -> Path:
        """Data of a backup, whole, that is to take the place of `data`."""
        return self.root / "restored"

    @property
    def token_file(self) -> Path:
        """The bearer token, mode 0600."""
        return self.root / "token"

    @property
    def state_file(self) -> Path:
        """Which node was started last."""
        return self.root / "node.json"

    @property
    def ready_file(self) -> Path:
        """Written by the node once it answers."""
        return self.root / "ready.json"

    @property
    def log_file(self) -> Path:
        """What the node has said."""
        return self.root / "node.log"

    @property
    def tmp(self) -> Path:
        """The node's own temporary folder, for native libraries."""
        return self.root / "tmp"

    def token(self) -> str:
        """The token, made at first use."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not (token := self._read_token()):
            draft = self.root / f"token.{os.getpid()}.{secrets.token_hex(4)}"
            draft.touch(mode=0o600)
            try:
                draft.write_text(secrets.token_urlsafe(32), encoding="utf-8")
                # Whole from the start; where somebody else is quicker, theirs is taken.
                os.link(draft, self.token_file)
            except FileExistsError:
                continue
            finally:
                draft.unlink()
        return token

    def _read_token(self) -> str:
        """Empty where there is none; one that was torn off by a power loss is removed."""
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""
        if not token:
            self.token_file.unlink(missing_ok=True)
        return token

    def put_down(self, down: bool | None = None) -> bool:
        """Whether a user has stopped the node on purpose, so that nobody but a user, or a new
        engine, starts it; with an argument, note that it is so."""
        note = self.root / "down"
        if down:
            note.touch(mode=0o600)
        elif down is not None:
            note.unlink(missing_ok=True)
        return note.exists()

    def running(self) -> NodeInfo | None:
        """The node that runs here and has been ready, if one does."""
        return None if self.is_free() else self._read_state()

    def is_free(self) -> bool:
        """Whether no process uses the folder: none runs or is being started, or looks into it
        at rest."""
        if not self.root.is_dir():
            return True
        with self._lock(fcntl.LOCK_SH) as descriptor:
            return descriptor is not None

    def starting(self) -> int | None:
        """The process that is being started here, 0 where it is about to be; None where nothing
        is, which only means something while the folder is not free."""
        try:
            return int(json.loads(self.state_file.read_text(encoding="utf-8"))["pid"])
        except (OSError, ValueError, TypeError, LookupError):
            return None

    @contextmanager
    def at_rest(self) -> Iterator[bool]:
        """Whether no node runs here; then none is started before the block ends."""
        self.token()
        with self._lock(fcntl.LOCK_EX) as descriptor:
            if descriptor is not None:
                # A killed node's: nobody is to take its process id for that of a running one.
                self._forget()
            yield descriptor is not None

    def adopt_restored(self) -> Path | None:
        """Put restored data in place, if there are any; where the data went that were there.

        For whoever holds the lock. A restore that was killed is finished by the next start.
        """
        if not self.restored.is_dir():
            return None
        aside = None
        if self.data.is_dir() and any(self.data.iterdir()):
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            aside = self.root / f"data-before-{stamp}-{secrets.token_hex(2)}"
            self.data.rename(aside)
        elif self.data.is_dir():
            self.data.rmdir()
        self.restored.rename(self.data)
        sync_folder(self.root)
        return aside

    def _read_state(self) -> NodeInfo | None:
        """What was written down about the node: by itself, and by the one who started it.

        The node's own word decides: it is there as soon as anyone can find the node ready.
        """
        try:
            ready = json.loads(self.ready_file.read_text(encoding="utf-8"))
            pid, port = int(ready["pid"]), int(ready["port"])
            written_ms = self.ready_file.stat().st_mtime_ns // 1_000_000
        except (OSError, ValueError, TypeError, LookupError):
            return None
        try:
            started = json.loads(self.state_file.read_text(encoding="utf-8"))
            if started["pid"] == pid:
                return NodeInfo(pid, port, str(started["topology"]), int(started["started_ms"]))
        except (OSError, ValueError, TypeError, LookupError):
            pass
        return NodeInfo(pid, port, "unknown", written_ms)

    def _forget(self) -> None:
        self.state_file.unlink(missing_ok=True)
        self.ready_file.unlink(missing_ok=True)

    def write_state(self, pid: int, topology: str) -> None:
        """Write down what only the starter of a node knows; `pid` 0 before there is a process."""
        started_ms = time.time_ns() // 1_000_000
        state = {"pid": pid, "topology": topology, "started_ms": started_ms}
        draft = self.state_file.with_suffix(".new")
        draft.write_text(json.dumps(state), encoding="utf-8")
        draft.replace(self.state_file)

    @contextmanager
    def _lock(self, mode: int) -> Iterator[int | None]:
        """A locked descriptor, or None where a node holds the lock (or is being started)."""
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield descriptor
        finally:
            os.close(descriptor)


def start(
    folder: NodeFolder,
    runtime: Runtime,
    *,
    topology: str = "rocksdb",
    port: int = 0,
    until_eof: bool = False,
    given_up: GivenUp = never,
) -> tuple[NodeInfo, bool, subprocess.Popen[bytes] | None]:
    """The node of `folder`: the one that runs, else a new one.

    Returns what it is, whether it was started by this call, and then its process. `until_eof`:
    the node ends when its standard input does, so with this process at the latest. Raises
    `StoreUnavailable`, with the end of the log, when it does not start, or where it is `given_up`.
    """
    folder.token()
    deadline = time.monotonic() + START_SECONDS
    while True:
        with folder._lock(fcntl.LOCK_EX) as descriptor:
            if given_up():
                raise StoreUnavailable("nobody needs the node any more")
            if descriptor is not None:
                process, written = _spawn(folder, runtime, topology, port, until_eof, descriptor)
                folder.write_state(process.pid, topology)
                return _await_ready(folder, process, deadline, written), True, process
            info = folder._read_state()
        if info is not None and _is_ready(folder, info.pid):
            return info, False, None
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"another process is starting the node in {folder.root}")
        time.sleep(_POLL)


def _is_ready(folder: NodeFolder, pid: int) -> bool:
    """Whether the process `pid` lives and has said that it answers."""
    try:
        os.kill(pid, 0)
        return bool(json.loads(folder.ready_file.read_text())["pid"] == pid)
    except (OSError, ValueError, LookupError):
        return False


def _spawn(
    folder: NodeFolder,
    runtime: Runtime,
    topology: str,
    port: int,
    until_eof: bool,
    descriptor: int,
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and how long the log was before it."""
    folder.put_down(False)
    folder.ready_file.unlink(missing_ok=True)
    folder.write_state(0, topology)
    shutil.rmtree(folder.tmp, ignore_errors=True)
    folder.tmp.mkdir(mode=0o700, parents=True)
    folder.adopt_restored()
    folder.data.mkdir(mode=0o700, exist_ok=True)
    _rotate(folder.log_file)
    arguments = ["--config", str(runtime.config_file(topology)), "--data-dir", str(folder.data)]
    arguments += ["--token-file", str(folder.token_file), "--ready-file", str(folder.ready_file)]
    arguments += ["--port", str(port), *(["--until-eof", "true"] if until_eof else [])]
    folder.log_file.touch(mode=0o600)
    with folder.log_file.open("ab") as log, in_use(runtime.folder) as used:
        if used is None:
            raise StoreUnavailable(f"{runtime.folder} is being removed: `foredeck xtdb install`")
        written = os.fstat(log.fileno()).st_size
        process = subprocess.Popen(
            [runtime.java.path, *_flags(runtime, folder), "foredeck.node.main", *arguments],
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


def _flags(runtime: Runtime, folder: NodeFolder) -> list[str]:
    flags = [
        "-Xms128m",
        "-Xmx1g",
        "-XX:MaxDirectMemorySize=1g",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # A commit runs through much code a few times: interpreted it takes a quarter longer.
        "-XX:CompileThresholdScaling=0.2",
        "-XX:+ExitOnOutOfMemoryError",
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        # Without it each answer waits for a delayed acknowledgement, 40 ms.
        "-Dsun.net.httpserver.nodelay=true",
        "-Dsun.net.httpserver.maxReqTime=60",
        # XTDB unpacks native libraries under a fixed name there.
        f"-Djava.io.tmpdir={folder.tmp}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSX",
        *("-cp", runtime.class_path),
    ]
    if runtime.java.version >= 22:
        flags.insert(0, "--enable-native-access=ALL-UNNAMED")
    if runtime.java.version >= 24:
        flags.insert(0, "--sun-misc-unsafe-memory-access=allow")
    return flags


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def _await_ready(
    folder: NodeFolder, process: subprocess.Popen[bytes], deadline: float, written: int
) -> NodeInfo:
    while not ((info := folder._read_state()) and info.pid == process.pid):
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


def stop(folder: NodeFolder) -> NodeInfo | None:
    """Stop the node of `folder`, also one that is just being started; what it was, None where
    none was ready.

    It gets time to answer what it is working on; after `STOP_SECONDS` it is killed, which loses
    nothing that was acknowledged. When this returns its process has ended.
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
    """The node's process, 0 where there is none yet, None where no node runs or will."""
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
    """A node for this process alone, in the folder `root`; it ends with the block, or with us."""
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
