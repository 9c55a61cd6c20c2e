"""Clients' conversations, each with an engine of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from foredeck.context.state.chat import Chat
from foredeck.embedded.format import CountedTokens, Message, MessageFormat, ToolRequest, read_each
from foredeck.embedded.loop_messages import LoopMessages, bare
from foredeck.embedded.manager import ContextManager
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import ToolObservedParams
from foredeck.lookup.prompts import system_at
from foredeck.model.messages import text_in
from foredeck.model.own_tools import OWN_TOOLS, Facility, short_definitions
from foredeck_agents.histories.tools import in_pis_tools, in_their_tools, touching
from foredeck_agents.proxy.recognition import Profile, alike, first_key, stable_words
from foredeck_agents.proxy.refusals import earlier_turns, unsigned, without_signed
from foredeck_agents.proxy.weaving import Weaver, Woven, first_call, own_calls
from foredeck_agents.proxy.wires import ModelApi

log = logging.getLogger(__name__)

R = TypeVar("R")

MOST_OPEN = 24
"""Open conversations; another one closes the one used longest ago, which can be reopened."""
MOST_NOTICES = 20
"""The newest ones of a conversation that are kept."""
MOST_HELD = 64
"""Answers that called both kinds of tools."""


class WovenMessages(LoopMessages):
    """The client's list with the calls of foredeck's tools that it lacks, in the client's words."""

    def __init__(self, session: str, format: MessageFormat, chat: Chat) -> None:
        super().__init__(session, format, chat)
        self.own: Set[str] = frozenset()
        """Names of foredeck's tools in this conversation."""
        self.chat = chat
        self.added: list[Message] = []
        """Between model and foredeck since the client's newest message."""
        self._held: dict[str, list[Message]] = {}

    @property
    def first(self) -> str | None:
        """The key of the list's first message (`first_key`)."""
        if not self._known:
            return None
        return first_key([bare(message) for message in self._known])

    @property
    def unsigned(self) -> set[str]:
        """Keys of answers without signed reasoning."""
        bares = (bare(m) for m in self._known if m["role"] == "assistant")
        return {first_key([m]) for m in bares if not any(map(_is_thought, m["content"]))}

    def hold(self, answer: Message, results: Sequence[Message]) -> None:
        """Keeps an answer that called both kinds of tools, with foredeck's results, for the
        client's list."""
        # Not in the list that is known: a request for a title, say, may come before the client's.
        kept = [in_pis_tools(message) for message in (answer, *results)]
        self._held[first_call(answer, self.own)] = kept
        # A client may never send its part back.
        while len(self._held) > MOST_HELD:
            self._held.pop(next(iter(self._held)))

    def _arranged(
        self, made: list[tuple[Message, int]]
    ) -> tuple[list[Message], list[Message], list[int]]:
        together = self._format.api == "anthropic-messages"
        if self._held or any(own_calls(message, self.own) for message in self._known):
            known = [bare(message) for message in self._known]
            woven = Weaver([*made], known, self._held, _same, self.own, together).run()
        else:  # as nearly always: nothing of foredeck's is missing from the client's list
            woven = [Woven(message, place) for message, place in made]
        place = min([0, *(each.place for each in woven)])
        for message in self.added[_taken_over(woven, self.added) :]:
            is_answer = message["role"] == "assistant"
            place -= 1 if is_answer or not together or place == 0 else 0
            woven.append(Woven(message, place))
            place -= is_answer
        shown = [each.message for each in woven]
        return shown, [in_pis_tools(message) for message in shown], [w.place for w in woven]

    def _applied(self, plan: SlotPlan) -> list[Message]:
        held = {id(message) for message in self._shown}
        theirs: dict[str, dict[str, Any]] = {}
        found = plan.apply(self._shown)
        for place, message in enumerate(found):
            if message["role"] == "assistant" and id(message) not in held:
                if not theirs:
                    theirs = {call["id"]: call for m in self._shown for call in _calls(m)}
                content = [_in_words(block, theirs) for block in message["content"]]
                found[place] = {**message, "content": content}
        return found

    def new_results(self) -> list[tuple[dict[str, Any], Message]]:
        messages = self._host.messages
        answers = (n for n in range(len(messages) - 1, -1, -1) if _calls(messages[n]))
        newest = next(answers, None)
        if newest is None:
            return []
        calls = {call["id"]: call for call in _calls(messages[newest])}
        results = [m for m in messages[newest + 1 :] if m["role"] == "toolResult"]
        return [
            (calls[result["toolCallId"]], result)
            for result in results
            if result["toolCallId"] in calls and result["toolName"] not in self.own
        ]


class ClientChat(ContextManager):
    """A context manager for one client, on the thread that made it."""

    def __init__(self, session: str, format: MessageFormat, **arguments: Any) -> None:
        self.calls = self._markers = 0
        """Requests so far; marked parts of the newest beside its messages."""
        self._unsigned: set[str] | None = None
        """Keys of answers that go out without reasoning."""
        self.problems: list[str] = []
        """Problems of all conversations, such as a damaged store."""
        self._observed: set[str] = set()
        super().__init__(session, format=format, **arguments)
        self.profile = self._stored_profile()
        """How its requests look."""

    def _stored_profile(self) -> Profile:
        profile, chat = Profile(), self._woven.chat
        record, first = chat.newest_record, self._woven.first
        if record is None or first is None or (head := chat.store.head(record.id)) is None:
            return profile
        system, tools = system_at(chat.store, head)
        if not (system or tools):  # it was carried here: its client has asked for nothing yet
            return profile
        text = "\n".join(text_in(message.get("content")) for message in system)
        names = frozenset(str(tool.get("name")) for tool in tools) - OWN_TOOLS
        return Profile({first}, stable_words(text), names, requests=record.ordinal)

    def _noted(self, level: str, text: str) -> None:
        if level == "error":
            self.problems.append(text)

    def _loop_messages(self, chat: Chat) -> LoopMessages:
        self._woven = WovenMessages(self._session, self._format, chat)
        return self._woven

    def takes(self, first: str, words: frozenset[str], tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a request is of this conversation (`Profile.takes`)."""
        return self.profile.takes(first, words, self._names(tools))

    def begins_alike(self, words: frozenset[str], tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a request has the system text and the tools of this conversation."""
        return self.profile.tools == self._names(tools) and alike(words, self.profile.words)

    def _names(self, tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        return frozenset(str(self._format.to_definition(t)["name"] or t.get("type")) for t in tools)

    def own_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """foredeck's tools to declare, unless a client's has the same name."""
        names = {self._format.to_definition(tool)["name"] for tool in tools}
        taken = bool(names & OWN_TOOLS)
        self._woven.own = frozenset() if taken else OWN_TOOLS
        return [] if taken else self.tools

    def _own_definitions(self, *facilities: Facility) -> list[dict[str, Any]]:
        return short_definitions(*facilities)

    @property
    def own(self) -> Set[str]:
        """The names of foredeck's tools here."""
        return self._woven.own

    def ready(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        system: str,
        model: Any,
        added: list[Message],
        markers: int = 0,
        binds: bool = False,
    ) -> tuple[list[dict[str, Any]], int]:
        """What goes to the model, and the call's number.

        `binds`: signed reasoning is refused if something before it has changed.
        """
        self._markers = markers
        self._model = model
        self._woven.added = added
        self.calls += 1
        if binds:
            messages = self._without_foreign_reasoning(messages)
        return self.prepare(messages, tools=tools, system=system), self.calls

    def for_summary(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        system: str,
        added: list[Message],
        binds: bool,
    ) -> list[dict[str, Any]]:
        """What goes to the model for a summary: what was sent up to the first folded message, then
        the client's own."""
        # So its provider finds in the cache what does not have to be written anew.
        self._woven.added = added
        if binds:
            messages = self._without_foreign_reasoning(messages)
        declared = read_each("tool", self._format.to_definition, tools)
        self._messages.take(messages, declared, system)
        self._taken()
        sent, rest = self._messages.unfolded(self._woven.chat)
        return [*sent, *(without_signed(rest, len(rest)) if binds else rest)]

    def _without_foreign_reasoning(
        self, messages: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        if self._woven.first is None:
            return without_signed(messages, earlier_turns(messages))
        if self._unsigned is None:
            # Later answers are known by what was sent of them.
            self._unsigned = self._woven.unsigned
        return [self._as_sent(m) for m in messages] if self._unsigned else messages

    def _as_sent(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        rest = unsigned(message)
        if rest is message:
            return message
        known = in_pis_tools(self._format.to_engine(rest, {})[0])
        return rest if first_key([known]) in (self._unsigned or ()) else message

    def _markers_beside(self, tools: Sequence[Mapping[str, Any]]) -> int:
        del tools
        return self._markers

    def _taken(self) -> None:
        for call, result in self._woven.new_results():
            if call["id"] in self._observed:
                continue
            self._observed.add(call["id"])
            tool, arguments = touching(call["name"], call["arguments"])
            self._engine.tool_observed(
                ToolObservedParams(
                    session=self._session,
                    id=call["id"],
                    tool=tool,
                    input=arguments,
                    content=result["content"],
                    is_error=result["isError"],
                )
            )

    def answered(
        self, number: int, answer: Mapping[str, Any], usage: Mapping[str, Any] | None, own: Set[str]
    ) -> list[Message]:
        """What goes on with the model after an answer; empty if the client is next. `own`: names of
        foredeck's tools."""
        # The conversation may have been closed since, and opened again for this.
        self._woven.own = own
        # Figures belong to the newest list: another request may have come since.
        if number == self.calls and usage:
            self.report(usage)
        said = _as_stored(self._format.to_engine(answer, {})[0])
        calls = own_calls(said, own)
        results = [self._result_of(call) for call in calls]
        if not calls:
            return []
        if first_call(said, own):
            self._woven.hold(said, results)
            return []
        return [said, *results]

    def _result_of(self, call: dict[str, Any]) -> Message:
        request = ToolRequest(call["id"], call["name"], call["arguments"])
        result = self.call(request)
        if self._format.api == "anthropic-messages":
            result = {"role": "user", "content": [result]}
        said = self._format.to_engine(result, {call["id"]: call["name"]})[0]
        failed = (call["id"], text_in(said["content"])) in self._woven.failures
        return _as_stored({**said, "isError": said["isError"] or failed})


def _as_stored(message: Message) -> Message:
    stored: Message = json.loads(json.dumps(message, sort_keys=True))
    return stored


def _same(message: Message, known: Message) -> bool:
    return message["role"] == known["role"] and in_pis_tools(message) == known


def _taken_over(woven: Sequence[Woven], added: Sequence[Message]) -> int:
    client = next((n for n in range(len(woven), 0, -1) if woven[n - 1].place >= 0), 0)
    end = [each.message for each in woven[client:]]
    counts = range(min(len(end), len(added)), 0, -1)
    return next((n for n in counts if all(map(_same, added[:n], end[-n:]))), 0)


def _is_thought(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "thinking"


def _calls(message: Message) -> list[dict[str, Any]]:
    if message["role"] != "assistant":
        return []
    return [block for block in message["content"] if block["type"] == "toolCall"]


def _in_words(block: dict[str, Any], theirs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    call = theirs.get(block["id"]) if block["type"] == "toolCall" else None
    return block if call is None or call is block else in_their_tools(block, call)


@dataclass(slots=True)
class ConversationState:
    """What the status page says of a conversation."""

    session: str
    api: str
    managed: int = 0
    passed: int = 0
    """Those that went out as they came."""
    own_calls: int = 0
    """Times that the model was asked again."""
    own_tokens: int = 0
    """What these requests have read."""
    model: str = ""
    """Of the newest request."""
    prompt: int = 0
    """Tokens by the provider's count."""
    notices: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_NOTICES))
    """The engine's notices for its user."""

    def count(self, usage: CountedTokens, *, again: bool) -> None:
        """Counts an answer's tokens; `again`: the model was asked again."""
        self.prompt = usage.fresh + usage.read + usage.written
        self.own_tokens += self.prompt if again else 0


@dataclass(slots=True)
class ProxyOptions:
    """What a proxy was started with."""

    cwd: Path
    home: Path | None = None
    kept: str = "what its sessions say is stored."
    tools: bool = True
    window: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def all_settings(self) -> dict[str, str]:
        off = {} if self.tools else {"tools.context": "false", "tools.search": "false"}
        return {**off, **self.settings}


class Conversations:
    """Opens conversations, and closes those used longest ago; on one thread, since engines would
    wait for each other's locks."""

    def __init__(self, options: ProxyOptions) -> None:
        self.options = options
        self.states: OrderedDict[str, ConversationState] = OrderedDict()
        """Of those that were used last."""
        self._open: OrderedDict[str, ClientChat] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foredeck")

    def state(self, session: str, wire: ModelApi) -> ConversationState:
        """The line of the status page."""
        if session not in self.states:
            while len(self.states) >= MOST_OPEN:
                self.states.popitem(last=False)
            self.states[session] = ConversationState(session, wire.format().api)
        self.states.move_to_end(session)
        return self.states[session]

    async def work(
        self, session: str, wire: ModelApi, harness: str, do: Callable[[ClientChat], R]
    ) -> R:
        """Does something with a conversation in turn. Raises what that raises, and `ForedeckError`;
        the next request reopens it."""

        def on_thread() -> R:
            try:
                # An engine that has failed within its work is ahead of what it has stored.
                return do(self._opened(session, wire, harness))
            except BaseException:
                self._drop(session)
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, on_thread)

    def _opened(self, session: str, wire: ModelApi, harness: str) -> ClientChat:
        if session not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._drop(next(iter(self._open)))
            options = self.options
            self._open[session] = ClientChat(
                session,
                wire.format(),
                cwd=options.cwd,
                home=options.home,
                settings=options.all_settings(),
                harness=harness,
            )
        self._open.move_to_end(session)
        return self._open[session]

    def _drop(self, session: str) -> None:
        self._close(session)
        # An engine exempts what it makes from collection: most processes have one session alone.
        gc.unfreeze()
        gc.collect()

    def _close(self, session: str) -> None:
        chat = self._open.pop(session, None)
        try:
            if chat is not None:
                chat.close()
        except Exception:
            log.exception("a conversation was not closed")

    async def close(self) -> None:
        """Close all of them."""

        def on_thread() -> None:
            for session in list(self._open):
                self._close(session)

        await asyncio.get_running_loop().run_in_executor(self._thread, on_thread)
        self._thread.shutdown()
