"""What crosses the seam between a host's shim and the engine (docs/protocol.md).

The parameters of each method are pydantic models: the wire is parsed into them once, and the
engine takes them as they are. Members that no model knows are ignored, so that a newer shim can
speak to an older engine. What the engine answers is typed dicts, which cost nothing to make.

Messages, tool definitions and model records are the host's own, in its own shape: only that they
are objects is checked.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

PROTOCOL_VERSION = 2

JsonObject = dict[str, Any]
# Neither copied nor walked: a request may bring thousands of messages.
HostObject = InstanceOf[JsonObject]
"""An object in the host's own shape, passed on as it came."""
Count = Annotated[int, Field(ge=0)]
Milliseconds = int | float
"""Since 1970, as JavaScript counts: not always a whole number."""
Name = Annotated[str, Field(min_length=1)]


class Params(BaseModel):
    """Base of all parameters. JSON types are taken at their word: `"1"` is not a number."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class HostProgram(Params):
    """The program that the shim runs in."""

    name: str
    version: str


class InitializeParams(Params):
    """`initialize`: versions, the project's folder, and whether the host trusts it."""

    protocol: int
    shim: str
    host: HostProgram
    cwd: Name
    trusted: bool
    pid: int | None = None


class SessionParams(Params):
    """Base of what concerns one session."""

    session: Name


class SessionOpenParams(SessionParams):
    """`session/open`: a session has started or come back."""

    file: str | None
    """The host's own file of the session; None where it keeps none."""
    cwd: Name
    reason: Literal["startup", "reload", "new", "resume", "fork"]
    parent: str | None
    """The session that this one is a copy of."""
    parent_file: str | None = None
    """The host's own file of that session, where only this is known."""
    started_by: str | None = None
    """The session whose agent started this host process; None where none did."""
    private: bool = False
    """Whether a new session keeps to itself what is said in it."""
    calls: Count | None = None
    """How many calls the session had when this host process first opened it; None that first
    time."""
    by_user: bool = True
    """Whether what a new session has as the user's is said by this machine's user; a program
    may put any words there."""


class OutcomeParams(Params):
    """What became of one model call. `edited` and `messages` count messages of the host."""

    call: int | None
    """The call whose edits were in force; None where none were."""
    kind: Literal["applied", "fallback", "aborted", "off"]
    edited: Count | None = None
    """Messages before this index went out with those edits."""
    ending: bool = False
    """Whether what is inserted before message `edited` went out too."""
    messages: Count | None = None
    time_ms: Milliseconds | None = None
    reason: str | None = None
    dropped: list[Annotated[list[Count], Field(min_length=2, max_length=2)]] = []
    """Reasoning that the provider says it has kept from the model: pairs of a message and a block
    of it, as the host's list was at that call."""


class ZoneParams(Params):
    """The time zone of the host's clock, and how far ahead of UTC it is now."""

    name: str = Field(max_length=100)
    offset_minutes: int = Field(ge=-1440, lt=1440)


class ListParams(SessionParams):
    """Base of what brings messages of the host's, and what surrounds them."""

    messages: list[HostObject]
    entries: list[str | None]
    """The host's entry id of each message; None where it is not known."""
    system: list[HostObject] | None = None
    tools: list[HostObject] | None = None

    @model_validator(mode="after")
    def _has_one_entry_per_message(self) -> Self:
        if len(self.entries) != len(self.messages):
            raise ValueError(f"{len(self.entries)} entries for {len(self.messages)} messages")
        return self


class SessionHistoryParams(ListParams):
    """`session/history`: all messages of a session, ahead of its first call in this process."""


class AssembleParams(ListParams):
    """`context/assemble`: the new tail of the host's messages."""

    keep: Count
    """How many messages of the last answered request still come before the new ones; of the
    first request, how many of those that `session/history` has brought."""
    model: HostObject | None = None
    time_ms: Milliseconds
    warmed_ms: Milliseconds | None = None
    """When the host last sent the newest request once more to keep the provider's cache warm."""
    zone: ZoneParams | None = None
    outcomes: list[OutcomeParams] = []
    typed: list[str] = []
    """What the user has typed since the last answered request. Nothing else that the messages
    have as the user's is taken for their own words."""


class RefusedParams(SessionParams):
    """`context/refused`: the provider has refused the prompt of the newest `context/assemble`."""

    message: str
    """What it said."""


class SessionCompactParams(SessionParams):
    """`session/compact`: the host wants to replace `messages` by a summary."""

    reason: Literal["manual", "threshold", "overflow"]
    messages: list[HostObject]
    previous: str | None = None
    """The summary that comes before these messages."""
    instructions: str | None = None
    tokens: Count = 0
    """The prompt as the host counts it."""
    reserve: Count = 0
    """Tokens that the host leaves for an answer."""
    new_chars: Count = 0
    """Characters of messages that no `context/assemble` has brought yet."""
    model: HostObject | None = None
    time_ms: Milliseconds


class ToolCallParams(SessionParams):
    """`tool/call`: the model calls one of foredeck's tools."""

    id: Name
    tool: Name
    input: HostObject


class ToolStartedParams(SessionParams):
    """`tool/started`: a tool that names a file is about to run."""

    id: Name
    tool: Name
    path: str


class ToolPrepareParams(SessionParams):
    """`tool/prepare`: a tool that may write files, or `activate` or `pin`, is about to run, and
    waits for the answer."""

    id: Name
    tool: Name
    input: HostObject


class ToolObservedParams(SessionParams):
    """`tool/observed`: a tool of the host, or of another extension, has run."""

    id: Name
    parent: str | None = None
    """The call of code mode inside which this one ran; None for the model's own calls."""
    tool: Name
    input: HostObject | None = None
    content: list[Any] | None = None
    """The host's content blocks."""
    details: Any = None
    is_error: bool = False


class CommandParams(SessionParams):
    """`command`: what the user typed: after `/foredeck`, or `/tasks` and `/search`."""

    name: Name
    args: str = ""


class DoctorParams(Params):
    """`doctor`: what the user checks inside the host."""

    ask: bool = False
    """Ask the model one word."""


class SessionEventParams(SessionParams):
    """`session/event`: something that the next request will show anyway."""

    kind: Name
    """`compact`, `uncompact` or `answer`; one that is not known is passed over."""
    summary: str | None = None
    """`compact`: the summary, where the engine has not written it. `uncompact`: the one that no
    longer replaces its messages."""
    by: Literal["model", "extension"] = "model"
    """`compact`: who wrote the summary."""
    message: HostObject | None = None
    """`answer`: the answer that ends a run."""
    entry: str | None = None
    """The host's entry id of the message or compaction."""


class SessionCloseParams(SessionParams):
    """`session/close`: the host lets go of the session."""

    reason: str | None = None


class InitializeResult(TypedDict):
    """Who the engine is. `warnings` are texts for the user."""

    protocol: int
    engine: str
    store: str
    deadline_ms: int
    prepare_ms: int
    """How long a tool waits for `tool/prepare`; 0 where that is not wanted."""
    command: str
    """What to type in a shell to run the command line."""
    warnings: list[str]


class TaskStatus(TypedDict):
    """What the user sees of the project's tasks: a line, empty for none."""

    line: str


class SessionOpenResult(TypedDict):
    """The session as stored: its calls and objects, and whether it had any when it was opened.
    `tasks` is there where the project has any, as in the answers below."""

    session: str
    calls: int
    objects: int
    resumed: bool
    private: NotRequired[bool]
    """True: nothing said in it is kept outside it; the host shows that while it is open."""
    tasks: NotRequired[TaskStatus]


class SessionHistoryResult(TypedDict):
    """How many of the messages the engine holds now, from the first on."""

    messages: int


class StatusLine(TypedDict):
    """The host's status line."""

    text: str


class UserMessage(TypedDict):
    """Something that the user should read once; on the wire these are `notices`."""

    level: Literal["info", "warning", "error"]
    text: str


SentPlan = TypedDict(
    "SentPlan",
    {"call": int, "from": int, "ops": list[list[Any]], "marker": str | None},
)
"""What goes out from message `from` on, as operations that use up the host's messages in their
order (`hosts/outgoing.py`); what earlier answers have said of those before it holds."""


class AssembleResult(SentPlan):
    """The answer to `context/assemble`."""

    status: StatusLine
    notices: list[UserMessage]


class RefusedResult(TypedDict):
    """`again`: the host is to make the call once more; the engine has another prompt for it."""

    again: bool


class SessionCompactResult(TypedDict):
    """`summary` and `details` are there where the action is `summary`."""

    action: Literal["cancel", "host", "summary"]
    keep: NotRequired[str]
    """The entry id of the first message that stays, where that is not the one that the host has in
    mind."""
    notice: NotRequired[str]
    """What the user should read, once in a session."""
    summary: NotRequired[str]
    details: NotRequired[JsonObject]


class MemoryQuestion(TypedDict):
    """Something that waits for the user's word: its name, and what they read of it."""

    name: str
    lines: list[str]


class ToolCallResult(TypedDict):
    """The text for the model with the images that follow it, and the details that the host keeps on
    the tool's result."""

    text: str
    details: JsonObject
    images: NotRequired[list[JsonObject]]
    tasks: NotRequired[TaskStatus]
    questions: NotRequired[list[MemoryQuestion]]


class ToolPrepareResult(TypedDict):
    """Empty where the tool may run and nothing is to be said. `block` and `notice` are for the
    model."""

    block: NotRequired[str]
    notice: NotRequired[str]
    reads: NotRequired[str]
    """The file that `activate` or `pin` would show, and that no `read` has shown in this chat."""


class ViewRow(TypedDict):
    """A row of a view: what keys call it, and what is shown of it."""

    name: str
    cells: list[str]
    fill: NotRequired[str]
    """What a line that a key asks for begins with."""
    about: NotRequired[list[str]]
    """What else is shown while the row is chosen."""


class ViewKey(TypedDict):
    """A key of a view, and the command that it runs: its name, then its arguments, in which
    `{row}` is replaced by the name of the row and `{text}` by a line that the user types."""

    key: str
    label: str
    run: str
    asks: NotRequired[str]
    """What the user is asked for, where there is a `{text}`."""
    opens: NotRequired[bool]
    """Whether the answer is a text to read; else it is a line, and the view is made again."""


class CommandView(TypedDict):
    """Something to move in, for a host with a screen; `text` beside it is for the others."""

    title: str
    notes: list[str]
    bar: list[tuple[str, int, str]]
    """Of each part: what it is, how large, and what the legend says."""
    heads: list[str]
    """The headings of the columns."""
    rows: list[ViewRow]
    keys: list[ViewKey]
    empty: str
    """What is said where there are no rows."""


class CommandResult(TypedDict):
    """What the user reads."""

    text: str
    view: NotRequired[CommandView]
    tasks: NotRequired[TaskStatus]
    private: NotRequired[bool]
    """As of `SessionOpenResult`."""
    asks: NotRequired[bool]
    """`off`: that costs so much that the user is asked first."""
    choices: NotRequired[list[tuple[str, str]]]
    """`complete`: what could be typed, with a description each."""


class NoResult(TypedDict):
    """An empty object."""
