"""Names that one text can only have from another: identifiers, paths and numbers.

They show what the model has used: an answer that holds `parseReadRange` or `src/a/b.ts` has
them from somewhere. Ordinary words are left out, since they prove nothing.
"""

from __future__ import annotations

import re
import string

_ENDS = "./-"
"""Allowed within a word, and neither at its beginning nor at its end."""
_WORD_CHARS = f"{string.ascii_letters}{string.digits}_$"
_GAPS = bytes(code if chr(code) in _WORD_CHARS + _ENDS else ord(" ") for code in range(256))
"""Turns what belongs to no word into spaces."""
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
    # Bytes are cut into words in half the time that a pattern takes, and plain words, the most of
    # all, are told without one.
    spaced = text.encode("ascii", "replace").translate(_GAPS).decode("ascii")
    found = {
        word
        for each in set(spaced.split())
        if not (each.isalpha() and each.islower()) and telling(word := each.strip(_ENDS))
    }
    if "/" in text:
        tails = {word.rpartition("/")[2] for word in found if "/" in word}
        found |= {tail for tail in tails if telling(tail)}
    return frozenset([w for w in found if MIN_CHARS <= len(w) <= MAX_CHARS or _is_number(w)])


def inner_identifiers(text: str) -> frozenset[str]:
    """Identifiers of a text that also every longer text has which holds it: none that begins or
    ends where the text does."""
    # How escapes are read depends on what stands elsewhere.
    return frozenset() if "\\" in text else identifiers(text.strip(_WORD_CHARS + _ENDS))


def _is_number(word: str) -> bool:
    return MIN_DIGITS <= len(word) <= MAX_CHARS and word.isdecimal()
