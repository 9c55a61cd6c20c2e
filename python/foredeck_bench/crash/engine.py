"""An engine that is killed where a file says."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.rpc.server import serve
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch, Origin, Token
from foredeck_xtdb.node import own_node_folder

BEFORE_COMMIT = "before the commit"
AFTER_COMMIT = "between commit and reply"
AFTER_REPLY = "between reply and send"
AFTER_SEND = "between send and acknowledgement"
RANDOM = "at random"

INSIDE = (BEFORE_COMMIT, AFTER_COMMIT, AFTER_REPLY)
"""Points that only the engine's own process can hit."""
POINTS = (*INSIDE, AFTER_SEND, RANDOM)

SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)
REACHED_S = 10.0
Victim = Literal["engine", "pi", "both", "node"]


@dataclass(frozen=True, slots=True)
class KillPoint:
    """Where to kill, how often that is passed before, and which processes: `engine`, `host`, or the
    node of folder `node`."""

    point: str
    passed: int = 0
    engine: bool = True
    host: bool = False
    node: str | None = None


class Fuse:
    """The bench lays it; the engine reaches it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def lay(self, charge: KillPoint) -> None:
        """Lets the next process at this point kill what `charge` names."""
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(charge)))
        draft.replace(self._file)

    def is_left(self) -> bool:
        deadline = time.monotonic() + REACHED_S
        while self._file.exists():
            # The reply was read a moment ago: the process that wrote it is about to look.
            if time.monotonic() > deadline:
                self._file.unlink(missing_ok=True)
                return True
            time.sleep(0.005)
        return False

    def reach(self, point: str) -> None:
        """Kills, if the fuse was laid for this point."""
        try:
            state = json.loads(self._file.read_text())
        except FileNotFoundError:
            return
        charge = KillPoint(**state)
        if charge.point != point:
            return
        if charge.passed:
            self.lay(KillPoint(**{**asdict(charge), "passed": charge.passed - 1}))
            return
        self._file.unlink()
        _strike(charge)


def _strike(charge: KillPoint) -> None:
    if charge.node is not None:
        kill_node(Path(charge.node))
    if charge.host:
        os.kill(os.getppid(), SIGKILL)
    if charge.engine:
        os.kill(os.getpid(), SIGKILL)
        time.sleep(60)
        sys.exit("not killed")


def kill_node(home: Path) -> None:
    """Kills the XTDB node of a state folder, if one runs."""

    node = own_node_folder(home).running()
    if node is not None:
        with suppress(ProcessLookupError):
            os.kill(node.pid, SIGKILL)


class FusedStore:
    """A store that looks at the fuse around each commit of a call record."""

    def __init__(self, store: Any, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        is_call = any(document.type == "call" for document in batch.puts)
        if is_call:
            self._fuse.reach(BEFORE_COMMIT)
        token: Token = self._store.commit(batch, origin=origin)
        if is_call:
            self._fuse.reach(AFTER_COMMIT)
        return token


def main(file: str) -> int:
    """Serve one host, as `foredeck engine` does."""
    fuse = Fuse(Path(file))

    def make(config: Config, host: Host, **given: Any) -> Engine:
        store: Any = FusedStore(open_store(config), fuse)
        return Engine(config, host, store=store, **given)

    copier = _pass_answers_on(fuse)
    code = serve(make)
    copier.join(10)
    return code


def _pass_answers_on(fuse: Fuse) -> threading.Thread:
    """Copies stdout, and looks at the fuse after each answer to `context/assemble`."""
    host = os.dup(1)
    source, sink = os.pipe()
    os.dup2(sink, 1)
    os.close(sink)

    def copy() -> None:
        with os.fdopen(source, "rb") as lines, os.fdopen(host, "wb") as out:
            for line in lines:
                out.write(line)
                out.flush()
                if b'"ops":' in line:
                    fuse.reach(AFTER_REPLY)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
