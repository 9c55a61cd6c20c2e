"""The configuration: one frozen pydantic model, every key with its default and its meaning.

Where the values come from is the business of `foredeck.config.load`; the descriptions here are
also the text of docs/configuration.md.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from foredeck.config.folders import default_home

MIB = 1024 * 1024


class UserOnly:
    """Marks a key that a project's own file may not set: a cloned repository is not trusted."""


USER_ONLY = UserOnly()


class Section(BaseModel):
    """A group of keys: immutable, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SqliteSection(Section):
    """`[sqlite]`: the embedded store."""

    synchronous: Annotated[Literal["normal", "full"], USER_ONLY] = Field(
        "normal",
        description="`normal` survives a killed process; a power loss may drop the last commits. "
        "`full` waits for the disk at every commit.",
    )
    busy_timeout_ms: Annotated[int, USER_ONLY] = Field(
        800,
        ge=0,
        le=10_000,
        description="How long a commit waits for another process on the same database, in "
        "milliseconds. Keep it well under `deadline_ms`.",
    )


class XtdbSection(Section):
    """`[xtdb]`: the store on XTDB 1."""

    url: Annotated[str | None, USER_ONLY] = Field(
        None,
        description="Address of a server that somebody else runs, such as "
        "`http://127.0.0.1:3000`. Unset: foredeck runs a node of its own. The environment "
        "variable `FOREDECK_XTDB_URL` sets this and `store`.",
    )
    token_file: Annotated[Path | None, USER_ONLY] = Field(
        None, description="File with the bearer token that the server at `url` asks for, if any."
    )
    namespace: Annotated[str, USER_ONLY] = Field(
        "foredeck",
        pattern=r"^[a-z][a-z0-9_-]{0,63}$",
        description="Name of this store among others in the same XTDB.",
    )
    topology: Annotated[Literal["memory", "rocksdb", "postgres", "kafka"], USER_ONLY] = Field(
        "rocksdb",
        description="Where foredeck's own node keeps its data: on this machine (`rocksdb`), or "
        "shared by many (`postgres`, `kafka`). `memory` forgets everything.",
    )
    timeout_ms: Annotated[int, USER_ONLY] = Field(
        10_000,
        ge=100,
        le=600_000,
        description="Longest time that one request or one commit may take, in milliseconds.",
    )
    journal_entries: Annotated[int, USER_ONLY] = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="How many transactions may wait for XTDB while it is away. Beyond that, model "
        "calls go out without foredeck until it is back.",
    )
    journal_mib: Annotated[int, USER_ONLY] = Field(
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
        return None if value is None else _absolute(value)


class SeedWindowSection(Section):
    """`[seed_window]`: the policy `seed-window`."""

    per_turn: int = Field(
        5,
        ge=1,
        le=1000,
        description="Tool results of one user turn that stay active, newest first.",
    )
    turns: int = Field(
        3, ge=1, le=1000, description="User turns, counted back from the newest, that keep any."
    )


class LastNSection(Section):
    """`[last_n]`: the policy `last-n`."""

    results: int = Field(
        10, ge=1, le=100_000, description="Tool results that stay active, newest first."
    )


class AdaptiveSection(Section):
    """`[adaptive]`: the policy `adaptive`. `lean` and `careful` take only the `fold_` keys.

    Ages count model calls since the last use of a content of `reference_tokens`; larger content
    goes earlier, smaller later.
    """

    patience: float = Field(
        20, ge=1, le=10_000, description="Model calls that an unused tool result stays."
    )
    patience_edited: float = Field(
        60,
        ge=1,
        le=10_000,
        description="The same for reads and arguments of files that the session edits.",
    )
    patience_arguments: float = Field(
        5, ge=1, le=10_000, description="The same for other large arguments of tool calls."
    )
    idle_factor: float = Field(
        0.6, gt=0, le=1, description="Factor for what the newest user turn has not used."
    )
    cold_factor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Factor while the provider's cache is cold, so that folding costs nothing.",
    )
    reference_tokens: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Size at which content stays as long as said above. Patience goes by the root "
        "of this over the size.",
    )
    shortest_factor: float = Field(
        0.3, gt=0, le=1, description="Least that a large size leaves of patience."
    )
    longest_factor: float = Field(
        2.0, ge=1, le=1000, description="Most that a small size makes of patience."
    )
    min_names: int = Field(
        2,
        ge=1,
        le=100,
        description="Rare identifiers of a content that an answer must hold to count as its use.",
    )
    max_holders: int = Field(
        2,
        ge=1,
        le=100,
        description="An identifier that more contents hold is not rare: it tells nothing of where "
        "it was taken from.",
    )
    fold_arguments: bool = Field(
        True,
        description="Fold long arguments of earlier tool calls, on wires that allow it.",
    )
    fold_thinking: bool = Field(
        True, description="Leave out thinking of earlier turns, on wires that allow it."
    )


class DigestsSection(Section):
    """`[digests]`: what is left of a folded result beside its reference line."""

    max_tokens: int = Field(
        500, ge=0, le=10_000, description="Most tokens of a digest; 0 for no digests."
    )
    max_share: float = Field(
        0.1, ge=0, le=1, description="Most of the result's own size that its digest may have."
    )


class RebaseSection(Section):
    """`[rebase]`: when bytes that were already sent may be rendered anew."""

    high_water: float = Field(
        0.85,
        gt=0,
        le=1,
        description="Share of the model's window above which content must go, least recently used "
        "first.",
    )
    low_water: float = Field(
        0.60, gt=0, le=1, description="Share of the window at which that stops."
    )
    cache_ttl_s: int | None = Field(
        None,
        ge=0,
        le=7 * 86_400,
        description="Seconds after which the provider's prompt cache counts as expired. Unset: "
        "from the host's model record, else 300.",
    )
    cache: Literal["auto", "prefix", "markers"] = Field(
        "auto",
        description="How the provider's prompt cache finds what was sent before: any `prefix`, or "
        "only up to where cache `markers` stood (Anthropic's rule). `auto`: by the model's wire.",
    )
    min_saving_tokens: int = Field(
        30, ge=0, description="Content that would save fewer tokens than this is left alone."
    )
    rent_factor: float = Field(
        2.0,
        ge=0,
        le=1000,
        description="A rebase pays when reading what may go has cost this many times what "
        "rewriting the rest would.",
    )
    guard: float = Field(
        0.02,
        ge=0,
        le=10,
        description="By what share a session may become dearer, at any moment, than with nothing "
        "folded: a rebase that pays later waits until it would not.",
    )


class CompactionSection(Section):
    """`[compaction]`: what takes the place of chat that does not fit any more."""

    automatic: Literal["foredeck", "model"] = Field(
        "foredeck",
        description="Who writes the summary at the host's threshold, once folding does not help: "
        "`foredeck`, from what is stored and without a model call, or the host's `model`.",
    )
    manual: Literal["foredeck", "model"] = Field(
        "model",
        description="The same for `/compact`. With instructions it is always the model.",
    )
    summary_tokens: int = Field(
        2000,
        ge=100,
        le=50_000,
        description="Most tokens of a summary that foredeck writes; never more than a tenth of "
        "the model's window.",
    )


class LimitsSection(Section):
    """`[limits]`: sizes beyond which something is handled by its metadata alone."""

    max_file_bytes: int = Field(
        2 * MIB,
        ge=1024,
        le=256 * MIB,
        description="A larger file is indexed by its metadata, without content.",
    )
    max_line_bytes: Annotated[int, USER_ONLY] = Field(
        64 * MIB,
        ge=MIB,
        le=1024 * MIB,
        description="Longest line that the engine accepts from the host; a longer one is answered "
        "with an error.",
    )
    activate_chars: int = Field(
        50_000,
        ge=1000,
        le=10_000_000,
        description="Most characters that one activation brings into the prompt.",
    )
    discovered_paths: int = Field(
        200,
        ge=0,
        le=100_000,
        description="Most paths that one `ls`, `find` or `grep` result adds to the index.",
    )


class Mount(Section):
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
        return None if value is None else _absolute(value)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.host_path is None and self.filesystem_id is None:
            raise ValueError("needs host_path, filesystem_id, or both")
        return self


class SourcesSection(Section):
    """`[sources]`: the outside things that objects track."""

    mounts: Annotated[tuple[Mount, ...], USER_ONLY] = Field(
        (),
        description="Mount mappings, longest prefix first in force. A list of tables with `prefix` "
        "and `host_path`, `filesystem_id`, or both: a folder that several machines share is named "
        "by the same `prefix` and `filesystem_id` on each, and by `host_path` where it lies.",
    )
    sandboxed: Annotated[bool, USER_ONLY] = Field(
        False,
        description="The agent's tools work in a container: a path outside the mounts names a file "
        "in there, never one of this machine. Needs `sources.filesystem_id`.",
    )
    filesystem_id: Annotated[str | None, USER_ONLY] = Field(
        None,
        min_length=1,
        description="Name of the file system of all paths outside the mounts, such as the "
        "container's id. Unset: this machine's own.",
    )
    device_fallback: Annotated[bool, USER_ONLY] = Field(
        False,
        description="Tell file systems apart by their device number where no mount mapping fits.",
    )
    watch: bool = Field(
        True, description="Watch the folders of tracked files, to see changes as they happen."
    )


class Config(Section):
    """Everything that can be configured. `Config()` holds the defaults."""

    store: Annotated[Literal["sqlite", "xtdb"], USER_ONLY] = Field(
        "sqlite",
        description="Where objects are kept: `sqlite`, a file, or `xtdb`, a database that several "
        "machines can share (`foredeck xtdb install` first).",
    )
    home: Annotated[Path, USER_ONLY] = Field(
        default_factory=default_home,
        description="State folder, for this user alone (mode 0700).",
    )
    layout: Literal["anchored", "pools"] = Field(
        "anchored",
        description="Order of the prompt. `anchored` leaves sent bytes where they are; `pools` "
        "puts metadata before the chat and active content after it.",
    )
    policy: Literal["seed-window", "last-n", "adaptive", "lean", "careful", "keep-all"] = Field(
        "adaptive", description="What decides which content stays active."
    )
    deadline_ms: int = Field(
        3000,
        ge=50,
        le=30_000,
        description="Longest time that the host waits for one assembled context, in milliseconds.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="What the engine writes to its log (stderr)."
    )
    sqlite: SqliteSection = Field(default_factory=SqliteSection)
    xtdb: XtdbSection = Field(default_factory=XtdbSection)
    seed_window: SeedWindowSection = Field(default_factory=SeedWindowSection)
    last_n: LastNSection = Field(default_factory=LastNSection)
    adaptive: AdaptiveSection = Field(default_factory=AdaptiveSection)
    digests: DigestsSection = Field(default_factory=DigestsSection)
    rebase: RebaseSection = Field(default_factory=RebaseSection)
    compaction: CompactionSection = Field(default_factory=CompactionSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    sources: SourcesSection = Field(default_factory=SourcesSection)

    @property
    def sqlite_file(self) -> Path:
        """The database file of the embedded store."""
        return self.home / "foredeck.db"

    @field_validator("home")
    @classmethod
    def _home_is_absolute(cls, value: Path) -> Path:
        return _absolute(value)

    @model_validator(mode="after")
    def _container_has_a_name(self) -> Self:
        if self.sources.sandboxed and self.sources.filesystem_id is None:
            raise ValueError(
                "sources.sandboxed needs sources.filesystem_id, a name for the container's files"
            )
        return self

    @model_validator(mode="after")
    def _water_marks_are_apart(self) -> Self:
        if self.rebase.low_water >= self.rebase.high_water:
            raise ValueError("rebase.low_water must be below rebase.high_water")
        return self


def _absolute(path: Path) -> Path:
    """The path with `~` replaced; raises ValueError if it is relative to who knows what."""
    path = path.expanduser()
    if not path.is_absolute():
        raise ValueError("must be an absolute path (or start with ~)")
    return path
