"""Who may read: this machine's user, in a browser opened with the token."""

from __future__ import annotations

import secrets
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foredeck.loopback import LOOPBACK

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
