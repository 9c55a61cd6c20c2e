"""What an object is bound to outside the store.

Unknown types and fields are kept unchanged.
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
    """A file's place: `path` is absolute in `filesystemId`."""

    type: Literal["filesystem"] = "filesystem"
    filesystemId: str  # noqa: N815  (the name in stored documents)
    path: str


class GitSource(_Binding):
    """A file of a commit.

    `repo` is the same in all clones. `ref` is a commit id with `path` relative to the root, or a
    blob's with an empty `path`.
    """

    type: Literal["git"] = "git"
    repo: str
    ref: str
    path: str


class HistorySource(_Binding):
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
    """A database row, by its user's names."""

    type: Literal["row"] = "row"
    database: str
    table: str
    key: str


class UnknownSource(BaseModel):
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
"""Only pointed to, never fetched."""


def filesystem_source(fields: Mapping[str, Any]) -> FilesystemSource | None:
    """A document's place on a file system, if any."""
    binding = fields.get("source")
    if binding is None or binding["type"] != "filesystem":
        return None
    return FilesystemSource.model_validate(binding)


def history_source(fields: Mapping[str, Any]) -> HistorySource | None:
    """The history that a file is known from, if any."""
    binding = fields.get("source")
    if binding is None or _tag(binding) != "history":
        return None
    return HistorySource.model_validate(binding)


def path_of(fields: Mapping[str, Any]) -> str | None:
    binding = fields.get("source")
    return binding["path"] if binding is not None and binding["type"] == "filesystem" else None


def pointer_label(fields: Mapping[str, Any]) -> str:
    """A pointer's name, with its commit; empty for other objects."""
    source = fields.get("source") or {}
    if source.get("type") == "git" and "ref" in source:
        return ":".join(filter(None, ("git", source["ref"][:_SHORT_ID], source.get("path"))))
    if (history := history_source(fields)) is not None:
        return f"{history.path} in session {history.session}"
    return str(fields.get("locator") or "")


def is_pointer(name: str) -> bool:
    """Whether a name is of something not on a disk."""
    return _LIKE_A_POINTER.match(name) is not None


def is_address(name: str) -> bool:
    return name.lower().startswith(("http://", "https://", "s3://"))
