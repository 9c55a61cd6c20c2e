"""A simulated host on which everything happens that can happen to one.

It refuses answers that the shim would refuse, and can lose answers, restart the engine, switch off,
change branch, fork and compact. Every prompt that it sends is checked by `invariants.check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from context.answers import refusal
from context.invariants import check
from context.sent import Sent, split
from foredeck.config import Config
from foredeck.context.head import HeadSection
from foredeck.context.messages.shape import Message
from foredeck.context.state.facilities import Facilities, FacilityInputs, StandIns
from foredeck.context.state.session import Session
from foredeck.engine.engine import Engine
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import configured_facilities
from foredeck.errors import OutOfSync
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import (
    AssembleParams,
    OutcomeParams,
    RefusedParams,
    ToolCallParams,
    ToolObservedParams,
    ZoneParams,
)
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.lookup.prompts import Prompt, prompt_at
from foredeck.model.calls import CallRecord
from foredeck.sources.recorded import recorded_source
from foredeck.store.place import open_store
from foredeck.store.store import Store

SYSTEM = [{"role": "system", "content": "You are a coding agent."}]
TOOLS = [{"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}}]
MODEL = {"provider": "anthropic", "id": "m1", "api": "anthropic-messages", "contextWindow": 200_000}
START_MS = 1_770_000_000_000


@dataclass(slots=True)
class Leaf:
    """A place in the session's tree."""

    messages: list[Message]
    entries: list[str | None]


@dataclass(slots=True)
class Past:
    """What has gone out so far, in this session and those that it was forked from."""

    sent: list[Sent] = field(default_factory=list)
    handles: dict[int, str] = field(default_factory=dict)
    """Which object each handle has ever stood for."""
    chars: dict[int, tuple[Message, int]] = field(default_factory=dict)
    """By its `id`, a message of the host's with its characters: it goes out at every call."""


class Host(SimulatedHost):
    """One session of one Pi process. `disk=True`: files are real, under `cwd`.

    The policy is `seed-window` where `settings` name no other: what it lets go can be foretold.
    """

    def __init__(
        self,
        home: Path,
        *,
        session: str = "s",
        parent: str | None = None,
        cwd: str = "/repo",
        disk: bool = False,
        checked: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(session, model={**MODEL}, system=SYSTEM, tools=TOOLS)
        self.home = home
        self.parent = parent
        self.cwd = cwd
        self.settings = {"policy": "seed-window", **settings}
        # Sessions of tests are short: what is new folds, and rebases may follow each other.
        for section, rule in (("adaptive", {"newest_results": 0}), ("rebase", {"gap": 0})):
            self.settings[section] = {**rule, **settings.get(section, {})}
        self.now_ms = START_MS
        self.warmed_ms: int | None = None
        """When Pi's cache warmer last sent the newest request once more."""
        self.zone: ZoneParams | None = None
        self.past = Past()
        self.read: list[str] = []
        """What the user has read of what the engine tells."""
        self.sections: list[HeadSection] | None = []
        """What writes into the block before the chat; None for what does so in earnest."""
        self.names_call = True
        """Whether outcomes name the call whose edits were in force."""
        self._disk = disk
        self._checked = checked
        self._engine: Engine | None = None
        self._reader: Store | None = None
        self._made = 0
        self._in_force: int | None = None

    def set_window(self, tokens: int) -> None:
        """The context window of the model in use."""
        self.model = {**(self.model or {}), "contextWindow": tokens}

    # The message list

    def begin(self, text: str = "Go on.") -> Self:
        """The user's first words, and the first call."""
        self.add({"role": "user", "content": text})
        self.call()
        return self

    def add(self, *messages: Message, entries: Sequence[str | None] = ()) -> None:
        """Messages at the end, each with a time stamp and an entry id of its own."""
        assert not entries
        for message in messages:
            self._made += 1
            stamped = {**message}
            stamped.setdefault("timestamp", START_MS + self._made)
            self.messages.append(stamped)
            self.entries.append(f"{self.session}-e{self._made}")

    def leaf(self) -> Leaf:
        """Where the session stands."""
        return Leaf(list(self.messages), list(self.entries))

    def go_to(self, leaf: Leaf) -> None:
        """`/tree`: stand where the session stood then."""
        self.messages, self.entries = list(leaf.messages), list(leaf.entries)

    def back(self, count: int) -> None:
        """`/tree`: keep only the first `count` messages."""
        del self.messages[count:], self.entries[count:]

    def change(self, index: int, **fields: Any) -> None:
        """A context_edit: other content under the same entry id."""
        self.messages[index] = {**self.messages[index], **fields}

    def compact(self, summary: str, keep: int) -> None:
        """A compaction: a summary in place of all but the last `keep` messages."""
        tail = self.messages[len(self.messages) - keep :]
        entries = self.entries[len(self.entries) - keep :]
        self.messages, self.entries = [], []
        self.add({"role": "compactionSummary", "summary": summary, "tokensBefore": 1000})
        self.messages += tail
        self.entries += entries

    def fork(self, session: str, count: int | None = None) -> Host:
        """A new session that begins with the first `count` messages of this one."""
        self.close()
        fork = Host(
            self.home,
            session=session,
            parent=self.session,
            cwd=self.cwd,
            disk=self._disk,
            checked=self._checked,
            **self.settings,
        )
        fork.now_ms, fork._made = self.now_ms, self._made
        fork.messages, fork.entries = self.messages[:count], self.entries[:count]
        fork.sections = self.sections
        fork.past = Past(list(self.past.sent), dict(self.past.handles))
        return fork

    # Model calls

    def call(self) -> Sent:
        """A call that goes out as the engine says."""
        self.now_ms += 1000
        call = self._ask()
        return self._record(self.plan, call)

    def lose(self) -> Sent:
        """A call for which the engine's answer comes too late: the shim falls back."""
        self.now_ms += 1000
        self.engine.assemble(self.request(self.now_ms))
        return self._fall_back()

    def away(self) -> Sent:
        """A call for which there is no engine to ask."""
        self.now_ms += 1000
        return self._fall_back()

    def off(self) -> Sent:
        """A call while the user has switched foredeck off."""
        self.now_ms += 1000
        self._without("off", edited=0, call=None)
        return self._record(SlotPlan(), None)

    def abort(self) -> None:
        """The user stops the call after the engine has answered, before it is sent."""
        self.now_ms += 1000
        call = self._ask()
        self.outcomes = []
        self._without("aborted", edited=0, call=call)

    def refuse(self, message: str) -> bool:
        """The provider refuses the call just made; whether the shim makes it again."""
        self.past.sent.pop()
        return self.engine.refused(RefusedParams(session=self.session, message=message))["again"]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += int(seconds * 1000)

    # The engine

    @property
    def engine(self) -> Engine:
        """The engine that runs, started where none does."""
        if self._engine is None:
            config = Config(home=self.home, **self.settings)
            self._engine = Engine(
                config,
                recorded=None if self._disk else recorded_source,
                facilities=self._facilities,
            )
            self._engine.open_session(self.opening(self.cwd, parent=self.parent))
        return self._engine

    def _facilities(self, opening: FacilityInputs) -> Facilities:
        made = configured_facilities(opening)
        if self.sections is None:
            return made
        others = [part for part in made.parts if not isinstance(part, HeadSection)]
        return Facilities([*self.sections, *others])

    def stand_in(self, stand_ins: StandIns) -> None:
        """Let these take the place of chat in the session at hand."""
        opened = self.opened
        opened.facilities = Facilities([stand_ins, *opened.facilities.parts])
        opened.assembler.facilities = opened.facilities

    @property
    def state(self) -> Session:
        """What the engine holds in memory."""
        return self.opened.session

    @property
    def opened(self) -> OpenedSession:
        """The session that the engine works on."""
        opened = self.engine.opened
        assert opened is not None
        return opened

    @property
    def store(self) -> Store:
        """A reader of the same database, over a connection of its own."""
        if self._reader is None:
            self._reader = open_store(Config(home=self.home, **self.settings))
        return self._reader

    def tool(self, id: str, tool: str, /, **arguments: Any) -> Message:
        """Run a context tool; gives the result message that Pi would add. May raise ToolError."""
        answer = self.engine.tool_call(
            ToolCallParams(session=self.session, id=id, tool=tool, input=arguments)
        )
        return {
            "role": "toolResult",
            "toolCallId": id,
            "toolName": tool,
            "content": [{"type": "text", "text": answer["text"]}, *answer.get("images", [])],
            "details": answer["details"],
            "isError": False,
        }

    def observe(
        self, message: Message, tool_input: dict[str, Any], parent: str | None = None
    ) -> None:
        """Tell the engine that a tool has run, before its result is in the list.

        `parent`: the call inside which it ran; no list will have its result.
        """
        self.engine.tool_observed(
            ToolObservedParams(
                session=self.session,
                id=message["toolCallId"],
                parent=parent,
                tool=message["toolName"],
                input=tool_input,
                content=message["content"],
                details=message.get("details"),
                is_error=message["isError"],
                took_ms=message.get("durationMs"),
            )
        )

    def restart(self, **settings: Any) -> None:
        """End the engine; the next one is configured by `settings`, where given."""
        self.close()
        self.settings = {**self.settings, **settings}

    def close(self) -> None:
        """End the engine and the reader."""
        for opened in (self._engine, self._reader):
            if opened is not None:
                opened.close()
        self._engine = self._reader = None
        self.replace_engine()

    def shown(self, call: int) -> Prompt:
        """What the model saw at a call, from the store alone."""
        return prompt_at(self.store, self.session, call)

    # The shim

    def request(self, time_ms: int) -> AssembleParams:
        """The parameters of `context/assemble`, with when the cache was warmed."""
        return (
            super()
            .request(time_ms)
            .model_copy(update={"warmed_ms": self.warmed_ms, "zone": self.zone})
        )

    def _ask(self) -> int:
        """Ask, and take in the answer; returns the call's number."""
        try:
            request = self.request(self.now_ms)
            answer = self.engine.assemble(request)
        except OutOfSync:
            self.replace_engine()
            request = self.request(self.now_ms)
            answer = self.engine.assemble(request)
        fault = refusal(
            answer, self.messages, request.keep, self.plan.merged(answer["from"], answer["ops"])
        )
        assert fault is None, f"the shim would refuse the answer: {fault}"
        self.read += [notice["text"] for notice in answer["notices"]]
        self.accept(answer)
        self._in_force = int(answer["call"])
        return self._in_force

    def _fall_back(self) -> Sent:
        edited = self.unchanged()
        whole = edited == len(self._answered)
        if not whole and self.messages:
            edited = min([edited, *self.plan.omitted()])
        follows = self.messages[edited]["role"] if edited < len(self.messages) else None
        ending = edited == len(self._answered) and follows != "toolResult"
        self.replace_engine()
        call = self._in_force if self.names_call else None
        self._without("fallback", edited=edited, ending=ending, call=call)
        return self._record(self.plan.cut(edited, ending=ending), None)

    def _without(self, kind: str, *, edited: int, call: int | None, ending: bool = False) -> None:
        self.outcomes.append(
            OutcomeParams(
                call=call,
                kind=kind,
                edited=edited,
                ending=ending,
                messages=len(self.messages),
                time_ms=self.now_ms,
                reason=kind,
            )
        )

    def _record(self, plan: SlotPlan, call: int | None) -> Sent:
        record, shown = None, None
        if call is not None:
            shown = self.shown(call) if self._checked else None
            record = shown.record if shown else self.state.chat.branch_record
        sent = Sent(
            messages=list(self.messages),
            prompt=plan.apply(self.messages),
            parts=split(self.messages, plan),
            call=call,
            record=record or CallRecord({}),
        )
        if shown is not None:
            check(self, sent, shown)
        self.past.sent.append(sent)
        return sent
