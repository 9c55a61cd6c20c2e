"""The passage of a text that is most about a query."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from foredeck.model.names import UNSPACED, composed, is_unspaced

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Except tab and line feed; with other line ends."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_LINE_ENDS = re.compile(r"[ \t]+(?=\n)")
_ENDING = re.compile(r"(?:ations?|ions?|ings?|ies|ers?|ed|es|s|e|y)$")
_WORD_REST = re.compile(rf"[^\W_{UNSPACED}]*")
_JOINTS = ("", "_", ".", "/", "-", ":")
_SHORTEST_STEM = 3
_MOST_PLACES = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text, `…` where it was cut.

    `marks`: start and end of each matching word; `words`: how many different ones.
    """

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    start: int = 0
    words: int = 0

    def marked(self) -> str:
        """The text with signs around marks."""
        return "".join(f"«{piece}»" if marked else piece for piece, marked in self.pieces())

    def pieces(self) -> Iterator[tuple[str, bool]]:
        end = 0
        for start, stop in self.marks:
            yield self.text[end:start], False
            yield self.text[start:stop], True
            end = stop
        yield self.text[end:], False


def passage(text: str, words: Iterable[str], width: int) -> Passage:
    """About `width` characters where most words are close together, else the beginning."""
    # Blank lines and blanks at the end of a line take room and say nothing; a terminal would obey
    # escapes and other control characters.
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n")
    text = _CONTROLS.sub(" ", _ESCAPES.sub("", text))
    text = _LINE_ENDS.sub("", _BLANK_LINES.sub("\n", text)).strip("\n").rstrip()
    stems = {stem(word) for word in words}
    # Letters of another width stand at the same place, but where two of them are one.
    narrow = composed(text)
    places = _places(narrow if len(narrow) == len(text) else text, stems)
    start, end = 0, len(text)
    if len(text) > width:
        # A quarter of it for what comes before: a hit is read with the lines that lead to it.
        start = _line_start(text, max(0, _best_start(places, width) - width // 4), width // 4)
        end = min(len(text), start + width)
        start = max(0, min(start, end - width))
    before = "…" if start else ""
    shift = len(before) - start
    within = [place for place in places if place.start >= start and place.end <= end]
    return Passage(
        before + text[start:end].rstrip() + ("…" if end < len(text) else ""),
        tuple((first + shift, last + shift) for first, last in _joined(text, within)),
        start,
        sum(any(stem_of_query in place.stem for place in within) for stem_of_query in stems),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A word's place, in any form."""

    start: int
    end: int
    stem: str


def _places(text: str, stems: Set[str]) -> list[_Place]:
    if not stems:
        return []
    runs = {word for word in stems if is_unspaced(word)}
    spelt = _spelt(text, stems - runs)
    return sorted([*spelt, *_within_runs(text, runs)], key=lambda place: (place.start, -place.end))


def _within_runs(text: str, runs: Set[str]) -> Iterator[_Place]:
    matches = re.finditer(f"(?=({_either(runs)}))", text) if runs else ()
    for match, _ in zip(matches, range(_MOST_PLACES), strict=False):
        yield _Place(match.start(), match.end(1), match[1])


def _either(words: Set[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def _spelt(text: str, stems: Set[str]) -> list[_Place]:
    places: list[_Place] = []
    for match in re.finditer(_either(stems), text, re.IGNORECASE) if stems else ():
        if _begins_a_word(text, match.start()) and (not places or match.start() >= places[-1].end):
            end = _WORD_REST.match(text, match.end())
            places.append(
                _Place(match.start(), end.end() if end else match.end(), match[0].lower())
            )
        if len(places) == _MOST_PLACES:
            break
    return places


def _joined(text: str, places: Iterable[_Place]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for place in places:
        if joined and text[joined[-1][1] : place.start] in _JOINTS:
            joined[-1] = joined[-1][0], max(joined[-1][1], place.end)
        else:
            joined.append((place.start, place.end))
    return joined


def _begins_a_word(text: str, at: int) -> bool:
    if at == 0 or not text[at - 1].isalnum() or is_unspaced(text[at - 1]):
        return True
    return text[at].isupper() and (text[at - 1].islower() or text[at + 1 : at + 2].islower())


def stem(word: str) -> str:
    """A word without its ending, where safe."""
    cut = _ENDING.sub("", word.lower())
    return cut if len(cut) >= _SHORTEST_STEM else word.lower()


def _best_start(places: Sequence[_Place], width: int) -> int:
    """Start of the stretch with most different words; first of equals."""
    best, start = 0, 0
    for number, place in enumerate(places):
        near = places[number : number + 40]
        within = {other.stem for other in near if other.start < place.start + width // 2}
        if len(within) > best:
            best, start = len(within), place.start
    return start


def _line_start(text: str, at: int, most: int) -> int:
    line_start = text.rfind("\n", max(0, at - most), at) + 1
    if line_start or at <= most:
        return line_start
    following = text.find("\n", at, at + most) + 1
    return following or at
