"""The folder of one node: its data, token, state, log, and the lock that a running node holds."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.regular_files import SMALL, open_regular, open_to_read, read_text
from foredeck.store.clock import now_ms
from foredeck.store.location import is_held, sync_folder


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


class NodeFolder:
    """The files of one node: data, token, state, lock and log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        """XTDB's own folders."""
        self.restoring = root / "restoring"
        """Data of a backup that is being unpacked."""
        self.restored = root / "restored"
        """The complete data of a backup, about to take the place of `data`."""
        self.token_file = root / "token"
        """The bearer token, mode 0600."""
        self.state_file = root / "node.json"
        """Which node was started last."""
        self.ready_file = root / "ready.json"
        """Written by the node once it answers."""
        self.log_file = root / "node.log"
        """What the node has said."""
        self.tmp = root / "tmp"
        """The node's own temporary folder, for native libraries."""
        self._stopped_file = root / "down"

    def token(self) -> str:
        """The token, made at first use."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not (token := self._read_token()):
            draft = self.root / f"token.{os.getpid()}.{secrets.token_hex(4)}"
            draft.touch(mode=0o600)
            try:
                draft.write_text(secrets.token_urlsafe(32), encoding="utf-8")
                # A link appears with its content, and fails where another process was quicker: no
                # process ever reads half a token, and all agree on one.
                os.link(draft, self.token_file)
            except FileExistsError:
                continue
            finally:
                draft.unlink()
        return token

    def _read_token(self) -> str:
        """Empty where there is none. A power loss can leave an empty file: it is removed."""
        try:
            token = read_text(self.token_file).strip()
        except FileNotFoundError:
            return ""
        if not token:
            self.token_file.unlink(missing_ok=True)
        return token

    @property
    def is_stopped_by_user(self) -> bool:
        """Whether a user stopped the node on purpose: engines at work then leave it stopped."""
        return self._stopped_file.exists()

    def mark_stopped(self, stopped: bool) -> None:
        """Note that a user stops the node, or that it is started again."""
        if stopped:
            self._stopped_file.touch(mode=0o600)
        else:
            self._stopped_file.unlink(missing_ok=True)

    def running(self) -> NodeInfo | None:
        """The node that runs here and has been ready, if one does."""
        return None if self.is_free() else self.read_state()

    def is_free(self) -> bool:
        """Whether no process holds the folder: no node runs or is being started, and none is
        backed up or restored."""
        if not self.root.is_dir():
            return True
        with self.lock(shared=True) as descriptor:
            return descriptor is not None

    def starting(self) -> int | None:
        """The process that is being started here, 0 where it is about to be; None where nothing
        is, which only means something while the folder is not free."""
        try:
            return int(json.loads(read_text(self.state_file))["pid"])
        except (OSError, ValueError, TypeError, LookupError):
            return None

    @contextmanager
    def kept_stopped(self) -> Iterator[bool]:
        """Whether no node runs here; if so, none is started before the block ends."""
        self.token()
        with self.lock() as descriptor:
            if descriptor is not None:
                # A killed node leaves them; by now its process id may be another's.
                self.state_file.unlink(missing_ok=True)
                self.ready_file.unlink(missing_ok=True)
            yield descriptor is not None

    def adopt_restored(self) -> Path | None:
        """Put restored data in place, if there is any; where the older data went.

        For whoever holds the lock. The next start completes a restore that was killed.
        """
        if not self.restored.is_dir():
            return None
        moved_to = None
        if self.data.is_dir() and any(self.data.iterdir()):
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            moved_to = self.root / f"data-before-{stamp}-{secrets.token_hex(2)}"
            self.data.rename(moved_to)
        elif self.data.is_dir():
            self.data.rmdir()
        self.restored.rename(self.data)
        sync_folder(self.root)
        return moved_to

    def read_state(self) -> NodeInfo | None:
        """What the node and its starter wrote down about it; None before it has been ready."""
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
        """Write down what only the starter of a node knows; `pid` is 0 before it has a process."""
        started_ms = now_ms()
        state = {"pid": pid, "topology": topology, "started_ms": started_ms}
        draft = self.state_file.with_suffix(".new")
        draft.write_text(json.dumps(state), encoding="utf-8")
        draft.replace(self.state_file)

    @contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[int | None]:
        """A locked descriptor, or None where a node holds the lock, or is being started. `shared`:
        together with others that only look."""
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
        "Its data are damaged: `foredeck restore FILE --force` puts a backup in their place. "
        "Without one move {data} away and start it again; what this machine has written is "
        "delivered from its local copy, {home}/copies.",
    ),
    (
        r"PSQLException",
        "It needs Postgres: FOREDECK_XTDB_PGHOST, _PGPORT, _PGDATABASE, _PGUSER and _PGPASSWORD "
        "say where that is.",
    ),
)
"""What a log says, and what to do about it; the first that fits."""


def log_tail(log: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log after its first `since` bytes, without Java's stack
    traces."""
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
    """What a node wrote that began at the byte `since`, and what to do where that is known."""
    said = log_tail(log, since=since)
    root = log.parent
    for pattern, advice in _ADVICE:
        if re.search(pattern, said):
            return f"{said}\n{advice.format(data=root / 'data', home=root.parent)}"
    return said
