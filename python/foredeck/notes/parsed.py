"""What a Markdown file says besides its text: references, tags, headings and properties; and under
which keys a reference is looked up, and an object found.

Positions are character offsets (code points) into the text as it is stored, the end exclusive.
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
"""How it is written; `id` where foredeck recorded it in a field that holds ids."""
MENTIONS = "mentions"
EMBEDS = "embeds"
CONTENT = "content"

NOTE = "note"

FindTop = Callable[[str], str | None]
"""From a folder to the top of the repository that it lies in, None for one in no repository."""

WIKILINK = re.compile(r"(?P<embed>!?)\[\[(?P<inner>[^\[\]\r\n]+)\]\]")
"""A wikilink. In a table the bar before the label is written `\\|`."""

_VERSIONED = re.compile(r"(?P<target>.*\S)\s+v(?P<version>[1-9]\d{0,8})")
_HANDLE = re.compile(r"@\d+")
_FIELD = re.compile(r"(?P<name>.*\S)\s*::(?P<field>\s*\w[\w.\[\] -]*)")


@dataclass(frozen=True, slots=True)
class Reference:
    """One link in a document, as it is written.

    `target` is what is referred to, without heading and label: an id, `@12`, a nickname, a title or
    a path. A link with a version (`[[@12 v3]]`) is static: it means that version for good; any
    other is dynamic and means the newest. `relation` is the property that holds the link
    (`parent: "[[a]]"`), for one in the text `mentions`, for an embedded one `embeds`. `heading`
    is also a block (`^id`). `field` is where it is: `content`, or `frontmatter.parent`. `part`:
    the field of the target that it means (`[[Tides::frontmatter.parent]]`), unless something is
    called so as a whole.
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
        """What is referred to with its field, as it is written."""
        return self.target if self.part is None else f"{self.target}::{self.part}"

    @property
    def static(self) -> bool:
        """Whether it means one version for good."""
        return self.version is not None


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag without its `#`, as it is written; `a/b` lies within `a`."""

    name: str
    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NoteHeading:
    """A heading: its level from 1, its text as it is written, and where its line begins."""

    level: int
    text: str
    start: int


@dataclass(slots=True)
class ParsedNote:
    """All that was found in one Markdown text, in its order there.

    `properties` is the frontmatter as JSON values. `problems` are sentences about what was passed
    over, such as frontmatter that is no YAML. `is_cut`: only its frontmatter was read, since the
    text is too long or takes too long.
    """

    references: list[Reference] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    headings: list[NoteHeading] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_cut: bool = False

    @property
    def title(self) -> str | None:
        """The property `title`, else the first heading of level 1."""
        named = self.properties.get("title")
        if isinstance(named, str | int | float) and str(named).strip():
            return str(named).strip()
        return next((h.text for h in self.headings if h.level == 1 and h.text), None)

    @property
    def aliases(self) -> list[str]:
        """Other names that the note gives itself."""
        return words_of(self.properties.get("aliases", self.properties.get("alias")), ",")

    @property
    def kind(self) -> str | None:
        """The property `kind`, such as `note`."""
        kind = self.properties.get("kind")
        return kind if isinstance(kind, str) else None


def words_of(value: Any, separator: str | None = None) -> list[str]:
    """A property that is one text or a list of them, as a list; other values are left out."""
    if isinstance(value, str):
        return [word for part in value.split(separator) if (word := part.strip())]
    if isinstance(value, list):
        return [str(word).strip() for word in value if isinstance(word, str | int)]
    return []


def read_wikilink(match: re.Match[str]) -> Reference | None:
    """The reference that a match of WIKILINK writes; None for one within the same document."""
    inner, _, label = match["inner"].replace("\\|", "|").partition("|")
    name, _, heading = inner.partition("#")
    target, version = _version(name.strip())
    part = None
    if named := _FIELD.fullmatch(target):
        target, part = named["name"].strip(), named["field"].strip()
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
    """`@12 v3` is a version; `release v3` is a name."""
    found = _VERSIONED.fullmatch(name)
    if found and _HANDLE.fullmatch(found["target"]):
        return found["target"], int(found["version"])
    return name, None


class NoteRule:
    """What `notes.folders` says, for many files: each folder is resolved once.

    A relative folder (`notes`, `.pi/notes`) is one at the top of the file's repository; for a file
    in no repository, or on another machine, any folder of that name above it.
    """

    def __init__(self, folders: Iterable[str], find_top: FindTop) -> None:
        self._folders = tuple(folders)
        self._top = cache(find_top)

    def is_note(self, path: str, kind: str | None) -> bool:
        """Whether a Markdown file is a note: by the property `kind`, else by where it lies."""
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
"""File types that are read as Markdown."""

HANDLE = re.compile(r"@(?P<ordinal>[1-9]\d{0,8})")
_SUFFIX = re.compile(r"\.(?:md|markdown|mdown|mkd)\Z", re.IGNORECASE)


# A reference that is written by people has no one spelling: `[[Tides]]` may be an id, a nickname, a
# title or a file's name. Each object is entered under a few keys; a reference asks for at most
# three, and the rank of what it finds there says which meaning goes first.


class Rank(IntEnum):
    """What a key is to its object. The lowest rank that fits a reference decides."""

    EXACT = 0
    """The id, for references that foredeck itself has recorded: also to what is gone."""
    ID = 1
    HANDLE = 2
    NICKNAME = 3
    PATH = 4
    TITLE = 5
    NAME = 6
    """The file's name, for Markdown without its extension."""


@dataclass(frozen=True, slots=True)
class Name:
    """One entry: `key` with its rank. `text` is what must agree beside the key, as it is written:
    an id, a nickname; for a file's name its whole path, folded, of which a reference may give the
    end; for a handle the session."""

    key: str
    rank: Rank
    text: str


def folded(text: str) -> str:
    """Titles and names of files are looked up without regard to case."""
    return text.casefold()


def without_suffix(path: str) -> str:
    """A path without `.md`."""
    return _SUFFIX.sub("", path)


def path_key(filesystem: str, path: str) -> str:
    """The key of a file at an absolute path."""
    return f"path {filesystem} {without_suffix(path)}"


def exact_key(id: str) -> str:
    """The key of references that foredeck has recorded."""
    return f"id {id}"


def word_key(text: str) -> str:
    """The key of ids, nicknames, titles and names."""
    return f"word {folded(text)}"


def handle_key(ordinal: int) -> str:
    """The key of what sessions call `@ordinal`."""
    return f"handle {ordinal}"


def names_of_path(filesystem: str, path: str) -> Iterator[Name]:
    """What a file is called by where it is: these names it keeps when it is moved."""
    base = posixpath.basename(path)
    yield Name(path_key(filesystem, path), Rank.PATH, path)
    yield Name(word_key(without_suffix(base)), Rank.NAME, folded(without_suffix(path)))


def keys_of(reference: Reference, filesystem: str | None, path: str | None) -> list[str]:
    """Where to look for what a reference in the file at `path` (None: in no file) means."""
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
    """Whether an entry under one of a reference's keys is what the reference means."""
    target = reference.target
    if name.rank in (Rank.ID, Rank.NICKNAME):
        return reference.style == "wiki" and target == name.text
    if name.rank == Rank.TITLE:
        return reference.style == "wiki" and name.key == word_key(target)
    if name.rank == Rank.NAME:
        tail = folded(without_suffix(posixpath.normpath(target)).lstrip("/"))
        return reference.style == "wiki" and f"/{name.text}".endswith(f"/{tail}")
    if name.rank == Rank.PATH and _SUFFIX.search(target):
        # `a` may be `a.md`, but `a.md` is not `a`.
        return folded(name.text).endswith(folded(posixpath.basename(target)))
    return True
