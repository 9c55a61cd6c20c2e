"""From what a user types to what FTS5 is asked. Any text is a query; none is a syntax error.

Words are found stemmed and in their irregular forms; those that say nothing are passed over in a
query that has others. An identifier or a path (`max_retries`, `src/app.py`) is found whole, as a
phrase, and by its parts. `"double quotes"` make a phrase, a `*` at the end a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from foredeck.model.names import WORD, humps
from foredeck.search.words import STOP_WORDS, forms_of

MOST_TERMS = 48
"""How many terms of a query are searched for; what follows is ignored."""

Phrase = tuple[str, ...]
"""Words that follow each other, in lower case: letters and digits only."""

_CHUNK = re.compile(r'"([^"]*)"|(\S+)')
_ENDING = re.compile(r"(?<=\w)['’](?:s|d|ll|m|re|ve)\b", re.IGNORECASE)
"""Of `Ann's` or `we'll`: to FTS5 it would be a word."""
_NEGATION = re.compile(r"\w+n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for. `phrases`: a text that holds any of them holds the term; `is_prefix`:
    their last words are only beginnings."""

    text: str
    phrases: tuple[Phrase, ...]
    is_prefix: bool = False

    @property
    def matches(self) -> list[str]:
        """As FTS5 is asked for each phrase."""
        return [f'"{" ".join(words)}"' + "*" * self.is_prefix for words in self.phrases]

    @property
    def match(self) -> str:
        """As FTS5 is asked for all of them."""
        return " OR ".join(self.matches)


def parse_query(text: str) -> list[Term]:
    """The terms of a query, each once, in the order in which they were typed."""
    terms: dict[str, Term] = {}
    for quoted, chunk in _CHUNK.findall(text):
        for term in _quoted(quoted) if quoted else _terms(chunk):
            terms.setdefault(term.text, term)
    telling = [term for term in terms.values() if term.text not in STOP_WORDS]
    return (telling or list(terms.values()))[:MOST_TERMS]


def is_name(text: str) -> bool:
    """Whether a query is one identifier, path or word, and nothing else."""
    return '"' not in text and len(text.split()) == 1


def _quoted(text: str) -> Iterator[Term]:
    if words := _words(text):
        yield Term(" ".join(words), (words,))


def _terms(chunk: str) -> Iterator[Term]:
    chunk = _NEGATION.sub("not", _ENDING.sub("", chunk))
    whole, is_prefix = _words(chunk), chunk.endswith("*")
    if whole and (is_prefix or len(whole) > 1):
        yield Term(" ".join(whole) + "*" * is_prefix, (whole,), is_prefix)
    words = [] if is_prefix and len(whole) == 1 else list(whole)
    words += [part for word in WORD.findall(chunk) for part in _parts(word)]
    yield from (Term(word, tuple((form,) for form in forms_of(word))) for word in words)


def _words(text: str) -> Phrase:
    return tuple(word.lower() for word in WORD.findall(text))


def _parts(word: str) -> list[str]:
    """Those of a word in camelCase."""
    parts = humps(word) if word.isascii() and not word.isdecimal() else []
    return parts if len(parts) > 1 else []
