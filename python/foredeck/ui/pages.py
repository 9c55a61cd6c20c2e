"""One answer in two forms: a page for people, and its twin in JSON for programs. In a page, text of
others is HTML: Markdown, code in colour, words that were searched for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

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

from foredeck.home import command_name
from foredeck.model.figures import counted, lasted, money, short_count, when
from foredeck.model.quoting import printable

TEMPLATES, STATIC = (Path(__file__).parent / name for name in ("templates", "static"))
MOST_COLOURED = 200_000
"""Characters of code: a longer text takes too long to colour, and is shown as it is."""
_LONGEST_LINE = 2_000
"""Some lexers take time that grows with the square of a line's length."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="c-")
_WEB = re.compile(r"https?://", re.IGNORECASE)


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
        # ASCII, so that a lone surrogate stays what it is.
        body = json.dumps(page.data, ensure_ascii=True, indent=1, default=str)
        return Response(body, page.status, media_type="application/json")
    # A stored text may hold lone surrogates, which UTF-8 cannot.
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
        when=when,
        short=short_count,
        printable=lambda text: printable(str(text)),
        counted=counted,
        segment=segment,
    )
    found.filters.update(
        lasted=lasted, money=money, markdown=markdown, coloured=coloured, marked=marked
    )
    found.globals.update(link=link, foredeck=command_name())
    return found


def segment(text: object) -> str:
    """A text as one segment of a path: no slash of it parts it, and no ending asks for JSON."""
    # The routes take a path that ends in `.json` for the twin of a page.
    quoted = quote(str(text), safe="")
    return quoted.removesuffix(".json") + "%2Ejson" if quoted.endswith(".json") else quoted


def link(*segments: object, **asked: object) -> str:
    """An address of this server: `/sessions/ID?first=3`. Values that are None are left out."""
    query = urlencode({k.rstrip("_"): v for k, v in asked.items() if v is not None and v != ""})
    return "/" + "/".join(map(segment, segments)) + (f"?{query}" if query else "")


def markdown(text: str, words: Sequence[str] = ()) -> Markup:
    """A text in Markdown as HTML, with `words` marked in it."""
    # Safe as markup: html is off, so that all of the text is escaped.
    return Markup(_parser().render(printable(text), {"words": words}))


def coloured(text: str, name: str) -> Markup:
    """Code in colour, by the name of its file or of its language; as it is where neither is known,
    or colouring would take too long."""
    shown = printable(text)
    is_quick = len(shown) <= MOST_COLOURED and max(map(len, shown.split("\n"))) <= _LONGEST_LINE
    lexer = _lexer(name) if is_quick else None
    if lexer is None:
        return Markup.escape(shown)
    return Markup(highlight(shown, lexer, _FORMATTER).removesuffix("\n"))  # escaped by Pygments


def marked(text: str, words: Sequence[str]) -> Markup:
    """A text with the words in it marked, whatever their case."""
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
    """By a file's name or a language's."""
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
