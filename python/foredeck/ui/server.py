"""Serving the inspector on loopback until it is interrupted."""

from __future__ import annotations

import gc
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import uvicorn

from foredeck.config import Config
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.reader import Reader
from foredeck.store.kind import nothing_stored, store_kind
from foredeck.ui.access import LOOPBACK, OnlyThisUser, listening_on
from foredeck.ui.app import make_app
from foredeck.ui.command import PORT


def serve(
    config: Config, port: int | None, *, opens: bool, edits: bool, follows: bool = False
) -> int:
    """Print the address, open it, and answer until Ctrl-C or SIGTERM. `follows`: the address is
    that of the session at work.

    Raises `NotFound` where nothing is stored, `PortTaken` for a `port` that is asked for.
    """
    kind = store_kind(config.store)
    if not kind.exists(config):
        raise NotFound(nothing_stored(config))
    reader = Reader(config, edits=edits)
    collect_seldom()
    # Versions before kept one token for all runs.
    (config.home / "ui-token").unlink(missing_ok=True)
    with listening_on([PORT, 0] if port is None else [port]) as listener:
        number = listener.getsockname()[1]
        app = OnlyThisUser(make_app(reader), number)
        address = f"http://{LOOPBACK}:{number}/{'follow' if follows else ''}?token={app.token}"
        print(address, flush=True)
        if port is None and number != PORT:
            print(
                f"foredeck: port {PORT} is taken by another program. Open no address of that port "
                "while this one runs: the other program would be sent this one's cookie.",
                file=sys.stderr,
            )
        threading.Thread(target=_warm, args=(reader,), name="warm", daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
        )
        with _door(config.home, address) if opens else nullcontext() as door:
            if door is not None:
                webbrowser.open(door.as_uri())
            server.run(sockets=[listener])
    return 0


def collect_seldom() -> None:
    """Look for garbage once half a million things have been made, and not after every 700: a page
    over a long session makes that many, all of which it needs, and looking took a fourth of its
    time."""
    gc.freeze()
    gc.set_threshold(500_000, 5, 5)


@contextmanager
def _door(home: Path, address: str) -> Iterator[Path]:
    """A page that leads to the address, for this user alone: what a browser is started with can be
    read by everybody on this machine. It goes with the server; a killed one leaves it, with a token
    that lets nobody in any more."""
    file = home / "ui.html"
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    leads = f'<meta http-equiv="refresh" content="0;url={address}">'
    file.write_text(
        f'<!doctype html><meta charset="utf-8">{leads}<a href="{address}">foredeck</a>\n'
    )
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _warm(reader: Reader) -> None:
    try:
        reader.warm()
    except ForedeckError as error:
        print(f"foredeck: {error}", file=sys.stderr)
