"""The status page: what goes on, as HTML and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from foredeck.model.figures import counted, short_count
from foredeck_agents.proxy.conversations import ConversationState

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
    # The address has the token in it.
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}h2{font-size:1rem;margin-bottom:0}p,ul{margin-top:.2rem}"
)


class StatusPage(NamedTuple):
    """What the page says."""

    kept: str
    upstreams: Mapping[str, str]
    requests: int
    states: Collection[ConversationState]
    notes: Sequence[str]


def status_page(page: StatusPage, request: Request, *, as_json: bool) -> Response:
    """The page, in the form that is asked for."""
    if as_json or "application/json" in request.headers.get("accept", ""):
        body = json.dumps(_data(page), indent=1)
        return Response(body, headers=_HEADERS, media_type="application/json")
    return HTMLResponse(_html(page), headers=_HEADERS)


def _data(page: StatusPage) -> dict[str, Any]:
    return {
        "kept": page.kept,
        "upstreams": dict(page.upstreams),
        "requests": page.requests,
        "conversations": [
            {
                "session": state.session,
                "api": state.api,
                "model": state.model,
                "prompt_tokens": state.prompt,
                "with_foredeck": state.managed,
                "without": state.passed,
                "own_calls": state.own_calls,
                "own_tokens": state.own_tokens,
                "notices": [*state.notices],
            }
            for state in reversed([*page.states])
        ],
        "problems": [*page.notes],
    }


def _html(page: StatusPage) -> str:
    parts = [f"<p>foredeck proxy: {escape(page.kept)}</p>"]
    parts += [_conversation(state) for state in reversed([*page.states])]
    if not page.states:
        parts.append(f"<p>{counted(page.requests, 'request')} so far, no conversation.</p>")
    parts.append(_listed(page.notes) if page.notes else "<p>Nothing has gone wrong.</p>")
    where = [f"{name}: {base}" for name, base in page.upstreams.items()]
    parts += ["<h2>Requests go to</h2>", _listed(where), '<p><a href="status.json">JSON</a></p>']
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>foredeck proxy</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _conversation(state: ConversationState) -> str:
    own = f" ({short_count(state.own_tokens)} tokens read for that)" if state.own_tokens else ""
    newest = f"{state.model}, newest prompt {short_count(state.prompt)} tokens"
    return (
        f"<h2>{escape(state.session)}  {escape(state.api)}: "
        f"{state.managed} requests with foredeck, {state.passed} without, "
        f"{state.own_calls} times its tools were called{own}</h2>"
        + (f"<p>{escape(newest)}</p>" if state.prompt else "")
        + (_listed([*state.notices]) if state.notices else "")
    )


def _listed(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"
