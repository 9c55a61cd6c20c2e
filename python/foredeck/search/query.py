"""From what a user types to what FTS5 is asked. Any text is a query; none is a syntax error.

Words are found stemmed. An identifier or a path (`max_retries`, `src/app.py`) is found whole, as a
phrase, and by its parts. `"double quotes"` make a phrase, a `*` at the end a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.search.tokens import WORD, humps

MOST_TERMS = 48
"""Terms of a query that are looked for; what follows is ignored."""

_CHUNK = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for: a word, or several that follow each other.

    `prefix`: the last word is only the beginning of one.
    """

    words: tuple[str, ...]
    prefix: bool = False

    @property
    def text(self) -> str:
        """As a user would write it."""
        return " ".join(self.words) + ("*" if self.prefix else "")

    @property
    def match(self) -> str:
        """As FTS5 is asked for it. The words hold letters and digits only."""
        return f'"{" ".join(self.words)}"' + ("*" if self.prefix else "")


def parse_query(text: str) -> list[Term]:
    """The terms of a query, each once, in the order in which they were typed."""
    terms: dict[Term, None] = {}
    for quoted, chunk in _CHUNK.findall(text):
        if quoted:
            terms.update(dict.fromkeys(_phrase(quoted)))
        else:
            terms.update(dict.fromkeys(_terms(chunk)))
    return list(terms)[:MOST_TERMS]


def is_name(text: str) -> bool:
    """Whether a query is one identifier, path or word, and nothing else."""
    return '"' not in text and len(text.split()) == 1


def _phrase(text: str) -> Iterable[Term]:
    words = tuple(word.lower() for word in WORD.findall(text))
    return [Term(words)] if words else []


def _terms(chunk: str) -> Iterable[Term]:
    words = WORD.findall(chunk)
    if not words:
        return
    prefix = chunk.endswith("*")
    whole = tuple(word.lower() for word in words)
    yield Term(whole, prefix)
    if len(whole) > 1:
        yield from (Term((word,)) for word in whole)
    for word in words:
        parts = humps(word) if word.isascii() else []
        if len(parts) > 1 and not word.isdecimal():
            yield from (Term((part,)) for part in parts)


def any_of(terms: Iterable[Term]) -> str:
    """FTS5's expression for whatever holds one of the terms."""
    return " OR ".join(term.match for term in terms)
