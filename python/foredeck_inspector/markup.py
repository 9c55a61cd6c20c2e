"""Text of others as HTML, all of it escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from foredeck.model.quoting import printable

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
