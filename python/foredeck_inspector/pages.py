"""One answer as a page, as JSON, and its tables as CSV; texts of others are escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from foredeck.config import Resolved
from foredeck.errors import ForedeckError
from foredeck.home import command_name
from foredeck.lookup.reader import Reader
from foredeck.model.figures import counted, lasted, money, short_count, when
from foredeck.model.quoting import printable
from foredeck.store.store import Store
from foredeck_inspector.tables import Table
from foredeck_inspector.work import Work

TEMPLATES, STATIC = (Path(__file__).parent / name for name in ("templates", "static"))
FORMS = (".json", ".csv")
"""Endings of other forms of a page."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """What a view answers; `data` is all that page and JSON show."""

    template: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    """Which entry of the navigation the page belongs to."""
    status: int = 200
    renews: int = 0
    """Seconds until a browser asks again; 0: never."""

    @property
    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        found = (value for value in self.data.values() if isinstance(value, Table))
        return {table.name: table for table in found}


class BadRequest(ForedeckError):
    """An address with a value that is none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page is asked for, and what it reads."""

    request: Request
    reader: Reader
    store: Store
    work: Work
    resolved: Resolved

    def part(self, name: str) -> Any:
        return self.request.path_params[name]

    @property
    def values(self) -> Mapping[str, str]:
        """The query values."""
        return self.request.query_params

    def number(self, name: str) -> int | None:
        """A whole number from 1 on. Raises `BadRequest`."""
        text = self.values.get(name, "")
        if not text:
            return None
        # `isdecimal` alone takes the digits of every script.
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise BadRequest(f"{name} must be a whole number of at least 1, not {text!r}.")
        return int(text)


def respond(request: Request, page: WebPage) -> Response:
    """The page in the form of its address's ending; with `table=` only that."""
    path, asked = request.url.path, str(request.url.query)
    if path.endswith(FORMS):
        named = request.query_params.get("table") or ""
        table = page.tables.get(named)
        if path.endswith(".csv") and not named:
            table = next(iter(page.tables.values()), None)
        if page.status == 200 and table is None and (named or path.endswith(".csv")):
            names = ", ".join(page.tables) or "none"
            return Response(f"This page's tables: {names}.\n", 404, media_type="text/plain")
        if path.endswith(".csv") and table is not None:
            text = table.to_csv().encode(errors="replace")
            name = f'attachment; filename="{table.name}.csv"'
            return Response(text, media_type="text/csv", headers={"content-disposition": name})
        # ASCII, so that a lone surrogate stays what it is.
        value = page.data if table is None else table.all_rows()
        body = json.dumps(_without_charts(value), ensure_ascii=True, indent=1, default=_to_json)
        return Response(body, page.status, media_type="application/json")
    # A stored text may hold lone surrogates, which UTF-8 cannot.
    html = render(page, path=path, asked=asked)
    return HTMLResponse(html.encode(errors="replace"), page.status)


def _without_charts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if not isinstance(each, Markup)}
    return value


def _to_json(value: Any) -> Any:
    return value.to_json() if isinstance(value, Table) else str(value)


def render(page: WebPage, *, path: str = "", asked: str = "") -> str:
    """The page as HTML, with everything stored escaped."""
    template = environment().get_template(page.template)
    query = dict(parse_qsl(asked))
    here = _addresses(path, query)
    return template.render(
        page=page, path=path, here=here, follows="follow" in query, foredeck=command_name(),
        **page.data,
    )  # fmt: skip


def _addresses(path: str, query: Mapping[str, str]) -> Callable[..., str]:
    def here(form: str = "", changed: Mapping[str, object] | None = None) -> str:
        values = {**query, **(changed or {})}
        kept = {name: value for name, value in values.items() if value not in (None, "")}
        return path + form + (f"?{urlencode(kept)}" if kept else "")

    return here


@cache
def environment() -> Environment:
    """A Jinja environment that escapes every value and refuses unknown names."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        when=when,
        short=short_count,
        printable=lambda text: printable(str(text)),
        counted=counted,
        lasted=lasted,
        money=money,
        markdown=markdown,
        coloured=coloured,
        marked=marked,
    )
    found.globals.update(link=link)
    return found


def segment(text: object) -> str:
    # The routes take a path that ends in `.json` for another form of a page.
    quoted = quote(str(text), safe="")
    form = next((each for each in FORMS if quoted.endswith(each)), None)
    return quoted if form is None else f"{quoted.removesuffix(form)}%2E{form[1:]}"


def link(*segments: object, **asked: object) -> str:
    """An address such as `/sessions/ID?view=calls`, without None values."""
    query = urlencode({k.rstrip("_"): v for k, v in asked.items() if v is not None and v != ""})
    return "/" + "/".join(map(segment, segments)) + (f"?{query}" if query else "")


# Text of others as HTML


MOST_COLOURED = 200_000
"""Longer code takes too long to colour."""
_LONGEST_LINE = 2_000
"""Some lexers take the square of a line's length."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="c-")
_WEB = re.compile(r"https?://", re.IGNORECASE)


def markdown(text: str, words: Sequence[str] = ()) -> Markup:
    # Safe as markup: html is off, so that all of the text is escaped.
    return Markup(_parser().render(printable(text), {"words": words}))


def coloured(text: str, name: str) -> Markup:
    """Code in colour, by the name of its file or language, if that is quick."""
    shown = printable(text)
    is_quick = len(shown) <= MOST_COLOURED and max(map(len, shown.split("\n"))) <= _LONGEST_LINE
    lexer = _lexer(name) if is_quick else None
    if lexer is None:
        return Markup.escape(shown)
    return Markup(highlight(shown, lexer, _FORMATTER).removesuffix("\n"))  # escaped by Pygments


def marked(text: str, words: Sequence[str]) -> Markup:
    shown = printable(text)
    if not words:
        return Markup.escape(shown)
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    parts, end = [], 0
    for found in pattern.finditer(shown):
        parts += [escape(shown[end : found.start()]), f"<mark>{escape(found[0])}</mark>"]
        end = found.end()
    return Markup("".join([*parts, escape(shown[end:])]))  # each part was escaped


@lru_cache(maxsize=256)
def _lexer(name: str) -> Lexer | None:
    # Never by its content, since such guesses go wrong.
    # Pygments would drop empty lines at both ends, and add a line feed.
    options: dict[str, Any] = {"stripnl": False, "ensurenl": False}
    try:
        if "." in name or "/" in name:
            return get_lexer_for_filename(name, **options)
        return get_lexer_by_name(name, **options)
    except ClassNotFound:
        return None


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "highlight": _fenced}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.add_render_rule("text", _text)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def _fenced(code: str, language: str, _attributes: str) -> str:
    return str(coloured(code, language)) if language else ""


def _text(_self: Any, tokens: Sequence[Token], at: int, _options: Any, env: Any) -> str:
    return str(marked(tokens[at].content, env["words"]))


def _image(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    # Fetching it would tell a stranger that the page is being read.
    return f"<em>image: {escape(tokens[at].content)}</em>"


def _link_open(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    # `javascript:`, `data:` and paths of this very server are no links.
    address = str(tokens[at].attrs.get("href") or "")
    if not _WEB.match(address):
        return f'<a title="{escape(address)}">'
    return f'<a href="{escape(address)}" rel="noopener noreferrer" target="_blank">'


def _heading(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    # The headings of a page are the page's own: screen readers go by them.
    return '<p class="md-heading"><strong>' if tokens[at].nesting == 1 else "</strong></p>"
