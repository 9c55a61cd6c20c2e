"""Patches of Codex's `apply_patch`: read, carried out, and taken back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*\Z")
_BEGIN, _END = "*** Begin Patch", "*** End Patch"


class Hunk(NamedTuple):
    """Lines to replace. `anchor`: a line somewhere before; `at_end`: the file's last ones."""

    anchor: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool = False


class FilePatch(NamedTuple):
    """A patch of one file; `added`: a new one's text."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    added: str | None = None
    moved_to: str | None = None


def patches_in(text: str) -> list[FilePatch]:
    """The files of a patch, which may be in a command."""
    lines = text.split("\n")
    begins = next((n for n, line in enumerate(lines) if line.strip().endswith(_BEGIN)), None)
    if begins is None:
        return []
    ends = next((n for n in range(begins, len(lines)) if lines[n].startswith(_END)), None)
    if ends is None:
        return []
    patches: list[FilePatch] = []
    for kind, path, body in _files(lines[begins + 1 : ends]):
        if kind == "Add":
            added = [line[1:] for line in body if line.startswith("+")]
            patches.append(FilePatch(path, added="".join(f"{line}\n" for line in added)))
        elif kind == "Update":
            moved = next((line for line in body[:1] if line.startswith("*** Move to: ")), None)
            moved_to = None if moved is None else moved.removeprefix("*** Move to: ").strip()
            patches.append(FilePatch(path, tuple(_hunks(body)), moved_to=moved_to))
    return patches


def _files(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    named: tuple[str, str] | None = None
    body: list[str] = []
    for line in lines:
        if (match := _FILE.match(line)) is not None:
            if named is not None:
                yield *named, body
            named, body = (match[1], match[2]), []
        else:
            body.append(line)
    if named is not None:
        yield *named, body


def _hunks(body: Sequence[str]) -> Iterator[Hunk]:
    anchor, old, new, at_end = "", list[str](), list[str](), False
    for line in [*body, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield Hunk(anchor, tuple(old), tuple(new), at_end)
                old, new, at_end = [], [], False
            anchor = line[2:].strip().removesuffix("@@").strip()
        elif line.startswith("*** End of File"):
            at_end = True
        elif line.startswith("***"):
            continue
        else:
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])


def patched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text after a patch, if it fits."""
    lines, end = _split(text)
    at = 0
    for hunk in hunks:
        if hunk.anchor:
            anchor = _find(lines, (hunk.anchor,), at)
            if anchor is None:
                return None
            at = anchor + 1
        if not hunk.old:
            place: int | None = len(lines)
        elif hunk.at_end:
            place = _find(lines, hunk.old, max(at, len(lines) - len(hunk.old)))
        else:
            place = _find(lines, hunk.old, at)
        if place is None:
            return None
        lines[place : place + len(hunk.old)] = hunk.new
        at = place + len(hunk.new)
    return "\n".join(lines) + (end or "\n")


def unpatched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text before a patch, if certain."""
    lines, end = _split(text)
    for hunk in reversed(hunks):
        places = _places(lines, hunk.new)
        if hunk.at_end:
            places = [place for place in places if place + len(hunk.new) == len(lines)]
        if len(places) != 1 or not hunk.new:
            return None
        lines[places[0] : places[0] + len(hunk.new)] = hunk.old
    before = "\n".join(lines) + end if lines else ""
    # Taken back rightly, the patch makes the same text of it again.
    again = patched(before, hunks)
    return before if again is not None and _split(again)[0] == _split(text)[0] else None


def _split(text: str) -> tuple[list[str], str]:
    body = text.removesuffix("\n")
    return (body.split("\n") if text else []), "\n" if body != text else ""


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [n for n in range(len(lines) - len(wanted) + 1) if _stand(lines, wanted, n)]


def _stand(lines: Sequence[str], wanted: Sequence[str], at: int) -> bool:
    # The first one tells most places apart, without a copy of the others.
    is_first = lines[at : at + 1] == [*wanted[:1]]
    return is_first and lines[at : at + len(wanted)] == [*wanted]


_LOOSELY: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip)
"""How lines may differ for Codex, strictest first."""


def _find(lines: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    for plain in _LOOSELY:
        given, pattern = [*map(plain, lines)], [*map(plain, wanted)]
        for n in range(start, len(given) - len(pattern) + 1):
            if _stand(given, pattern, n):
                return n
    return None
