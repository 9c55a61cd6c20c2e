"""The graph as plain Python over a dictionary: what the real one must answer, however it does it.

It reads every file at every question and keeps no index.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from foredeck.notes.markdown import parse_note
from foredeck.notes.parsed import Reference


@dataclass
class PlainFile:
    """A file: its text, None once it is gone, and where it was moved to."""

    path: str
    text: str | None
    moved_to: str | None = None


@dataclass
class PlainGraph:
    """Files by path, nicknames, and for each session its members: path by number."""

    files: dict[str, PlainFile] = field(default_factory=dict)
    nicknames: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, dict[int, str]] = field(default_factory=dict)

    def edges(self) -> list[tuple[str, str, int]]:
        """All references that mean one file: from, to, and where they begin."""
        found = []
        for path, reference in self.references():
            meant = self.meant(path, reference)
            if len(meant) == 1:
                found.append((path, *meant, reference.start))
        return sorted(found)

    def unresolved(self) -> list[tuple[str, int, tuple[str, ...]]]:
        """All that mean none or several: from, where they begin, and the several."""
        found = []
        for path, reference in self.references():
            meant = self.meant(path, reference)
            if len(meant) != 1:
                found.append((path, reference.start, tuple(sorted(meant))))
        return sorted(found)

    def neighbours(self, path: str, depth: int) -> dict[str, int]:
        """Distances, references followed in both directions."""
        edges = self.edges()
        found, ring = {path: 0}, {path}
        for step in range(1, depth + 1):
            out = {to for source, to, _ in edges if source in ring}
            into = {source for source, to, _ in edges if to in ring}
            ring = (out | into) - found.keys()
            found.update(dict.fromkeys(ring, step))
        return found

    def orphans(self) -> set[str]:
        """Files that no other refers to."""
        aimed = {to for source, to, _ in self.edges() if source != to}
        return {path for path, file in self.files.items() if file.text is not None} - aimed

    def references(self) -> Iterator[tuple[str, Reference]]:
        """Every reference in every file that is there."""
        for path, file in self.files.items():
            if file.text is not None:
                yield from ((path, r) for r in parse_note(file.text).references)

    def meant(self, path: str, reference: Reference) -> set[str]:
        """The files that a reference means: by the first meaning that fits any."""
        for candidates in self._meanings(path, reference):
            ends = {end for c in candidates if (end := self._end(c)) is not None}
            if ends:
                return ends
        return set()

    def _meanings(self, path: str, reference: Reference) -> Iterator[set[str]]:
        target, wiki = reference.target, reference.style == "wiki"
        if wiki and target.startswith("@") and target[1:].isdigit():
            number = int(target[1:])
            for_here = [s for s in self.sessions.values() if path in s.values()]
            yield {s[number] for s in for_here if number in s}
            return
        if wiki:
            yield {self.nicknames[target]} if target in self.nicknames else set()
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        yield from self._live_then_moved({p for p in self.files if p in (there, f"{there}.md")})
        if wiki:
            yield {p for p, f in self.files.items() if target.casefold() in _titles(f)}
            tail = "/" + posixpath.normpath(target).removesuffix(".md").casefold()
            named = {p for p in self.files if p.removesuffix(".md").casefold().endswith(tail)}
            yield from self._live_then_moved(named)

    def _live_then_moved(self, paths: set[str]) -> Iterator[set[str]]:
        yield {p for p in paths if self.files[p].text is not None}
        yield {p for p in paths if self.files[p].text is None}

    def _end(self, path: str) -> str | None:
        seen: set[str] = set()
        at: str | None = path
        while at is not None and at in self.files and self.files[at].text is None:
            if at in seen:
                return None
            seen.add(at)
            at = self.files[at].moved_to
        return at if at in self.files else None


def _titles(file: PlainFile) -> set[str]:
    if file.text is None:
        return set()
    parsed = parse_note(file.text)
    return {title.casefold() for title in (parsed.title, *parsed.aliases) if title}
