"""Whether an answer has made use of an entry: by rare words of it that stand there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

ENOUGH_WORDS = 2
"""Of an entry that an answer must hold."""

_WORD = re.compile(r"[^\W_][\w.-]{3,}")


def named_in(answer: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Those of `entries` (id and text) of which two words stand in an answer that no other entry
    has. Words of fewer than four letters say nothing."""
    words = {id: set(_words(text)) for id, text in entries}
    holders = Counter(word for found in words.values() for word in found)
    said = set(_words(answer))
    return [
        id
        for id, found in words.items()
        if sum(holders[word] == 1 for word in found & said) >= ENOUGH_WORDS
    ]


def _words(text: str) -> list[str]:
    return [word.rstrip(".-").casefold() for word in _WORD.findall(text)]
