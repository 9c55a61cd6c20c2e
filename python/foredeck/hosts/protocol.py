"""What crosses between a host's shim and the engine (docs/protocol.md).

Unknown members are ignored, so that newer shims work with older engines.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

PROTOCOL_VERSION = 2

JsonObject = dict[str, Any]
# Neither copied nor walked: a request may bring thousands of messages.
HostObject = InstanceOf[JsonObject]
"""An object in the host's shape, passed on unchanged."""
Count = Annotated[int, Field(ge=0)]
Milliseconds = int | float
"""Since 1970; fractions possible, as in JavaScript."""
Name = Annotated[str, Field(min_length=1)]


class Params(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class HostProgram(Params):
    """The program around the shim."""

    name: str
    version: str


class InitializeParams(Params):
    """`initialize`: versions, project folder, and whether it is trusted."""

    protocol: int
    shim: str
    host: HostProgram
    cwd: Name
    trusted: bool
    pid: int | None = None


class SessionParams(Params):
    session: Name


class RunningTool(Params):
    """A tool that may write files and began with an earlier engine."""

    id: Name
    tool: Name
    input: HostObject


class SessionOpenParams(SessionParams):
    """`session/open`: a session has started or resumed."""

    file: str | None
    """The host's session file, if any."""
    cwd: Name
    reason: Literal["startup", "reload", "new", "resume", "fork"]
    parent: str | None
    """The session that this one copies."""
    parent_file: str | None = None
    """The host's file of the parent, if only that is known."""
    started_by: str | None = None
    """The session whose agent started this process, if any."""
    private: bool = False
    """Whether a new session is private."""
    calls: Count | None = None
    """Calls when this process first opened it."""
    by_user: bool = True
    """Whether a new session's user text is the user's; programs may put words there."""
    running: list[RunningTool] = []
    """Tools whose results the engine does not have yet."""


class OutcomeParams(Params):
    """What became of a model call; counts are of host messages."""

    call: int | None
    """The call whose edits were in force."""
    kind: Literal["applied", "fallback", "aborted", "off"]
    edited: Count | None = None
    """Messages before this index went out edited."""
    ending: bool = False
    """Whether inserts before message `edited` went out too."""
    messages: Count | None = None
    time_ms: Milliseconds | None = None
    reason: str | None = None
    reasoning: list[HostObject] = []
    """What the provider did to the prompt's reasoning, in the host's shape."""


class ZoneParams(Params):
    name: str = Field(max_length=100)
    offset_minutes: int = Field(ge=-1440, lt=1440)


class InputParams(Params):
    """What came into the host as the user's next message."""

    text: str
    source: str
    screen: bool
    arguments: list[str]
    """Those of the host's command line."""


class ListParams(SessionParams):
    """Messages of the host with their surroundings."""

    messages: list[HostObject]
    entries: list[str | None]
    """The host's entry id per message; None if unknown."""
    system: list[HostObject] | None = None
    tools: list[HostObject] | None = None

    @model_validator(mode="after")
    def _has_one_entry_per_message(self) -> Self:
        if len(self.entries) != len(self.messages):
            raise ValueError(f"{len(self.entries)} entries for {len(self.messages)} messages")
        return self


class SessionHistoryParams(ListParams):
    """`session/history`: messages before a session's first call here."""


class AssembleParams(ListParams):
    """`context/assemble`: the new end of the host's messages."""

    keep: Count
    """Messages of the last answered request that precede the new ones."""
    model: HostObject | None = None
    time_ms: Milliseconds
    warmed_ms: Milliseconds | None = None
    """When the host last renewed the cache."""
    zone: ZoneParams | None = None
    outcomes: list[OutcomeParams] = []
    typed: list[InputParams] = []
    """Since the last answered request; nothing else counts as the user's words."""


class RefusedParams(SessionParams):
    """`context/refused`: the provider refused the newest `context/assemble`."""

    message: str
    """The provider's words."""


class SessionCompactParams(SessionParams):
    """`session/compact`: the host wants to summarise `messages`."""

    reason: Literal["manual", "threshold", "overflow"]
    messages: list[HostObject]
    previous: str | None = None
    """The summary before these messages."""
    instructions: str | None = None
    tokens: Count = 0
    """The prompt as the host counts it."""
    reserve: Count = 0
    """Tokens left free for an answer."""
    new_chars: Count = 0
    """Characters in no `context/assemble` yet."""
    model: HostObject | None = None
    time_ms: Milliseconds


class ToolCallParams(SessionParams):
    id: Name
    tool: Name
    input: HostObject


class ToolStartedParams(SessionParams):
    """`tool/started`: a tool is about to run."""

    id: Name
    tool: Name
    path: str


class ToolPrepareParams(SessionParams):
    """`tool/prepare`: a writing tool, `activate` or `pin` waits."""

    id: Name
    tool: Name
    input: HostObject


class ToolObservedParams(SessionParams):
    """`tool/observed`: a tool has run."""

    id: Name
    parent: str | None = None
    """The outer call in code mode."""
    tool: Name
    input: HostObject | None = None
    content: list[Any] | None = None
    """The host's content blocks."""
    details: Any = None
    is_error: bool = False
    took_ms: int | None = None


class CommandParams(SessionParams):
    """`command`: typed after `/foredeck`, or `/tasks` and `/search`."""

    name: Name
    args: str = ""


class DoctorParams(Params):
    """`doctor`: a check within the host."""

    ask: bool = False
    """Whether to ask the model one word."""


class SessionEventParams(SessionParams):
    kind: Name
    """`compact`, `uncompact` or `answer`; others are ignored."""
    summary: str | None = None
    """`compact`: the summary; `uncompact`: the one taken back."""
    by: Literal["model", "extension"] = "model"
    """`compact`: the summary's author."""
    message: HostObject | None = None
    """`answer`: the answer that ends a run."""
    entry: str | None = None
    """The host's entry id of message or compaction."""


class SessionCloseParams(SessionParams):
    reason: str | None = None


class InitializeResult(TypedDict):
    """The engine. `warnings` are for the user."""

    protocol: int
    engine: str
    store: str
    deadline_ms: int
    prepare_ms: int
    """How long a tool waits for `tool/prepare`."""
    command: str
    """The shell command of the command line."""
    warnings: list[str]


class TaskStatus(TypedDict):
    """The user's line on the project's tasks; empty for none."""

    line: str


class SessionOpenResult(TypedDict):
    """The stored session; `tasks` if the project has any."""

    session: str
    calls: int
    objects: int
    resumed: bool
    private: NotRequired[bool]
    """True: private; the host shows that."""
    tasks: NotRequired[TaskStatus]


class SessionHistoryResult(TypedDict):
    messages: int


class StatusLine(TypedDict):
    """The host's status line."""

    text: str


class UserMessage(TypedDict):
    """A message that the user reads once (`notices` on the wire)."""

    level: Literal["info", "warning", "error"]
    text: str


SentPlan = TypedDict(
    "SentPlan", {"call": int, "from": int, "ops": list[list[Any]], "marker": str | None}
)
"""Operations from message `from` on; before it earlier answers hold."""


class AssembleResult(SentPlan):
    """The answer to `context/assemble`."""

    status: StatusLine
    notices: list[UserMessage]


class RefusedResult(TypedDict):
    """`again`: repeat the call, with another prompt."""

    again: bool


class SessionCompactResult(TypedDict):
    """What to do about a compaction; `summary` and `details` belong to action `summary`."""

    action: Literal["cancel", "host", "summary"]
    keep: NotRequired[str]
    """If not the host's choice."""
    notice: NotRequired[str]
    """Once per session."""
    summary: NotRequired[str]
    details: NotRequired[JsonObject]


class MemoryQuestion(TypedDict):
    name: str
    lines: list[str]


class ToolCallResult(TypedDict):
    """Text and images for the model, and details for the host to keep."""

    text: str
    details: JsonObject
    images: NotRequired[list[JsonObject]]
    tasks: NotRequired[TaskStatus]
    questions: NotRequired[list[MemoryQuestion]]


class ToolPrepareResult(TypedDict):
    """The answer, empty if the tool may simply run."""

    block: NotRequired[str]
    notice: NotRequired[str]
    reads: NotRequired[str]
    """The file that would be shown before any `read`."""


class ViewRow(TypedDict):
    """A row of a view, by the name that keys use."""

    name: str
    cells: list[str]
    fill: NotRequired[str]
    """Beginning of a line that a key asks for."""
    about: NotRequired[list[str]]
    """Further lines while the row is chosen."""


class ViewKey(TypedDict):
    """A view's key; its command has `{row}`, `{rows}` (marked ones) and `{text}` (typed)
    replaced."""

    key: str
    label: str
    run: str
    asks: NotRequired[str]
    """The question for `{text}`."""
    opens: NotRequired[bool]
    """Whether the answer is a text, or a line."""


class CommandView(TypedDict):
    """An interactive view for hosts with a screen; others show `text`."""

    title: str
    notes: list[str]
    bar: list[tuple[str, int, str]]
    """Kind, size and legend of each part."""
    heads: list[str]
    """Column headings."""
    rows: list[ViewRow]
    keys: list[ViewKey]
    empty: str
    """Shown without rows."""


Choice = tuple[str, str]
"""What completes typed arguments, and what it names."""


class CommandResult(TypedDict):
    """What the user reads."""

    text: str
    view: NotRequired[CommandView]
    tasks: NotRequired[TaskStatus]
    private: NotRequired[bool]
    """As in `SessionOpenResult`."""
    asks: NotRequired[bool]
    """`off`: costly enough to ask first."""
    choices: NotRequired[list[Choice]]
    """`complete`: completions with descriptions."""


class NoResult(TypedDict): ...
