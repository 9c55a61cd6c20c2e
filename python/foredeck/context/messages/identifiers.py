"""Names that one text can only have from another: identifiers, paths and numbers.

They stand for "the model used this": an answer that holds `parseReadRange` or `src/a/b.ts` has
them from somewhere. Ordinary words are left out, since they prove nothing.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$./-]*[A-Za-z0-9_$]")
_TELLING = re.compile(r"[0-9_./$]|[a-z][A-Z]")
_ESCAPE = re.compile(r"\\(?:[bnrt]|u[0-9a-fA-F]{4})")
_DRIVE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:\\")
MIN_CHARS = 4
MIN_DIGITS = 3
MAX_CHARS = 200


def identifiers(text: str) -> frozenset[str]:
    """The identifiers, paths and numbers in a text; of a path its last part too.

    A word counts where it has at least `MIN_CHARS` characters and looks unlike prose: a digit, an
    underscore, a dot or slash inside, or a capital after a small letter. The letter of an escape,
    as in a string literal's `\\nCommand`, belongs to no word; in a path of Windows it does.
    """
    if "\\" in text and not _DRIVE.search(text):
        text = _ESCAPE.sub(" ", text)
    telling = _TELLING.search
    # Plain words, the most of all, are told without the pattern: that halves the time.
    found = {
        word
        for word in set(_WORD.findall(text))
        if not (word.isalpha() and word.islower()) and telling(word)
    }
    if "/" in text:
        tails = {word.rpartition("/")[2] for word in found if "/" in word}
        found |= {tail for tail in tails if telling(tail)}
    return frozenset([w for w in found if MIN_CHARS <= len(w) <= MAX_CHARS or _is_number(w)])


def _is_number(word: str) -> bool:
    return MIN_DIGITS <= len(word) <= MAX_CHARS and word.isdecimal()
