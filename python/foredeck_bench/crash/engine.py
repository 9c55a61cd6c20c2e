from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.rpc.server import serve
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch, Origin, Token
from foredeck_bench.crash.fuse import AFTER_COMMIT, AFTER_REPLY, BEFORE_COMMIT, Fuse


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
