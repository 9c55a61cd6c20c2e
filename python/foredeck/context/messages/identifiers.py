"""Names that one text can only have from another: identifiers, paths and numbers.

They stand for "the model used this": an answer that holds `parseReadRange` or `src/a/b.ts` has
them from somewhere. Ordinary words are left out, since they prove nothing.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$./-]*[A-Za-z0-9_$]")
_TELLING = re.compile(r"[0-9_./$]|[a-z][A-Z]")
MIN_CHARS = 4
MIN_DIGITS = 3
MAX_CHARS = 200


def identifiers(text: str) -> frozenset[str]:
    """The identifiers, paths and numbers in a text; of a path its last part too.

    A word counts where it has at least `MIN_CHARS` characters and looks unlike prose: a digit, an
    underscore, a dot or slash inside, or a capital after a small letter.
    """
    telling = _TELLING.search
    found = {word for word in filter(telling, set(_WORD.findall(text))) if len(word) <= MAX_CHARS}
    if "/" in text:
        tails = {word.rpartition("/")[2] for word in found if "/" in word}
        found |= {tail for tail in tails if telling(tail)}
    return frozenset([word for word in found if len(word) >= MIN_CHARS or _is_number(word)])


def _is_number(word: str) -> bool:
    return len(word) >= MIN_DIGITS and word.isdecimal()
