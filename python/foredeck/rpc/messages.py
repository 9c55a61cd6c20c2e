"""The shapes of what the shim sends (docs/protocol.md), as pydantic models of the params.

They check; they do not convert: the engine gets the params as they came. Unknown members are
ignored, so that a newer shim can speak to an older engine. Messages of the host and their content
are the host's own business and pass unchecked, which also keeps long sessions fast.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from foredeck.rpc.errors import InvalidParamsError

JsonObject = dict[str, Any]
Count = Annotated[int, Field(ge=0)]
Milliseconds = int | float
Name = Annotated[str, Field(min_length=1)]

PROBLEMS_SHOWN = 3

T = TypeVar("T", bound="Params")


class Params(BaseModel):
    """Base of all params: JSON types are taken at their word, `"1"` is not a number."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class Host(Params):
    """The program that the shim runs in."""

    name: str
    version: str


class Initialize(Params):
    """`initialize`: versions, the project's folder, and whether the host trusts it."""

    protocol: int
    shim: str
    host: Host
    cwd: Name
    trusted: bool
    pid: int | None = None


class SessionOpen(Params):
    """`session/open`: a session has started or come back."""

    session: Name
    file: str | None
    cwd: Name
    reason: Literal["startup", "reload", "new", "resume", "fork"]
    parent: str | None
    started_by: str | None = None
    """The session whose agent started this host process; None where nobody's did."""
    calls: Count | None = None
    """Calls that the session had when the host opened it first; None that first time."""


class Outcome(Params):
    """What became of one model call. `edited` and `messages` count messages of the host.
    `ending`: what is inserted before message `edited` went out too."""

    call: int | None
    kind: Literal["applied", "fallback", "aborted", "off"]
    edited: Count | None = None
    ending: bool = False
    messages: Count | None = None
    time_ms: Milliseconds | None = None
    reason: str | None = None


class Assemble(Params):
    """`context/assemble`: the new tail of the host's messages."""

    session: Name
    keep: Count
    messages: list[JsonObject]
    entries: list[str | None]
    system: list[JsonObject] | None = None
    tools: list[JsonObject] | None = None
    model: JsonObject | None = None
    time_ms: Milliseconds
    outcomes: list[Outcome] = []

    @model_validator(mode="after")
    def _one_entry_a_message(self) -> Self:
        if len(self.entries) != len(self.messages):
            raise ValueError(f"{len(self.entries)} entries for {len(self.messages)} messages")
        return self


class SessionCompact(Params):
    """`session/compact`: the host wants to put `messages` away."""

    session: Name
    reason: Literal["manual", "threshold", "overflow"]
    messages: list[JsonObject]
    previous: str | None = None
    instructions: str | None = None
    tokens: Count = 0
    reserve: Count = 0
    new_chars: Count = 0
    model: JsonObject | None = None
    time_ms: Milliseconds


class ToolCall(Params):
    """`tool/call`: the model calls a tool of ours."""

    session: Name
    id: Name
    tool: Name
    input: JsonObject


class ToolStarted(Params):
    """`tool/started`: a tool that names a file is about to run."""

    session: Name
    id: Name
    tool: Name
    path: str


class ToolObserved(Params):
    """`tool/observed`: a tool of the host, or of another extension, has run."""

    session: Name
    id: Name
    parent: str | None = None
    tool: Name
    input: Any = None
    content: Any = None
    details: Any = None
    is_error: bool = False


class Command(Params):
    """`command`: what the user typed after /foredeck."""

    session: Name
    name: Name
    args: str = ""


class SessionEvent(Params):
    """`session/event`: told early; its other members depend on the kind."""

    session: Name
    kind: Name


class SessionClose(Params):
    """`session/close`: the host lets go of the session."""

    session: Name
    reason: str | None = None


class Nothing(Params):
    """`ping`, `shutdown`."""


def check(model: type[T], params: JsonObject) -> T:
    """The params as a model. Raises InvalidParamsError that names the members at fault."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise InvalidParamsError(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
        for problem in problems[:PROBLEMS_SHOWN]
    ]
    more = len(problems) - len(shown)
    return "Invalid params: " + "; ".join(shown) + (f"; and {more} more" if more else "")
