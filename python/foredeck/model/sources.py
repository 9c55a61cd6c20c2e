"""What an object is bound to outside the store: a tagged union by `type`.

A further kind of source (a git blob, an S3 object, a URL) is one more class in `Source`. What is
stored does not change with that: a document of a type that this version does not know is read,
copied and exported with its binding exactly as it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Tag


class FilesystemSource(BaseModel):
    """Where a file lives: `filesystemId` names the namespace, `path` is absolute within it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["filesystem"] = "filesystem"
    filesystemId: str  # noqa: N815  (the name in stored documents)
    path: str


class UnknownSource(BaseModel):
    """A binding of a kind that a newer version has written: all its fields, as given."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str


def _tag(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "filesystem" if isinstance(value, FilesystemSource) else "unknown"
    return "filesystem" if value.get("type", "filesystem") == "filesystem" else "unknown"


Source = Annotated[
    Annotated[FilesystemSource, Tag("filesystem")] | Annotated[UnknownSource, Tag("unknown")],
    Discriminator(_tag),
]


def filesystem_source(fields: Mapping[str, Any]) -> FilesystemSource | None:
    """A document's place on a file system, None where it has none. `fields`: as in a `Head`."""
    binding = fields.get("source")
    if binding is None or binding["type"] != "filesystem":
        return None
    return FilesystemSource.model_validate(binding)


def path_of(fields: Mapping[str, Any]) -> str | None:
    """The path of a document on a file system, None where it is not on one."""
    binding = fields.get("source")
    return binding["path"] if binding is not None and binding["type"] == "filesystem" else None
