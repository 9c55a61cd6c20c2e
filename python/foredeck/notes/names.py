"""Under which keys a reference is looked up, and under which an object is found."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from foredeck.notes.parsed import Reference

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
