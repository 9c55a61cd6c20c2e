"""What an object is bound to outside the store: a tagged union by `type`.

A further kind of source is one more class in `Source`. What is stored does not change with that: a
document whose binding has another type, or other fields than its class, is read, copied and
exported with its binding exactly as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Tag

_LIKE_A_POINTER = re.compile(r"(?:git|row):.|(?:https?|s3)://", re.IGNORECASE)
_SHORT_ID = 12
"""Digits of a commit's id in a label."""


class _Binding(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class FilesystemSource(_Binding):
    """Where a file lives: `filesystemId` names the namespace, `path` is absolute within it."""

    type: Literal["filesystem"] = "filesystem"
    filesystemId: str  # noqa: N815  (the name in stored documents)
    path: str


class GitSource(_Binding):
    """A file as of a commit, which never changes.

    `repo` is the same in all clones: `github.com/user/repo`, by the remote `origin`; of a
    repository without one on another machine, the id of its project. `ref` is a commit's full id,
    and `path` relative to the repository's root; or `ref` is a blob's, and `path` empty.
    """

    type: Literal["git"] = "git"
    repo: str
    ref: str
    path: str


class HistorySource(_Binding):
    """A file as the history of a session shows it: what was there then, on some machine."""

    type: Literal["history"] = "history"
    session: str
    path: str


class UrlSource(_Binding):
    """A page or file on the web, without user and password."""

    type: Literal["url"] = "url"
    url: str


class S3Source(_Binding):
    """An object in a bucket."""

    type: Literal["s3"] = "s3"
    bucket: str
    key: str


class RowSource(_Binding):
    """A row of a database: all three by the names that their user knows."""

    type: Literal["row"] = "row"
    database: str
    table: str
    key: str


class UnknownSource(BaseModel):
    """A binding of a kind that a newer version has written: all its fields, as given."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    type: str


_KINDS: Mapping[str, type[BaseModel]] = {
    "filesystem": FilesystemSource,
    "git": GitSource,
    "history": HistorySource,
    "url": UrlSource,
    "s3": S3Source,
    "row": RowSource,
}


def _tag(value: Any) -> str:
    if not isinstance(value, Mapping):
        return next((tag for tag, kind in _KINDS.items() if isinstance(value, kind)), "unknown")
    tag = str(value.get("type", "filesystem"))
    if tag == "filesystem" or tag not in _KINDS:
        return tag if tag in _KINDS else "unknown"
    fits = value.keys() == _KINDS[tag].model_fields.keys()
    return tag if fits and all(isinstance(v, str) for v in value.values()) else "unknown"


Source = Annotated[
    Annotated[FilesystemSource, Tag("filesystem")]
    | Annotated[GitSource, Tag("git")]
    | Annotated[HistorySource, Tag("history")]
    | Annotated[UrlSource, Tag("url")]
    | Annotated[S3Source, Tag("s3")]
    | Annotated[RowSource, Tag("row")]
    | Annotated[UnknownSource, Tag("unknown")],
    Discriminator(_tag),
]

PointerSource = UrlSource | S3Source | RowSource
"""What is only pointed to: nothing of it is fetched."""


def filesystem_source(fields: Mapping[str, Any]) -> FilesystemSource | None:
    """A document's place on a file system, None where it has none. `fields`: as in a `Head`."""
    binding = fields.get("source")
    if binding is None or binding["type"] != "filesystem":
        return None
    return FilesystemSource.model_validate(binding)


def history_source(fields: Mapping[str, Any]) -> HistorySource | None:
    """Where a file is known from, if that is a history. `fields`: as in a `Head`."""
    binding = fields.get("source")
    if binding is None or _tag(binding) != "history":
        return None
    return HistorySource.model_validate(binding)


def path_of(fields: Mapping[str, Any]) -> str | None:
    """The path of a document on a file system, None where it is not on one."""
    binding = fields.get("source")
    return binding["path"] if binding is not None and binding["type"] == "filesystem" else None


def pointer_label(fields: Mapping[str, Any]) -> str:
    """What to call the object of a pointer, given its fields: the name that leads to it, with the
    commit that was meant; empty for any other object."""
    source = fields.get("source") or {}
    if source.get("type") == "git" and "ref" in source:
        return ":".join(filter(None, ("git", source["ref"][:_SHORT_ID], source.get("path"))))
    if (history := history_source(fields)) is not None:
        return f"{history.path} in session {history.session}"
    return str(fields.get("locator") or "")


def is_pointer(name: str) -> bool:
    """Whether a name is of a thing that is not on a disk."""
    return _LIKE_A_POINTER.match(name) is not None


def is_address(name: str) -> bool:
    """Whether a name is a URL or an object in S3, in which a space or # has no other meaning."""
    return name.lower().startswith(("http://", "https://", "s3://"))
