"""The passage of a text that speaks most of what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ENDING = re.compile(r"(?:ations?|ions?|ings?|ies|ers?|ed|es|s|e|y)$")
_SHORTEST_STEM = 3
_MOST_PLACES = 400


def passage(text: str, words: Iterable[str], width: int) -> str:
    """About `width` characters around the place where most of the words stand close together,
    white space and control
    characters as single spaces, `…` where it was cut; the beginning where none is found."""
    text = _SPACE.sub(" ", _ESCAPES.sub("", text)).strip()
    if len(text) <= width:
        return text
    start = _best_start(_places(text, words), width)
    return _cut(text, max(0, start - width // 4), width)


def _places(text: str, words: Iterable[str]) -> list[tuple[int, str]]:
    """Where the words stand, in any of their forms."""
    stems = {stem(word) for word in words}
    if not stems:
        return []
    either = "|".join(map(re.escape, sorted(stems, key=lambda word: (-len(word), word))))
    found = []
    for match in re.finditer(either, text, re.IGNORECASE):
        found.append((match.start(), match[0].lower()))
        if len(found) == _MOST_PLACES:
            break
    return found


def stem(word: str) -> str:
    """A word without its ending, as far as that is safe: enough to find its other forms."""
    cut = _ENDING.sub("", word.lower())
    return cut if len(cut) >= _SHORTEST_STEM else word.lower()


def _best_start(places: Sequence[tuple[int, str]], width: int) -> int:
    """Where the stretch begins that holds the most different words, the first of equals."""
    best, start = 0, 0
    for number, (position, _) in enumerate(places):
        within = {word for at, word in places[number : number + 40] if at < position + width // 2}
        if len(within) > best:
            best, start = len(within), position
    return start


def _cut(text: str, start: int, width: int) -> str:
    end = min(len(text), start + width)
    start = max(0, end - width)
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
