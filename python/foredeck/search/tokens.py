"""The words of a text that the search index needs more of than FTS5 sees in them.

FTS5 splits at everything but letters and digits, so that the parts of `snake_case`, `dotted.names`
and paths are words of their own, and the whole is a phrase of them. What it does not split is
`camelCase`: its parts are indexed beside the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from foredeck.model.names import WORD, humps
from foredeck.search.secrets import signs_of_word

_BINDING = re.compile(r"[A-Za-z0-9][_./-][A-Za-z0-9]")
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"
_SEPARATE = bytes(byte if byte in _NAME_BYTES or byte > 127 else 32 for byte in range(256))

SHORTEST, LONGEST = 4, 160
"""How long an identifier is, in characters, that is found by a piece of it."""
_KNOWN_AT_MOST = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class Notable:
    """A word that is more than a word.

    name   the identifier or path; empty where it is none that a piece of it should find
    parts  those of its words in camelCase, space between
    signs  which kinds of secrets a text with this word may hold
    """

    name: str
    parts: str
    signs: int


class Vocabulary:
    """Tells words that need a closer look from all others. Each distinct word is looked at once.

    Splitting at bytes and looking words up takes a tenth of the time of a regular expression over
    the text, and most words of a text have been met before.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Notable | Literal[False]] = {}

    def notable(self, text: str) -> list[Notable]:
        """The distinct words of a text that are notable, in the order of their first places."""
        words = text.encode("utf-8", "replace").translate(_SEPARATE).split()
        found = [*map(self._known.get, words)]
        if None in found:
            self._learn(words)
            found = [*map(self._known.get, words)]
        return cast("list[Notable]", [*dict.fromkeys(filter(None, found))])

    def _learn(self, words: Iterable[bytes]) -> None:
        known = self._known
        if len(known) > _KNOWN_AT_MOST:
            known.clear()
        for word in words:
            if word not in known:
                known[word] = _closer(word.decode("utf-8", "replace")) or False


def _closer(word: str) -> Notable | None:
    """What is notable about a word, None for most."""
    signs = signs_of_word(word)
    if word.isalnum() and (word.islower() or word.isdigit()):
        return Notable("", "", signs) if signs else None
    name = word.strip("./-")
    parts = [hump for piece in WORD.findall(name) for hump in _camel(piece)]
    if not _is_identifier(name, parts):
        name = ""
    return Notable(name, " ".join(parts), signs) if name or parts or signs else None


def _is_identifier(name: str, parts: list[str]) -> bool:
    if not SHORTEST <= len(name) <= LONGEST:
        return False
    return bool(parts) or _BINDING.search(name) is not None


def _camel(word: str) -> list[str]:
    """The parts of a word in camelCase; none of any other word."""
    if word.islower() or not word.isascii() or len(word) > LONGEST:
        return []
    parts = humps(word)
    return parts if len(parts) > 1 and not word.isupper() and not word.isdecimal() else []
