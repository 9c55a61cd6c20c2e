"""The configuration: one frozen pydantic model, every key with its default and its meaning.

Where the values come from is the business of `foredeck.config.load`; the descriptions here and in
the modules of the sections are also the text of docs/configuration.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from foredeck.config.prompt import (
    AdaptiveSection,
    CompactionSection,
    DigestsSection,
    HeadBudgetSection,
    LastNSection,
    PastesSection,
    RebaseSection,
    SeedWindowSection,
    WorkingMemorySection,
    WorklogSection,
    check_policy,
)
from foredeck.config.sections import (
    OUTSIDE_FILES,
    USER_ONLY,
    AskingSection,
    LimitsSection,
    MemorySection,
    NotesSection,
    ObservingSection,
    Section,
    SourcesSection,
    SqliteSection,
    ToolsSection,
    XtdbSection,
    absolute_path,
)
from foredeck.home import default_home


class Config(Section):
    """Everything that can be configured. `Config()` holds the defaults."""

    store: Annotated[Literal["sqlite", "xtdb"], USER_ONLY] = "sqlite"
    """Where objects are kept: `sqlite`, a file, or `xtdb`, a database that several machines can
    share (`foredeck xtdb install` first)."""
    home: Annotated[Path, OUTSIDE_FILES] = Field(default_factory=default_home)
    """State folder, for this user alone (mode 0700). The Pi extension needs it before any file is
    read."""
    layout: Literal["anchored", "pools"] = "anchored"
    """Order of the prompt. `anchored` leaves sent bytes where they are; `pools` puts metadata
    before the chat and active content after it."""
    policy: Annotated[str, AfterValidator(check_policy)] = "adaptive"
    """What decides which content stays active: `adaptive`, `lean`, `careful`, `seed-window`,
    `last-n`, `keep-all`, or one that another package brings ([policies.md](policies.md))."""
    policy_options: Annotated[dict[str, Any], USER_ONLY] = Field(default_factory=dict)
    """What a policy of another package is made with; those that come with foredeck have sections of
    their own."""
    deadline_ms: Annotated[int, USER_ONLY] = Field(3000, ge=50, le=30_000)
    """Longest time that the host waits for one assembled context, in milliseconds."""
    guard: Annotated[Literal["block", "warn", "off"], USER_ONLY] = "block"
    """What happens to a `write` or `edit` of a file that something else has changed since the agent
    last saw it ([time-machine.md](time-machine.md)): `block` answers it with the difference, `warn`
    adds the difference to its result, `off` does nothing."""
    prepare_ms: Annotated[int, USER_ONLY] = Field(250, ge=10, le=10_000)
    """Longest time that a tool which may write files waits for the engine before it runs, in
    milliseconds. Of a command's, most may go into keeping what is there before it."""
    opening_ms: Annotated[int, USER_ONLY] = Field(300, ge=0, le=10_000)
    """Longest time that the opening of a session waits for what is worked out from the store, in
    milliseconds: the [work log](worklog.md) and the graph of [notes](notes.md) share it. What is
    not read by then is taken in later. A call that writes the [head](context.md#the-head) waits as
    long for the notes."""
    rewind: Annotated[bool, USER_ONLY] = True
    """Whether what tools do to files is kept, so that it can be taken back
    ([time-machine.md](time-machine.md))."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """What the engine writes to its log (stderr)."""
    observations: Literal["auto", "on", "off"] = "auto"
    """Whether notes on the chat are written in the background, to replace it later
    ([observations.md](observations.md)): `auto` where the chat fills 65% of a large window and
    asking a model costs less than keeping the chat that the notes replace (without a model where
    none can be asked), `on` always, `off` never."""
    sqlite: Annotated[SqliteSection, USER_ONLY] = Field(default_factory=SqliteSection)
    xtdb: Annotated[XtdbSection, USER_ONLY] = Field(default_factory=XtdbSection)
    seed_window: SeedWindowSection = Field(default_factory=SeedWindowSection)
    last_n: LastNSection = Field(default_factory=LastNSection)
    adaptive: AdaptiveSection = Field(default_factory=AdaptiveSection)
    pastes: PastesSection = Field(default_factory=PastesSection)
    digests: DigestsSection = Field(default_factory=DigestsSection)
    rebase: RebaseSection = Field(default_factory=RebaseSection)
    head: HeadBudgetSection = Field(default_factory=HeadBudgetSection)
    compaction: CompactionSection = Field(default_factory=CompactionSection)
    limits: Annotated[LimitsSection, USER_ONLY] = Field(default_factory=LimitsSection)
    sources: Annotated[SourcesSection, USER_ONLY] = Field(default_factory=SourcesSection)
    notes: NotesSection = Field(default_factory=NotesSection)
    working: WorkingMemorySection = Field(default_factory=WorkingMemorySection)
    worklog: WorklogSection = Field(default_factory=WorklogSection)
    tools: ToolsSection = Field(default_factory=ToolsSection)
    observing: ObservingSection = Field(default_factory=ObservingSection)
    asking: Annotated[AskingSection, USER_ONLY] = Field(default_factory=AskingSection)
    memory: Annotated[MemorySection, USER_ONLY] = Field(default_factory=MemorySection)

    @property
    def sqlite_file(self) -> Path:
        """The database file of the embedded store."""
        return self.home / "foredeck.db"

    @property
    def opening_s(self) -> float:
        """`opening_ms`, in seconds."""
        return self.opening_ms / 1000

    @field_validator("home")
    @classmethod
    def _home_is_absolute(cls, value: Path) -> Path:
        return absolute_path(value)

    @model_validator(mode="after")
    def _container_has_a_name(self) -> Self:
        if self.sources.sandboxed and self.sources.filesystem_id is None:
            raise ValueError(
                "sources.sandboxed needs sources.filesystem_id, a name for the container's files"
            )
        return self
