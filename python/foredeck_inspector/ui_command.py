"""`foredeck ui`: the inspector, served on loopback."""

from __future__ import annotations

import sys
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import uvicorn

from foredeck.cli.arguments import resolve_config
from foredeck.cli.arguments.use import UI_PORT
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.reader import Reader
from foredeck.lookup.sessions import collect_seldom
from foredeck.loopback import LOOPBACK, listening_on
from foredeck.store.place import nothing_stored, store_place
from foredeck_inspector.access import OnlyThisUser
from foredeck_inspector.app import make_app
from foredeck_inspector.views.overview import newest_session
from foredeck_inspector.work import Work


def run(args: Namespace) -> int:
    """`foredeck ui`: prints the address, opens it, and answers until Ctrl-C or SIGTERM."""
    resolved = resolve_config(args)
    config = resolved.config
    place = store_place(config)
    if not place.exists():
        raise NotFound(nothing_stored(config))
    reader = Reader(config)
    collect_seldom()
    work = Work(reader)
    with listening_on([UI_PORT, 0] if args.port is None else [args.port]) as listener:
        number = listener.getsockname()[1]
        app = OnlyThisUser(make_app(reader, work, resolved), number)
        address = f"http://{LOOPBACK}:{number}/{'follow' if args.follow else ''}?token={app.token}"
        print(address, flush=True)
        if args.port is None and number != UI_PORT:
            print(
                f"foredeck: port {UI_PORT} is taken by another program. Open no address of that "
                "port while this one runs: the other program would be sent this one's cookie.",
                file=sys.stderr,
            )
        # The first page would wait for what the layers lack, on a large store for seconds.
        threading.Thread(target=_warm, args=(reader, work), name="warm", daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
        )
        with _redirecting_page(config.home, address) if not args.no_open else nullcontext() as page:
            if page is not None:
                webbrowser.open(page.as_uri())
            server.run(sockets=[listener])
    return 0


@contextmanager
def _redirecting_page(home: Path, address: str) -> Iterator[Path]:
    # Everybody on this machine can read the arguments that a browser is started with. A killed
    # server leaves the file, with a token that is not valid any more.
    file = home / "ui.html"
    # Made anew, and closed to others before the token is in it.
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


def _warm(reader: Reader, work: Work) -> None:
    try:
        with reader.store() as store:
            newest = newest_session(store)
        if newest is not None:
            work.book(newest[0])
        reader.warm()
    except ForedeckError as error:
        print(f"foredeck: {error}", file=sys.stderr)
