"""`foredeck ui`: the inspector, served on loopback to this machine's user alone."""

from __future__ import annotations

import secrets
import sys
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foredeck.cli.arguments import resolve_config
from foredeck.cli.arguments.use import UI_PORT
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.reader import Reader
from foredeck.lookup.sessions import collect_seldom
from foredeck.loopback import LOOPBACK, listening_on
from foredeck.store.place import nothing_stored, store_place
from foredeck_inspector.app import make_app
from foredeck_inspector.views.overview import newest_session
from foredeck_inspector.work import Work

COOKIE = "foredeck"
# Cookies know no ports, so under the first three the browser sends the token to every server on
# this machine; the last is foredeck's alone. Not every system resolves it, so the address is
# printed with the first.
NAMES = (LOOPBACK, "localhost", "[::1]", "foredeck.localhost")
# What is shown is what models and tools wrote: it must neither run nor fetch anything.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


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


class OnlyThisUser:
    """Refuses requests of others, and those of another site's page.

    The token ends with the server, and is in no file.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self.token = secrets.token_urlsafe(32)
        self._cookie = f"{COOKIE}-{port}"
        self._hosts = {f"{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        # A name that somebody else owns can be made to point to this machine.
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This server only answers on loopback.\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("These pages only read.\n", 405)
        # Any page on the web can make a browser send requests to this machine.
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(asked).get("token")
        if given is not None and self._is_token(given):
            return self._let_in(scope["path"], [(k, v) for k, v in asked if k != "token"])
        if self._is_token(cookie_parser(headers.get("cookie", "")).get(self._cookie, "")):
            return None
        return PlainTextResponse(
            "Open the address that `foredeck ui` printed: it carries the token.\n", 403
        )

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self.token.encode())

    def _let_in(self, path: str, asked: list[tuple[str, str]]) -> Response:
        """The address without the token, so that no history has it."""
        # One slash: `//name` would be another site.
        here = "/" + path.lstrip("/\\")
        response = RedirectResponse(here + (f"?{urlencode(asked)}" if asked else ""), 303)
        # Strict: the browser sends it with no request that another site has started.
        response.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
        return response


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
