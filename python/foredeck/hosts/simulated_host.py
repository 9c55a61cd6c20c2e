"""The host's side of a session without Pi or shim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from foredeck.context.messages.shape import Message
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import (
    AssembleParams,
    JsonObject,
    OutcomeParams,
    SentPlan,
    SessionHistoryParams,
    SessionHistoryResult,
    SessionOpenParams,
)
from foredeck.model.messages import entry_at

OpenReason = Literal["startup", "reload", "new", "resume", "fork"]

_UNSEEN = ("details", "usage")
"""Fields invisible to models."""


class SimulatedHost:
    """One session of one Pi process, with an engine beside it that may be replaced.

    It holds the conversation, asks with what the engine does not have yet, and keeps what the
    answers say. It does not know where the engine runs:

        host.accept(engine.assemble(host.request(time_ms)))
        send(host.prompt())

    `messages`, `entries`, `model`, `system` and `tools` may be changed between two calls. Without
    `system` and `tools` the engine gets neither.
    """

    def __init__(
        self,
        session: str,
        *,
        model: JsonObject | None = None,
        system: list[Message] | None = None,
        tools: list[JsonObject] | None = None,
    ) -> None:
        self.session = session
        self.model = model
        self.system = system
        self.tools = tools
        self.messages: list[Message] = []
        self.entries: list[str | None] = []
        self.plan = SlotPlan()
        """What the answers have said so far."""
        self.outcomes: list[OutcomeParams] = []
        """Of the calls since the last answer."""
        self._answered: list[Message] = []
        """The messages of the last request that was answered."""
        self._described: tuple[Any, Any] | None = None
        """What the engine has of system prompt and tools."""
        self._engine_is_new = True

    def add(self, *messages: Message, entries: Sequence[str | None] = ()) -> None:
        """Appends messages; entry ids default to their numbers."""
        first = len(self.messages)
        self.messages.extend(messages)
        self.entries.extend(entries or (entry_at(first + n) for n in range(len(messages))))

    def opening(
        self, cwd: str, reason: OpenReason = "startup", parent: str | None = None
    ) -> SessionOpenParams:
        return SessionOpenParams(
            session=self.session, file=None, cwd=cwd, reason=reason, parent=parent
        )

    def request(self, time_ms: int) -> AssembleParams:
        """`context/assemble` for the current conversation."""
        keep = 0 if self._engine_is_new else self.unchanged()
        describe = keep == 0 or self._described != (self.system, self.tools)
        return AssembleParams(
            session=self.session,
            keep=keep,
            messages=self.messages[keep:],
            entries=self.entries[keep:],
            system=self.system if describe else None,
            tools=self.tools if describe else None,
            model=self.model,
            time_ms=time_ms,
            outcomes=list(self.outcomes),
        )

    def history(self) -> SessionHistoryParams:
        """`session/history` with all messages."""
        return SessionHistoryParams(
            session=self.session,
            messages=self.messages,
            entries=self.entries,
            system=self.system,
            tools=self.tools,
        )

    def hold(self, held: SessionHistoryResult) -> None:
        self._answered = self.messages[: held["messages"]]
        self._engine_is_new = not self._answered

    def accept(self, answer: SentPlan) -> None:
        """Takes the newest answer: the call goes out so."""
        self.plan = self.plan.merged(answer["from"], answer["ops"])
        self.outcomes = [OutcomeParams(call=answer["call"], kind="applied")]
        self._answered = list(self.messages)
        self._described = (self.system, self.tools)
        self._engine_is_new = False

    def prompt(self) -> list[Message]:
        """The messages for the provider."""
        return self.plan.apply(self.messages)

    def replace_engine(self) -> None:
        """Switches to another engine, which is sent everything."""
        self._engine_is_new = True

    def unchanged(self) -> int:
        """Number of leading messages from the last answered request."""
        pairs = enumerate(zip(self._answered, self.messages, strict=False))
        differences = (i for i, (old, new) in pairs if old is not new and _seen(old) != _seen(new))
        return next(differences, min(len(self._answered), len(self.messages)))


def _seen(message: Message) -> Message:
    """What a model sees of a message, as in `ts-shim/context/messages.ts`."""
    return {k: v for k, v in message.items() if k not in _UNSEEN and v is not None}
