"""Serving the inspector on loopback until it is interrupted."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import webbrowser
from pathlib import Path

import uvicorn

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.lookup.errors import NotFound
from foredeck.lookup.reader import Reader
from foredeck.store.registry import store_kind
from foredeck.ui.access import OnlyThisUser, kept_token
from foredeck.ui.app import make_app
from foredeck.ui.command import PORT

LOOPBACK = "127.0.0.1"


class PortTaken(ForedeckError):
    """Another program listens there."""


def serve(config: Config, port: int | None, *, opens: bool, edits: bool) -> int:
    """Print the address, open it, and answer until Ctrl-C or SIGTERM.

    Raises `NotFound` where nothing is stored, `PortTaken` for a `port` that is asked for.
    """
    kind = store_kind(config.store)
    if not kind.exists(config):
        raise NotFound(
            f"nothing is stored yet: {kind.file(config)} does not exist. It is made when Pi runs "
            "with foredeck; --home or FOREDECK_HOME name another state folder."
        )
    reader = Reader(config, edits=edits)
    collect_seldom()
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        token = kept_token(config.home)
        address = f"http://{LOOPBACK}:{number}/?token={token}"
        print(address, flush=True)
        threading.Thread(target=_warm, args=(reader,), name="warm", daemon=True).start()
        if opens:
            webbrowser.open(_door(config.home, address).as_uri())
        app = OnlyThisUser(make_app(reader), token, number)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
        )
        server.run(sockets=[listener])
    return 0


def collect_seldom() -> None:
    """Look for garbage once half a million things have been made, and not after every 700: a page
    over a long session makes that many, all of which it needs, and looking took a fourth of its
    time."""
    gc.freeze()
    gc.set_threshold(500_000, 5, 5)


def _door(home: Path, address: str) -> Path:
    """A page that leads to the address, for this user alone: what a browser is started with can be
    read by everybody on this machine."""
    file = home / "ui.html"
    file.touch(mode=0o600)
    file.chmod(0o600)
    leads = f'<meta http-equiv="refresh" content="0;url={address}">'
    file.write_text(
        f'<!doctype html><meta charset="utf-8">{leads}<a href="{address}">foredeck</a>\n'
    )
    return file


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback: on the usual port, so that kept addresses stay good, or on any."""
    wanted = [PORT, 0] if port is None else [port]
    for number in wanted:
        try:
            return socket.create_server((LOOPBACK, number))
        except OSError:
            continue
    raise PortTaken(f"port {port} is taken: leave --port out, or name another.")


def _warm(reader: Reader) -> None:
    try:
        reader.warm()
    except ForedeckError as error:
        print(f"foredeck: {error}", file=sys.stderr)
