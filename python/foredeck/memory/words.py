"""Words of short texts, so that two of them can be compared whatever their language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from foredeck.model.names import WORD

_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts that do not put spaces between words: their pairs of letters are compared."""


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EMPTY = _split("""\
a an and are as at be been but by can do does for from had has have he her his i if in
into is it its me my no of on or our she so than that the their them then there these
they this those to us was we were what when which who will with would you your""")
_FRAME = _split("""\
user users prefers prefer preferred wants want wanted likes like asked asks asking says
said stated states decided decides decision chose chosen project team session please
always should must uses use used using""")
"""How a fact in the third person is put: words that say nothing of what it is about."""
_ENDINGS = ("ing", "ed", "es", "s")


def folded(text: str) -> str:
    """All words of a text in one case, one space between them: for finding one text literally in
    another."""
    return " ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def content_words(text: str) -> list[str]:
    """The words that a short text is about, in their order, each once, without endings; words that
    say nothing of that are left out."""
    found = (word for word in _words(folded(text)) if word not in _EMPTY and word not in _FRAME)
    return list(dict.fromkeys(_stem(word) for word in found))


def all_words(text: str) -> frozenset[str]:
    """Every word of a text of any length, as `content_words` writes them."""
    return frozenset(_stem(word) for word in _words(folded(text)))


def share_in(words: Collection[str], of: Collection[str]) -> float:
    """Which part of `words` is among `of`, from 0 to 1; 0 for no words."""
    return sum(word in of for word in words) / len(words) if words else 0.0


def likeness(one: Collection[str], other: Collection[str]) -> float:
    """How much two sets of words have in common: 1 for the same, 0 for nothing."""
    together = len({*one, *other})
    return len({*one} & {*other}) / together if together else 0.0


def _words(text: str) -> Iterator[str]:
    """Words in the order in which they first come; most of a long text is the same words again."""
    for word in dict.fromkeys(text.split()):
        if word.isascii() or not _UNSPACED.search(word):
            yield word
            continue
        for run in _UNSPACED.findall(word):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        yield from _UNSPACED.sub(" ", word).split()


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.isascii() and word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
