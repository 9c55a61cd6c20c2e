"""Which version of a text each of its lines came with. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

NEAR = 200
"""How many lines around a change are searched for the place where the texts are equal again."""

ANCHOR = 3
"""How many equal lines in a row identify a place: a single one, such as a brace, may be
anywhere."""

EXACT_LINES = 2000
"""In stretches of more lines than that, frequent lines are not compared: it would take too long."""


def line_origins(texts: Iterable[str], returns: Mapping[int, int] | None = None) -> list[int]:
    """Of each line of the last text, the number of the text, from 0, that brought it.

    The texts are consumed one after the other; two of them are held at a time. `returns`: of texts
    that are an earlier one again, the number of that one (`returns_of`).
    """
    returns = returns or {}
    kept: dict[int, list[int]] = {earlier: [] for earlier in returns.values()}
    before: str | None = None
    origins: list[int] = []
    for number, text in enumerate(texts):
        if number in returns:
            origins = list(kept[returns[number]])
        elif before is None:
            origins = [number] * len(lines_of(text))
        elif text != before:
            _carry(before, text, origins, number)
        if number in kept:
            kept[number] = list(origins)
        before = text
    return origins


def returns_of(hashes: Sequence[str]) -> dict[int, int]:
    """Which texts, by their hashes, are an earlier one again, with others in between: a file was
    brought back to what it was, and its lines were not written anew."""
    first: dict[str, int] = {}
    for number, digest in enumerate(hashes):
        first.setdefault(digest, number)
    return {
        number: first[digest]
        for number, digest in enumerate(hashes)
        if first[digest] != number and hashes[number - 1] != digest
    }


def lines_of(text: str) -> list[str]:
    """The lines of a text; a final line feed ends the last one and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def _carry(old: str, new: str, origins: list[int], number: int) -> None:
    """Make the origins of the lines of `old` those of `new`.

    Most of a long text is as it was: only what lies between is taken apart into lines.
    """
    start = old.rfind("\n", 0, _equal(old, 0, new, 0)) + 1
    end = _equal_lines_at_end(old, new, start)
    olds, news = lines_of(old[start : len(old) - end]), lines_of(new[start : len(new) - end])
    first = old.count("\n", 0, start)
    found = [number] * len(news)
    for at, into, size in equal_runs(olds, news):
        found[into : into + size] = origins[first + at : first + at + size]
    origins[first : first + len(olds)] = found


def _equal_lines_at_end(old: str, new: str, start: int) -> int:
    """How many characters of equal lines both texts end with, those before `start` left out."""
    most = min(len(old), len(new)) - start
    size, stride = 0, 1
    while stride:
        stride = min(stride, most - size)
        at, into = len(old) - size, len(new) - size
        if old[at - stride : at] == new[into - stride : into]:
            size, stride = size + stride, stride * 2
        else:
            stride //= 2
    if _begins_line(old, len(old) - size) and _begins_line(new, len(new) - size):
        return size
    return len(old) - 1 - old.find("\n", len(old) - size) if "\n" in old[len(old) - size :] else 0


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def equal_runs(olds: list[str], news: list[str]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal lines: where each begins in the old text, in the new one, and how long it is.

    Most versions differ in a few places. So equal lines are walked over in strides, and where they
    end, the next place is searched nearby; only what lies between is compared line by line.
    """
    at = into = 0
    while at < len(olds) and into < len(news):
        size = _equal(olds, at, news, into)
        yield at, into, size
        at, into = at + size, into + size
        next_at, next_into = _resumed(olds, at, news, into)
        yield from _compared(olds, at, next_at, news, into, next_into)
        at, into = next_at, next_into


def _equal(olds: Sequence[str], at: int, news: Sequence[str], into: int) -> int:
    """How many lines, or characters of two texts, are equal from here on."""
    most = min(len(olds) - at, len(news) - into)
    size, stride = 0, 1
    while stride:
        stride = min(stride, most - size)
        start, end = at + size, at + size + stride
        if olds[start:end] == news[into + size : into + size + stride]:
            size, stride = size + stride, stride * 2
        else:
            stride //= 2
    return size


def _resumed(olds: list[str], at: int, news: list[str], into: int) -> tuple[int, int]:
    """The nearest place from which some lines are equal again; the ends where none is near."""
    places: dict[str, list[int]] = {}
    for position in range(into, min(into + NEAR, len(news))):
        places.setdefault(news[position], []).append(position)
    found = [
        (start + position, start, position)
        for start in range(at, min(at + NEAR, len(olds)))
        for position in places.get(olds[start], ())
        if olds[start : start + ANCHOR] == news[position : position + ANCHOR]
    ]
    return min(found)[1:] if found else (len(olds), len(news))


def _compared(
    olds: list[str], at: int, end: int, news: list[str], into: int, new_end: int
) -> Iterator[tuple[int, int, int]]:
    """The same as `equal_runs`, of two stretches, line by line."""
    if at == end or into == new_end:
        return
    is_long = end - at + new_end - into > EXACT_LINES
    matcher = SequenceMatcher(None, olds[at:end], news[into:new_end], autojunk=is_long)
    for block in matcher.get_matching_blocks():
        yield at + block.a, into + block.b, block.size
