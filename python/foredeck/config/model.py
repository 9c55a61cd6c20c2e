"""The configuration: one frozen pydantic model, every key with its default and its meaning.

Where the values come from is the business of `foredeck.config.load`; the descriptions here and in
the modules of the sections are also the text of docs/configuration.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from foredeck.config.outside import (
    LimitsSection,
    NotesSection,
    SourcesSection,
    SqliteSection,
    XtdbSection,
)
from foredeck.config.prompt import (
    BUILT_IN,
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
from foredeck.config.section import OUTSIDE_FILES, USER_ONLY, Section, absolute_path
from foredeck.home import default_home
from foredeck.model.own_tools import FACILITY_TOOLS, Facility


class AskingSection(Section):
    """`[asking]`: when a model may be asked for foredeck, beside the agent's work."""

    enabled: bool = Field(
        True,
        description="Whether foredeck may ask a model by itself at all, in the background. What "
        "you ask for with a command is asked all the same.",
    )
    model: str | None = Field(
        None,
        pattern=r"^[^/\s]+/\S+$",
        description="The model to ask, as `provider/id`: a cheaper one, say. Unset: the one that "
        "the agent works with, whose warm cache can then be read.",
    )
    share: float = Field(
        0.08,
        ge=0,
        le=1,
        description="Most that questions may cost, as a share of what the session has cost so far.",
    )
    per_hour: int = Field(20, ge=0, le=1000, description="Most questions within an hour.")
    single_slot: bool = Field(
        False,
        description="Whether a model on this machine or without a price may be asked: it usually "
        "answers one at a time, so a question pushes the agent's own prompt out of its cache.",
    )
    timeout_s: int = Field(120, ge=5, le=600, description="Longest wait for an answer, in seconds.")


class ToolsSection(Section):
    """`[tools]`: what the model's tools are, from the next session on.

    A tool is declared with every request, so one that came or went within a session would void
    the provider's whole cache. What is off costs nothing.
    """

    context: bool = Field(
        True,
        description="`activate`, `deactivate`, `pin`, `unpin`. Without them content still folds, "
        "and the model reads again what it needs.",
    )
    search: bool = Field(
        True, description="`memory-search`: what was said, done and read in any session."
    )
    tasks: Literal["auto", "on", "off"] = Field(
        "auto",
        description="`task-query`, `task-mutate`: `auto` declares them where the project holds "
        "tasks or has a page of working memory, which the model writes with them, or after "
        "`/tasks on`.",
    )

    findings: Literal["auto", "on", "off"] = Field(
        "auto",
        description="`promote-finding`: `auto` declares it where a session of the project has had "
        "one of `memory.data_tools`, or after `/memory findings on`.",
    )

    def declared(
        self, has_use_for: Callable[[Facility], bool] = lambda _facility: False
    ) -> tuple[Facility, ...]:
        """What a session of a project declares. `has_use_for`: whether the project has a use for a
        facility; asked where that is set to `auto`."""
        set_to = {facility: getattr(self, facility) for facility in FACILITY_TOOLS}
        return tuple(
            facility
            for facility, switch in set_to.items()
            if switch in (True, "on") or (switch == "auto" and has_use_for(facility))
        )


class ObservingSection(Section):
    """`[observing]`: how sessions are observed, where `observations` is not `off`."""

    scope: Literal["thread", "resource"] = Field(
        "thread",
        description="Whose notes a session has: its own (`thread`), or those of the project's "
        "other sessions as well (`resource`), as a short block in its head. Then nothing is "
        "observed before the threshold is reached, and one session of a project at a time.",
    )
    mode: (
        Literal[
            "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
        ]
        | None
    ) = Field(
        None,
        description="What kind of work is observed. Unset: guessed by what the tools did, unless "
        "you say it in a session (`/foredeck observe mode testing`).",
    )
    threshold: int | None = Field(
        None,
        ge=2000,
        le=1_000_000,
        description="Tokens of chat from which on observations take its place, themselves "
        "included. Unset: that of the mode, 30,000 to 60,000.",
    )
    buffer_tokens: int = Field(
        6000,
        ge=500,
        le=100_000,
        description="Fewest tokens of chat that are observed at once.",
    )
    subagents: bool = Field(
        False, description="Whether sessions that an agent has started are observed, too."
    )


class MemorySection(Section):
    """`[memory]`: what is kept of sessions, and of you beyond them ([memory.md](memory.md))."""

    extract: bool = Field(
        True,
        description="Whether a model is asked after a turn what of it is worth remembering, within "
        "what `[asking]` allows.",
    )
    accept: Literal["ask", "user-stated", "off"] = Field(
        "user-stated",
        description="What of that outlives its session. `user-stated` keeps whole sentences of "
        "yours and asks you about all else (`/memory`); `ask` asks about everything; `off` keeps "
        "nothing.",
    )
    data_tools: tuple[str, ...] = Field(
        ("load-data", "query-data", "query-sql", "analyze-data", "duckdb", "sql"),
        description="Tools of other extensions that bring data. After one of them has, the model "
        "may propose findings (`tools.findings`), and `findings` among the details of their "
        "results are proposed to you.",
    )
    head: bool = Field(
        True,
        description="What is kept of you, of the session and of its findings stands before the "
        "chat. Nothing does where nothing is kept.",
    )
    rules: bool = Field(
        True,
        description="What `rules.md` beside your own configuration file says stands first there.",
    )
    expire_days: int = Field(
        90,
        ge=1,
        le=10_000,
        description="After how many days without use an entry expires that you have not stated.",
    )


class Config(Section):
    """Everything that can be configured. `Config()` holds the defaults."""

    store: Annotated[Literal["sqlite", "xtdb"], USER_ONLY] = Field(
        "sqlite",
        description="Where objects are kept: `sqlite`, a file, or `xtdb`, a database that several "
        "machines can share (`foredeck xtdb install` first).",
    )
    home: Annotated[Path, OUTSIDE_FILES] = Field(
        default_factory=default_home,
        description="State folder, for this user alone (mode 0700). The Pi extension needs it "
        "before any file is read.",
    )
    layout: Literal["anchored", "pools"] = Field(
        "anchored",
        description="Order of the prompt. `anchored` leaves sent bytes where they are; `pools` "
        "puts metadata before the chat and active content after it.",
    )
    policy: Annotated[str, AfterValidator(check_policy)] = Field(
        "adaptive",
        description="What decides which content stays active: "
        f"{', '.join(f'`{name}`' for name in BUILT_IN)}, or one that another package brings "
        "([policies.md](policies.md)).",
    )
    policy_options: Annotated[dict[str, Any], USER_ONLY] = Field(
        default_factory=dict,
        description="What a policy of another package is made with; those that come with foredeck "
        "have sections of their own.",
    )
    deadline_ms: Annotated[int, USER_ONLY] = Field(
        3000,
        ge=50,
        le=30_000,
        description="Longest time that the host waits for one assembled context, in milliseconds.",
    )
    guard: Annotated[Literal["block", "warn", "off"], USER_ONLY] = Field(
        "block",
        description="What happens to a `write` or `edit` of a file that something else has changed "
        "since the agent last saw it ([time-machine.md](time-machine.md)): `block` answers it "
        "with the difference, `warn` adds the difference to its result, `off` does nothing.",
    )
    prepare_ms: Annotated[int, USER_ONLY] = Field(
        250,
        ge=10,
        le=10_000,
        description="Longest time that a tool which may write files waits for the engine before it "
        "runs, in milliseconds. Of a command's, most may go into keeping what is there before it.",
    )
    opening_ms: Annotated[int, USER_ONLY] = Field(
        300,
        ge=0,
        le=10_000,
        description="Longest time that the opening of a session waits for what is worked out from "
        "the store, in milliseconds: the [work log](worklog.md) and the graph of [notes](notes.md) "
        "share it. What is not read by then is taken in later. A call that writes the "
        "[head](context.md#the-head) waits as long for the notes.",
    )
    rewind: Annotated[bool, USER_ONLY] = Field(
        True,
        description="Whether what tools do to files is kept, so that it can be taken back "
        "([time-machine.md](time-machine.md)).",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="What the engine writes to its log (stderr)."
    )
    observations: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Whether notes on the chat are written in the background, to stand in its "
        "place later ([observations.md](observations.md)): `auto` where the chat fills 65% of a "
        "large window and asking a model costs less than going on with what it would stand for "
        "(without one where none can be asked), `on` always, `off` never.",
    )
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
