"""The sections about what lies outside the prompt: stores, files, sizes, what is asked and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from foredeck.model.own_tools import FACILITY_TOOLS, Facility

MIB = 1024 * 1024


class UserOnly:
    """A key or section that a project's file may not set."""


class OutsideFiles(UserOnly):
    """A key that only the environment and flags may set."""


class Constant:
    """A measured number or choice, which only replays, benches and tests change."""


USER_ONLY = UserOnly()
OUTSIDE_FILES = OutsideFiles()
CONSTANT = Constant()


class Section(BaseModel):
    """A group of keys: immutable, without unknown ones."""

    # Deferred: to build the validation of every section takes longer than the few that are used.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def absolute_path(path: Path) -> Path:
    """The path with `~` expanded. Raises ValueError if it is relative."""
    path = path.expanduser()
    if not path.is_absolute():
        raise ValueError("must be an absolute path (or start with ~)")
    return path


class SqliteSection(Section):
    """`[sqlite]`: the embedded store."""

    synchronous: Annotated[Literal["normal", "full"], CONSTANT] = "normal"
    """`normal` survives a killed process; a power loss may drop the last commits. `full` waits for
    the disk at every commit."""
    busy_timeout_ms: Annotated[int, CONSTANT] = Field(800, ge=0, le=10_000)
    """How long a commit waits for another process on the same database, in milliseconds. Well under
    `deadline_ms`."""


class XtdbSection(Section):
    """`[xtdb]`: the store on XTDB 1."""

    url: str | None = None
    """Address of a running server. Unset: foredeck runs a node of its own. The variable
    `FOREDECK_XTDB_URL` sets this and `store`."""
    token_file: Path | None = None
    """File with the token that the server at `url` asks for."""
    namespace: str = Field("foredeck", pattern=r"^[a-z][a-z0-9_-]{0,63}$")
    """Name of this store within XTDB."""
    topology: Literal["memory", "rocksdb", "postgres", "kafka"] = "rocksdb"
    """Where foredeck's own node keeps its data: on this machine (`rocksdb`), shared by many
    (`postgres`, `kafka`), or nowhere (`memory`)."""
    timeout_ms: Annotated[int, CONSTANT] = Field(10_000, ge=100, le=600_000)
    """Longest time that one request or one commit may take, in milliseconds."""
    journal_entries: Annotated[int, CONSTANT] = Field(10_000, ge=1, le=1_000_000)
    """How many transactions may wait for XTDB while it is away. Beyond that, model calls go out
    without foredeck until it is back."""
    journal_mib: Annotated[int, CONSTANT] = Field(256, ge=1, le=100_000)
    """The same in MiB of text."""

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

    max_file_bytes: Annotated[int, CONSTANT] = Field(2 * MIB, ge=1024, le=256 * MIB)
    """A larger file is indexed by its metadata, without content."""


class MountSection(Section):
    """One `[[sources.mounts]]` entry: a folder whose files live elsewhere than their path says."""

    prefix: str
    """Absolute path of the folder as the agent sees it; with `filesystem_id`, the path by which all
    machines know it."""
    host_path: Path | None = None
    """The same folder on this machine, if the agent works in a container, or if this machine has a
    shared folder elsewhere."""
    filesystem_id: str | None = Field(None, min_length=1)
    """Name of the file system, the same on every machine that mounts it: its files are then the
    same objects on all of them."""

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

    mounts: tuple[MountSection, ...] = ()
    """Folders that a container or several machines share: tables with `prefix` (the same
    everywhere) and `host_path` (where it lies here), `filesystem_id` (its name), or both."""
    sandboxed: bool = False
    """The agent's tools work in a container: paths outside the mounts are in there. Needs
    `sources.filesystem_id`."""
    filesystem_id: str | None = Field(None, min_length=1)
    """Name of the file system of all paths outside the mounts. Unset: this machine's own."""
    device_fallback: bool = False
    """Tell file systems apart by device number if no mount fits."""
    watch: bool = True
    """Watch the folders of tracked files, to see changes as they happen."""


class NotesSection(Section):
    """`[notes]`: which Markdown files are notes."""

    folders: tuple[str, ...] = Field(("notes", ".pi/notes"), min_length=1)
    """Folders whose Markdown files are [notes](notes.md): relative to the top of the project, or
    absolute. `kind:` in a file's frontmatter overrides this."""


class AskingSection(Section):
    """`[asking]`: when a model may be asked for foredeck, beside the agent's work."""

    enabled: bool = True
    """Whether foredeck may [ask a model](context.md#when-a-model-is-asked) without a command of
    yours."""
    model: str | None = Field(None, pattern=r"^[^/\s]+/\S+$")
    """The model to ask, as `provider/id`. Unset: the agent's, whose warm cache can be read."""
    share: float = Field(0.08, ge=0, le=10)
    """What questions may cost, as a share of the session's cost."""
    per_hour: Annotated[int, CONSTANT] = Field(20, ge=0, le=1000)
    """Most questions within an hour."""
    single_slot: bool = False
    """Whether a model on this machine or without a price may be asked, although a question can push
    the agent's prompt out of its cache."""
    timeout_s: Annotated[int, CONSTANT] = Field(120, ge=5, le=600)
    """Longest wait for an answer, in seconds."""


class ToolsSection(Section):
    """`[tools]`: the model's tools, from the next session on.

    A tool that came or went within a session would void the provider's whole cache.
    """

    context: bool = True
    """`activate`, `deactivate`, `pin`, `unpin`. Without them the model reads again what it needs;
    long texts of yours and its own answers stay whole."""
    search: bool = True
    """`memory-search`."""
    tasks: Literal["auto", "on", "off"] = "auto"
    """`task-query`, `task-mutate`: `auto` if the project has tasks or a page, or after
    `/tasks on`."""
    findings: Literal["auto", "on", "off"] = "auto"
    """`promote-finding`: `auto` if a session of the project has had one of `memory.data_tools`, or
    after `/memory findings on`."""

    def declared(
        self, has_use_for: Callable[[Facility], bool] = lambda _facility: False
    ) -> tuple[Facility, ...]:
        """What a session of a project declares; `has_use_for` is asked for `auto`."""
        set_to = {facility: getattr(self, facility) for facility in FACILITY_TOOLS}
        return tuple(
            facility
            for facility, switch in set_to.items()
            if switch in (True, "on") or (switch == "auto" and has_use_for(facility))
        )


class ObservingSection(Section):
    """`[observing]`: how sessions are observed, where `observations` is not `off`."""

    scope: Literal["thread", "resource"] = "thread"
    """Whose notes a session has: its own, or those of the project's
    [other sessions](observations.md#notes-of-other-sessions) as well (`resource`)."""
    mode: (
        Literal[
            "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
        ]
        | None
    ) = None
    """What [kind of work](observations.md#modes) is observed. Unset: guessed."""
    threshold: int | None = Field(None, ge=2000, le=1_000_000)
    """Tokens of chat, notes included, above which notes replace it. Unset: that of the mode."""
    buffer_tokens: int = Field(6000, ge=500, le=100_000)
    """Fewest tokens of chat that are observed at once."""
    activation: float = Field(0.8, gt=0, le=1)
    """Share of the threshold at which written notes replace their chat."""
    block_after: int = Field(7200, ge=0, le=1_000_000)
    """Tokens that may wait beyond `buffer_tokens` before observing precedes other background
    work."""
    reflection_threshold: int = Field(40_000, ge=1000, le=1_000_000)
    """Tokens of notes above which the oldest are condensed."""


class MemorySection(Section):
    """`[memory]`: what is kept of sessions, and of you beyond them ([memory.md](memory.md))."""

    extract: bool = True
    """Ask a model after a turn what is worth remembering, as far as `[asking]` allows."""
    accept: Literal["ask", "user-stated", "off"] = "user-stated"
    """What of that outlives its session: whole sentences of yours, and what you accept; only what
    you accept (`ask`); or nothing."""
    data_tools: tuple[str, ...] = (
        "load-data",
        "query-data",
        "query-sql",
        "analyze-data",
        "duckdb",
        "sql",
    )
    """Tools of other extensions that return data, and so [findings](memory.md#findings)."""
    session_entries: int = Field(50, ge=1, le=10_000)
    """How many entries a session keeps."""
    findings: int = Field(100, ge=1, le=10_000)
    """How many findings a session keeps."""
    global_entries: int = Field(100, ge=1, le=10_000)
    """How many entries are kept about you: everywhere, and in each project."""
    expire_days: Annotated[int, CONSTANT] = Field(90, ge=1, le=10_000)
    """After how many days without use an entry expires that you have not stated."""
