"""The configuration: one frozen pydantic model; its descriptions are the text of
docs/configuration.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from foredeck.config.sections import (
    CONSTANT,
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

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

HeadPart = Literal["rules", "memory", "page", "worklog", "notes"]


class SeedWindowSection(Section):
    """`[seed_window]`: the policy `seed-window`."""

    per_turn: int = Field(5, ge=1, le=1000)
    """Tool results of one user turn that stay active, newest first."""
    turns: int = Field(3, ge=1, le=1000)
    """User turns, counted back from the newest, that keep any."""


class AdaptiveSection(Section):
    """`[adaptive]`: the policy `adaptive`.

    Ages count model calls since the last use of a content of 1,000 tokens; larger content goes
    earlier.
    """

    patience: float = Field(12, ge=1, le=10_000)
    """Model calls that an unused tool result stays."""
    patience_edited: float = Field(24, ge=1, le=10_000)
    """The same for results about files that the session edits."""
    patience_edits: float = Field(100, ge=1, le=10_000)
    """The same for arguments of calls that edit files: they are small, and the next edit often
    names what they wrote."""
    patience_arguments: float = Field(5, ge=1, le=10_000)
    """The same for other large arguments of tool calls."""
    idle_factor: float = Field(0.7, gt=0, le=1)
    """Factor for what the newest user turn has not used."""
    idle_output: float = Field(0.15, gt=0, le=1)
    """The same for what commands and searches have printed: later edits are of files, and a digest
    names what else is used."""
    cold_factor: float = Field(0.6, gt=0, le=1)
    """Factor while the provider's cache is cold, but for edited files; for everything where a turn
    begins whose sealed reasoning is expected to bind what precedes it."""
    longest_factor: float = Field(2.0, ge=1, le=1000)
    """Most that a small size makes of patience, which goes by the root of 1,000 tokens over the
    size."""
    newest_results: Annotated[int, CONSTANT] = Field(5, ge=0)
    """How many of the newest results never fold as long as the prompt fits."""
    fold_answers: bool = True
    """Leave out the middle of the model's own answers, from 2,000 characters on, of earlier turns,
    but for the names that nothing else holds."""
    fold_runs_after: int = Field(8, ge=0, le=10_000)
    """Calls in a row that are folded are shown as one line, except the newest, of which there are
    this many; 0 keeps a line for each call."""
    fold_turns_after: int = Field(100, ge=0, le=10_000)
    """After how many more calls what the model said in a turn, but for its last words, goes with
    the turn's folded calls, where `fold_answers` allows it; 0 for never."""
    fold_prepared: bool = False
    """Fold what a turn has read like any other result. Otherwise its reads stay until the turn has
    edited them or ends, or the cache is cold."""


class PastesSection(Section):
    """`[pastes]`: long messages of yours, such as a pasted log."""

    objects: Annotated[bool, CONSTANT] = True
    """Make an object of a text of yours from 8,000 characters on, whose middle [the
    policy](context.md#what-folds) may fold in later turns."""


class DigestsSection(Section):
    """`[digests]`: what is left of a folded result beside its reference line."""

    max_tokens: Annotated[int, CONSTANT] = Field(250, ge=0, le=10_000)
    """Most tokens of a digest, which never has more than a tenth of the result's; 0 for no
    digests."""


class RebaseSection(Section):
    """`[rebase]`: when bytes that were already sent may be rewritten."""

    high_water: Annotated[float, CONSTANT] = Field(0.85, gt=0, le=1)
    """Share of the model's window above which content must go, least recently used first, down to
    about 70% of this. Lower by itself where the host would compact earlier."""
    cache_ttl_s: int | None = Field(None, ge=0, le=7 * 86_400)
    """Seconds after which the provider's prompt cache counts as expired. Unset: by Pi's model
    record, else by the provider."""
    cache: Annotated[Literal["auto", "prefix", "markers", "breakpoints"], CONSTANT] = "auto"
    """How the provider's prompt cache finds what was sent before: any `prefix`, or only up to where
    cache `markers` stood (Anthropic's rule) or another request ended (`breakpoints`, OpenAI's).
    `auto`: by the model's record."""
    min_saving_tokens: Annotated[int, CONSTANT] = Field(30, ge=0)
    """Content that would save fewer tokens than this is left alone."""
    carrying_factor: Annotated[float, CONSTANT] = Field(1.0, ge=0, le=1000)
    """A rebase pays when reading what may go has cost this many times what rewriting the rest
    would."""
    ending_share: Annotated[float, CONSTANT] = Field(0.5, gt=0, le=1)
    """After a pause, a message of foredeck's ends a turn whose sealed reasoning keeps at least this
    share of the chat, and 2,000 tokens, from folding. 1: never."""
    within_sealed_turns: Annotated[bool, CONSTANT] = True
    """Rewrite also within a turn that holds sealed reasoning, where no provider is known to refuse
    that, and let such reasoning go with turns long past."""
    guard: Annotated[float, CONSTANT] = Field(0.05, ge=0, le=10)
    """By what share a session may become dearer, at any moment, than with nothing folded and
    without our tools: a rebase that pays later waits until it would not."""
    reasoning: Annotated[float, CONSTANT] = Field(1.0, ge=0, le=10)
    """What a token of reasoning that a rebase loses is worth, as a share of what it cost to
    generate; of models that lose all of it behind a changed byte."""
    old_reasoning: Annotated[float, CONSTANT] = Field(0.1, ge=0, le=1)
    """What is left of that where it is older than the last 20 answers."""
    pause_factor: Annotated[float, CONSTANT] = Field(4.0, ge=0, le=100)
    """After a pause what folding is expected to save must be worth this many times the reasoning
    that is lost by it."""
    gap: Annotated[int, CONSTANT] = Field(10, ge=0)
    """Calls from one rebase to the next that is made because it pays, or that loses reasoning."""


class CompactionSection(Section):
    """`[compaction]`: what takes the place of chat that does not fit any more."""

    automatic: Literal["foredeck", "model"] = "foredeck"
    """Who writes the summary at Pi's threshold if folding does not help: `foredeck`, without a
    model call, or Pi's `model`."""
    manual: Literal["foredeck", "model"] = "model"
    """The same for `/compact`. With instructions it is always the model."""


class WorkingMemorySection(Section):
    """`[working]`: the page that a project, or a session, keeps from session to session."""

    max_chars: Annotated[int, CONSTANT] = Field(4000, ge=200, le=16_384)
    """Longest page that is kept, in characters."""
    template: str = ""
    """The project's page, in Markdown, before anybody has written to it. Empty: tech stack, project
    structure, user preferences, current work."""


class HeadBudgetSection(Section):
    """`[head]`: the block before the chat that says what there is beside it."""

    tokens: int = Field(200, ge=0, le=10_000)
    """Most tokens of [the head](context.md#the-head) at first; 0 for none."""
    max_tokens: Annotated[int, CONSTANT] = Field(1200, ge=0, le=10_000)
    """Most tokens that it grows to, each time that the whole prompt is written again at no cost and
    `rebase.guard` allows it. Never more than a fiftieth of the window."""
    pause_minutes: Annotated[int, CONSTANT] = Field(30, ge=0, le=10_000)
    """After how many minutes without a message the next one of yours carries date, time and time
    zone, in a line of its own; 0 for never."""
    shows: Annotated[tuple[HeadPart, ...], USER_ONLY] = (
        *("rules", "memory", "page", "worklog", "notes"),
    )
    """What the head shows: your [rules](memory.md#rules), memory, the project's page, earlier work,
    and notes that the chat does not show."""


BUILT_IN = ("adaptive", "seed-window", "keep-all")

ENTRY_POINTS = "foredeck.policies"
"""The group under which packages name their policies in `pyproject.toml`."""


def installed_policies() -> dict[str, EntryPoint]:
    """The policies of other packages, by name."""
    # Only for a policy that is not built in.
    from importlib.metadata import entry_points

    policies = entry_points(group=ENTRY_POINTS)
    return {entry.name: entry for entry in policies if entry.name not in BUILT_IN}


def check_policy(name: str) -> str:
    """The name, if there is such a policy. Raises `ValueError` that lists all."""
    if name in BUILT_IN:
        return name
    installed = installed_policies()
    if name not in installed:
        names = ", ".join([*BUILT_IN, *sorted(installed)])
        raise ValueError(f"there is no policy {name!r}; the policies are {names}")
    return name


class Config(Section):
    """Everything that can be configured. `Config()` holds the defaults."""

    store: Annotated[Literal["sqlite", "xtdb"], USER_ONLY] = "sqlite"
    """Where objects are kept: in a file, or in [XTDB](xtdb.md), which machines can share."""
    home: Annotated[Path, OUTSIDE_FILES] = Field(default_factory=default_home)
    """State folder."""
    layout: Literal["anchored", "pools"] = "anchored"
    """Order of the prompt: `anchored` leaves sent bytes where they are, `pools` rewrites it at
    every call, with metadata before the chat and active content after it."""
    policy: Annotated[str, AfterValidator(check_policy)] = "adaptive"
    """What decides which content stays: `adaptive`, `seed-window`, `keep-all`, or one of another
    package ([context.md](context.md#what-folds))."""
    policy_options: Annotated[dict[str, Any], USER_ONLY] = Field(default_factory=dict)
    """Arguments for the constructor of another package's policy."""
    deadline_ms: Annotated[int, USER_ONLY] = Field(3000, ge=50, le=30_000)
    """How long Pi waits for a prompt, in milliseconds."""
    guard: Annotated[Literal["block", "warn", "off"], USER_ONLY] = "block"
    """What happens to a `write` or `edit` of a file that something else has changed
    ([files.md](files.md#the-stale-edit-guard)): `block` refuses it with the difference, `warn` adds
    the difference to its result."""
    prepare_ms: Annotated[int, USER_ONLY, CONSTANT] = Field(250, ge=10, le=10_000)
    """Longest time that a tool which may write files waits for the engine before it runs, in
    milliseconds. Of a command's, most may go into keeping what is there before it."""
    opening_ms: Annotated[int, USER_ONLY, CONSTANT] = Field(300, ge=0, le=10_000)
    """Longest time that the opening of a session waits for the [work log](worklog.md) and the graph
    of [notes](notes.md), in milliseconds. What is not read by then is taken in later."""
    rewind: Annotated[bool, USER_ONLY] = True
    """Keep what tools do to files, so that it can be taken back
    ([files.md](files.md#rewinding))."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """What the engine writes to its log."""
    observations: Literal["auto", "on", "off"] = "auto"
    """Whether [notes on the chat](observations.md#when) are written in the background, to replace
    it later: `auto` if that pays."""
    sqlite: Annotated[SqliteSection, USER_ONLY] = Field(default_factory=SqliteSection)
    xtdb: Annotated[XtdbSection, USER_ONLY] = Field(default_factory=XtdbSection)
    seed_window: SeedWindowSection = Field(default_factory=SeedWindowSection)
    adaptive: Annotated[AdaptiveSection, CONSTANT] = Field(default_factory=AdaptiveSection)
    pastes: PastesSection = Field(default_factory=PastesSection)
    digests: DigestsSection = Field(default_factory=DigestsSection)
    rebase: RebaseSection = Field(default_factory=RebaseSection)
    head: HeadBudgetSection = Field(default_factory=HeadBudgetSection)
    compaction: CompactionSection = Field(default_factory=CompactionSection)
    limits: Annotated[LimitsSection, USER_ONLY] = Field(default_factory=LimitsSection)
    sources: Annotated[SourcesSection, USER_ONLY] = Field(default_factory=SourcesSection)
    notes: NotesSection = Field(default_factory=NotesSection)
    working: WorkingMemorySection = Field(default_factory=WorkingMemorySection)
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
