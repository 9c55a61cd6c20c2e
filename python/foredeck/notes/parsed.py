"""What a Markdown file says beside text.

Positions are code points, end exclusive.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Any, Literal

Style = Literal["wiki", "markdown", "id"]
"""`id` in foredeck's own fields of ids."""
MENTIONS = "mentions"
EMBEDS = "embeds"
CONTENT = "content"

NOTE = "note"

FindTop = Callable[[str], str | None]
"""None outside a repository."""

WIKILINK = re.compile(r"(?P<embed>!?)\[\[(?P<inner>[^\[\]\r\n]+)\]\]")
r"""In tables the bar is written `\|`."""

_VERSIONED = re.compile(r"(?P<target>.*\S)\s+v(?P<version>[1-9]\d{0,8})")
_HANDLE = re.compile(r"@\d+")
_FIELD = re.compile(r"(?P<name>.*\S)\s*::(?P<field>\s*\w[\w.\[\] -]*)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A link as written.

    With a version (`[[@12 v3]]`) it is static. `relation`: the property around it, `mentions`, or
    `embeds`. `part`: a field of the target.
    """

    target: str
    relation: str = MENTIONS
    embed: bool = False
    heading: str | None = None
    label: str | None = None
    version: int | None = None
    field: str = CONTENT
    start: int = 0
    end: int = 0
    style: Style = "wiki"
    part: str | None = None

    @property
    def whole(self) -> str:
        """Target and part, as written."""
        return self.target if self.part is None else f"{self.target}::{self.part}"

    @property
    def static(self) -> bool:
        """Whether it means one version for good."""
        return self.version is not None


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag as written, without `#`; `a/b` is within `a`."""

    name: str
    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NoteHeading:
    """A heading: level from 1, text, start of its line."""

    level: int
    text: str
    start: int


@dataclass(slots=True)
class ParsedNote:
    """`properties`: frontmatter as JSON. `problems`: what was passed over. `is_cut`: only
    frontmatter was read."""

    references: list[Reference] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    headings: list[NoteHeading] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_cut: bool = False

    @property
    def title(self) -> str | None:
        """Property `title`, else the first level 1 heading."""
        title_property = self.properties.get("title")
        if isinstance(title_property, str | int | float) and str(title_property).strip():
            return str(title_property).strip()
        return next((h.text for h in self.headings if h.level == 1 and h.text), None)

    @property
    def aliases(self) -> list[str]:
        """Further names of the note."""
        return words_of(self.properties.get("aliases", self.properties.get("alias")), ",")

    @property
    def kind(self) -> str | None:
        """Property `kind`, such as `note`."""
        kind = self.properties.get("kind")
        return kind if isinstance(kind, str) else None


def words_of(value: Any, separator: str | None = None) -> list[str]:
    if isinstance(value, str):
        return [word for part in value.split(separator) if (word := part.strip())]
    if isinstance(value, list):
        return [str(word).strip() for word in value if isinstance(word, str | int)]
    return []


def read_wikilink(match: re.Match[str]) -> Reference | None:
    """The reference of a WIKILINK match; None within the same document."""
    inner, _, label = match["inner"].replace("\\|", "|").partition("|")
    name, _, heading = inner.partition("#")
    target, version = _version(name.strip())
    part = None
    if match_of_field := _FIELD.fullmatch(target):
        target, part = match_of_field["name"].strip(), match_of_field["field"].strip()
    if not target:
        return None
    embed = bool(match["embed"])
    return Reference(
        target,
        relation=EMBEDS if embed else MENTIONS,
        embed=embed,
        heading=heading.strip() or None,
        label=label.strip() or None,
        version=version,
        part=part,
    )


def _version(name: str) -> tuple[str, int | None]:
    """`@12 v3` is a version; `release v3` a name."""
    versioned = _VERSIONED.fullmatch(name)
    if versioned and _HANDLE.fullmatch(versioned["target"]):
        return versioned["target"], int(versioned["version"])
    return name, None


class NoteRule:
    """A relative folder of `notes.folders` is at the repository's top, else anywhere above."""

    def __init__(self, folders: Iterable[str], find_top: FindTop) -> None:
        self._folders = tuple(folders)
        self._top = cache(find_top)

    def is_note(self, path: str, kind: str | None) -> bool:
        """Whether a Markdown file is a note, by `kind`, else by place."""
        if kind is not None:
            return kind == NOTE
        within = [folder for folder in self._folders if _is_within(path, folder)]
        return any(folder.startswith("/") or self._is_at_the_top(path, folder) for folder in within)

    def _is_at_the_top(self, path: str, folder: str) -> bool:
        top = self._top(posixpath.dirname(path))
        return top is None or path.startswith(f"{posixpath.join(top, folder.strip('/'))}/")


def _is_within(path: str, folder: str) -> bool:
    name = folder.strip("/")
    if not name:
        return False
    return path.startswith(f"/{name}/") if folder.startswith("/") else f"/{name}/" in path


MARKDOWN = frozenset({"md", "markdown", "mdown", "mkd"})
"""File types read as Markdown."""

HANDLE = re.compile(r"@(?P<ordinal>[1-9]\d{0,8})")
_SUFFIX = re.compile(r"\.(?:md|markdown|mdown|mkd)\Z", re.IGNORECASE)


# A reference that is written by people has no one spelling: `[[Tides]]` may be an id, a nickname, a
# title or a file's name. Each object is entered under a few keys; a reference asks for at most
# three, and the rank of what it finds there says which meaning goes first.


class Rank(IntEnum):
    EXACT = 0
    """Also of what is gone."""
    ID = 1
    HANDLE = 2
    NICKNAME = 3
    PATH = 4
    TITLE = 5
    NAME = 6
    """The file's name, for Markdown without extension."""


@dataclass(frozen=True, slots=True)
class Name:
    """A key with rank; `text` must match too."""

    key: str
    rank: Rank
    text: str


def without_suffix(path: str) -> str:
    """A path without `.md`."""
    return _SUFFIX.sub("", path)


def path_key(filesystem: str, path: str) -> str:
    """The key of an absolute path."""
    return f"path {filesystem} {without_suffix(path)}"


def exact_key(id: str) -> str:
    """The key of recorded references."""
    return f"id {id}"


def word_key(text: str) -> str:
    return f"word {text.casefold()}"


def handle_key(ordinal: int) -> str:
    """The key of `@ordinal`."""
    return f"handle {ordinal}"


def names_of_path(filesystem: str, path: str) -> Iterator[Name]:
    """A file's names by its place, which it keeps when moved."""
    base = posixpath.basename(path)
    yield Name(path_key(filesystem, path), Rank.PATH, path)
    yield Name(word_key(without_suffix(base)), Rank.NAME, without_suffix(path).casefold())


def keys_of(reference: Reference, filesystem: str | None, path: str | None) -> list[str]:
    """Lookup keys of a reference in the file at `path`, if any."""
    target = reference.target
    if reference.style == "id":
        return [exact_key(target)]
    if reference.part is not None:
        whole, part = (replace(reference, target=t, part=None) for t in (reference.whole, target))
        return list(dict.fromkeys(k for r in (whole, part) for k in keys_of(r, filesystem, path)))
    if handle := HANDLE.fullmatch(target):
        return [handle_key(int(handle["ordinal"]))]
    keys = []
    if filesystem is not None and path is not None:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        keys.append(path_key(filesystem, there))
    if reference.style == "wiki":
        base = posixpath.basename(target.rstrip("/")) or target
        keys += [word_key(target), word_key(without_suffix(base))]
    return list(dict.fromkeys(keys))


def fits(reference: Reference, name: Name) -> bool:
    target = reference.target
    if name.rank in (Rank.ID, Rank.NICKNAME):
        return reference.style == "wiki" and target == name.text
    if name.rank == Rank.TITLE:
        return reference.style == "wiki" and name.key == word_key(target)
    if name.rank == Rank.NAME:
        tail = without_suffix(posixpath.normpath(target)).lstrip("/").casefold()
        return reference.style == "wiki" and f"/{name.text}".endswith(f"/{tail}")
    if name.rank == Rank.PATH and _SUFFIX.search(target):
        # `a` may be `a.md`, but `a.md` is not `a`.
        return name.text.casefold().endswith(posixpath.basename(target).casefold())
    return True
