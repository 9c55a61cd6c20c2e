"""The sections about what lies outside the prompt: the stores, files, and sizes."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from foredeck.config.section import Section, absolute_path

MIB = 1024 * 1024


class SqliteSection(Section):
    """`[sqlite]`: the embedded store."""

    synchronous: Literal["normal", "full"] = Field(
        "normal",
        description="`normal` survives a killed process; a power loss may drop the last commits. "
        "`full` waits for the disk at every commit.",
    )
    busy_timeout_ms: int = Field(
        800,
        ge=0,
        le=10_000,
        description="How long a commit waits for another process on the same database, in "
        "milliseconds. Keep it well under `deadline_ms`.",
    )


class XtdbSection(Section):
    """`[xtdb]`: the store on XTDB 1."""

    url: str | None = Field(
        None,
        description="Address of a server that somebody else runs, such as "
        "`http://127.0.0.1:3000`. Unset: foredeck runs a node of its own. The environment "
        "variable `FOREDECK_XTDB_URL` sets this and `store`.",
    )
    token_file: Path | None = Field(
        None, description="File with the bearer token that the server at `url` asks for, if any."
    )
    namespace: str = Field(
        "foredeck",
        pattern=r"^[a-z][a-z0-9_-]{0,63}$",
        description="Name of this store among others in the same XTDB.",
    )
    topology: Literal["memory", "rocksdb", "postgres", "kafka"] = Field(
        "rocksdb",
        description="Where foredeck's own node keeps its data: on this machine (`rocksdb`), or "
        "shared by many (`postgres`, `kafka`). `memory` forgets everything.",
    )
    timeout_ms: int = Field(
        10_000,
        ge=100,
        le=600_000,
        description="Longest time that one request or one commit may take, in milliseconds.",
    )
    journal_entries: int = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="How many transactions may wait for XTDB while it is away. Beyond that, model "
        "calls go out without foredeck until it is back.",
    )
    journal_mib: int = Field(
        256,
        ge=1,
        le=100_000,
        description="The same in MiB of text.",
    )

    @field_validator("url")
    @classmethod
    def _url_is_http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must be an address that starts with http:// or https://")
        return value

    @field_validator("token_file")
    @classmethod
    def _token_file_is_absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else absolute_path(value)


class LimitsSection(Section):
    """`[limits]`: the size beyond which a file is handled by its metadata alone."""

    max_file_bytes: int = Field(
        2 * MIB,
        ge=1024,
        le=256 * MIB,
        description="A larger file is indexed by its metadata, without content.",
    )


class MountSection(Section):
    """One `[[sources.mounts]]` entry: a folder whose files live elsewhere than their path says.

    At least one of `host_path` and `filesystem_id` is given.
    """

    prefix: str = Field(
        description="Absolute path of the folder as the agent sees it; with `filesystem_id`, the "
        "path by which all machines know it."
    )
    host_path: Path | None = Field(
        None,
        description="The same folder on this machine, if the agent works in a container, or if "
        "this machine has a shared folder elsewhere.",
    )
    filesystem_id: str | None = Field(
        None,
        min_length=1,
        description="Name of the file system, the same on every machine that mounts it: its files "
        "are then the same objects on all of them.",
    )

    @field_validator("prefix")
    @classmethod
    def _prefix_is_absolute(cls, value: str) -> str:
        if not (PurePosixPath(value).is_absolute() or Path(value).is_absolute()):
            raise ValueError("must be an absolute path")
        return value

    @field_validator("host_path")
    @classmethod
    def _host_path_is_absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else absolute_path(value)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.host_path is None and self.filesystem_id is None:
            raise ValueError("needs host_path, filesystem_id, or both")
        return self


class SourcesSection(Section):
    """`[sources]`: the outside things that objects track."""

    mounts: tuple[MountSection, ...] = Field(
        (),
        description="Mount mappings, longest prefix first in force. A list of tables with `prefix` "
        "and `host_path`, `filesystem_id`, or both: a folder that several machines share is named "
        "by the same `prefix` and `filesystem_id` on each, and by `host_path` where it lies.",
    )
    sandboxed: bool = Field(
        False,
        description="The agent's tools work in a container: a path outside the mounts names a file "
        "in there, never one of this machine. Needs `sources.filesystem_id`.",
    )
    filesystem_id: str | None = Field(
        None,
        min_length=1,
        description="Name of the file system of all paths outside the mounts, such as the "
        "container's id. Unset: this machine's own.",
    )
    device_fallback: bool = Field(
        False,
        description="Tell file systems apart by their device number where no mount mapping fits.",
    )
    watch: bool = Field(
        True, description="Watch the folders of tracked files, to see changes as they happen."
    )


class NotesSection(Section):
    """`[notes]`: which Markdown files are notes."""

    folders: tuple[str, ...] = Field(
        ("notes", ".pi/notes"),
        min_length=1,
        description="Folders whose Markdown files are notes: relative to the top of the project, "
        "or absolute; a project names its own alone. `kind:` in a file's frontmatter goes before "
        "([notes.md](notes.md)).",
    )
    take_in: bool = Field(
        True,
        description="Look at the project's folders of notes when a session opens, so that what was "
        "written, renamed or deleted in any editor is known by its title: at most 300 files, those "
        "changed last.",
    )
