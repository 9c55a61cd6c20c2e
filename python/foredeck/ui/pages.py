"""One answer in two forms: a page for people, and its twin in JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from foredeck.home import command_name
from foredeck.model.figures import counted, lasted, money, short_count, when
from foredeck.model.quoting import printable
from foredeck.ui.rendering import coloured, markdown, marked

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class WebPage:
    """What a view answers. `data` is all that the template shows, and the JSON twin."""

    template: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    """Which entry of the navigation the page belongs to."""
    status: int = 200


def respond(request: Request, page: WebPage) -> Response:
    """The page in the form that the address asks for: JSON where its path ends in `.json`."""
    if request.url.path.endswith(".json"):
        body = json.dumps(page.data, ensure_ascii=True, indent=1, default=str)
        return Response(body, page.status, media_type="application/json")
    html = render(page, path=request.url.path, asked=str(request.url.query))
    return HTMLResponse(html.encode(errors="replace"), page.status)


def render(page: WebPage, *, path: str = "", asked: str = "") -> str:
    """The page as HTML. Everything that is stored is escaped: none of it can become markup."""
    twin = f"{path}.json" + (f"?{asked}" if asked else "")
    template = environment().get_template(page.template)
    follows = "follow=" in asked
    return template.render(page=page, twin=twin, path=path, follows=follows, **page.data)


@cache
def environment() -> Environment:
    """Jinja with every value escaped, and an unknown name an error."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        when=when, short=short_count, printable=_visible, counted=counted, segment=segment
    )
    found.filters.update(
        lasted=lasted, money=money, markdown=markdown, coloured=coloured, marked=marked
    )
    found.globals.update(link=link, foredeck=command_name())
    return found


def segment(text: object) -> str:
    """A text as one segment of a path: no slash of it parts it, and no ending asks for JSON."""
    quoted = quote(str(text), safe="")
    return quoted.removesuffix(".json") + "%2Ejson" if quoted.endswith(".json") else quoted


def link(*segments: object, **asked: object) -> str:
    """An address of this server: `/sessions/ID?first=3`. Values that are None are left out."""
    query = urlencode({k.rstrip("_"): v for k, v in asked.items() if v is not None and v != ""})
    return "/" + "/".join(map(segment, segments)) + (f"?{query}" if query else "")


def _visible(text: object) -> str:
    """With control characters written as escapes, so that what was stored can be seen."""
    return printable(str(text))
