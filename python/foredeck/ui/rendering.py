"""Text of others as HTML: Markdown, code with its syntax in colour, words that were searched for.

What comes out is markup that these functions have made; every character of what came in is escaped.
Nothing in it is fetched: an image is its description, and only addresses of the web are links.
"""

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
"""Characters of code: a longer text takes too long to colour, and is shown as it is."""
_LONGEST_LINE = 2_000
"""Some lexers take time that grows with the square of a line's length."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="c-")
_WEB = re.compile(r"https?://", re.IGNORECASE)


def markdown(text: str, words: Sequence[str] = ()) -> Markup:
    """A text in Markdown as HTML, with `words` marked in it."""
    # html is off: all of the text is escaped
    return Markup(_parser().render(printable(text), {"words": words}))


def coloured(text: str, name: str) -> Markup:
    """Code in colour, by the name of its file or of its language; as it is where neither is known,
    or colouring would take too long."""
    shown = printable(text)
    lexer = _lexer(name) if _is_quick(shown) else None
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


def _is_quick(text: str) -> bool:
    return len(text) <= MOST_COLOURED and max(map(len, text.split("\n"))) <= _LONGEST_LINE


@lru_cache(maxsize=256)
def _lexer(name: str) -> Lexer | None:
    """By a file's name or a language's; never by its content, since such guesses go wrong."""
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
    return f"<em>image: {escape(tokens[at].content)}</em>"


def _link_open(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    address = str(tokens[at].attrs.get("href") or "")
    if not _WEB.match(address):
        return f'<a title="{escape(address)}">'
    return f'<a href="{escape(address)}" rel="noopener noreferrer" target="_blank">'


def _heading(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """As a strong line: the headings of a page are the page's own."""
    return '<p class="md-heading"><strong>' if tokens[at].nesting == 1 else "</strong></p>"
