"""One conversation of a client, with the engine that works on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any

from foredeck.context.state.chat import Chat
from foredeck.embedded.format import Message, MessageFormat, ToolRequest
from foredeck.embedded.loop_messages import LoopMessages, bare
from foredeck.embedded.manager import ContextManager
from foredeck.histories.tools import in_pis_tools, in_their_tools, touching
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import ToolObservedParams
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.proxy.weaving import Weaver, Woven, first_call, own_calls

MOST_HELD = 64
"""Answers that called both kinds of tools, in one conversation."""


class WovenMessages(LoopMessages):
    """The client's list with the calls of foredeck's tools that the client does not have.

    The engine sees the tools by the names and arguments that Pi's have; what goes out is in the
    client's own words.
    """

    def __init__(self, session: str, format: MessageFormat, chat: Chat) -> None:
        super().__init__(session, format, chat)
        self.own: Set[str] = frozenset()
        """Names of foredeck's tools in this conversation."""
        self.added: list[Message] = []
        """What the model and foredeck have said to each other since the client's newest message."""
        self._held: dict[str, list[Message]] = {}
        """By the id of the first call of the client's in it."""

    def hold(self, answer: Message, results: Sequence[Message]) -> None:
        """Keep an answer that called both kinds of tools, with what foredeck's said, until the
        client's list has its part of it."""
        # Not in the list that is known: a request for a title, say, may come before the client's.
        kept = [in_pis_tools(message) for message in (answer, *results)]
        self._held[first_call(answer, self.own)] = kept
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
        for message in self.added:
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
        """The results of the client's tools since the newest answer, each with its call."""
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
    """A context manager for what a client sends. It belongs to the thread that has made it."""

    def __init__(self, session: str, format: MessageFormat, **arguments: Any) -> None:
        self.calls = 0
        """Requests that it has worked on."""
        self._observed: set[str] = set()
        super().__init__(session, format=format, **arguments)

    def _loop_messages(self, chat: Chat) -> LoopMessages:
        self._woven = WovenMessages(self._session, self._format, chat)
        return self._woven

    def own_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """foredeck's tools to declare beside a client's: none where one has the name of one."""
        names = {self._format.to_definition(tool)["name"] for tool in tools}
        taken = bool(names & OWN_TOOLS)
        self._woven.own = frozenset() if taken else OWN_TOOLS
        return [] if taken else self.tools

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
    ) -> tuple[list[dict[str, Any]], int]:
        """What goes to the model, and the number of this call."""
        self._model = model
        self._woven.added = added
        self.calls += 1
        return self.prepare(messages, tools=tools, system=system), self.calls

    def _taken(self) -> None:
        """Report the tools that have run since, so that the files are looked at that they
        touched."""
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
        """The model has answered a call: what goes on with the model, without the client. Empty
        where the client is next. `own`: the names of foredeck's tools in that call's request."""
        # The conversation may have been closed since, and opened again for this.
        self._woven.own = own
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
        return _as_stored(self._format.to_engine(result, {call["id"]: call["name"]})[0])


def _as_stored(message: Message) -> Message:
    """A message with its members in the order that it has when it is read back from the store."""
    stored: Message = json.loads(json.dumps(message, sort_keys=True))
    return stored


def _same(message: Message, known: Message) -> bool:
    return message["role"] == known["role"] and in_pis_tools(message) == known


def _calls(message: Message) -> list[dict[str, Any]]:
    if message["role"] != "assistant":
        return []
    return [block for block in message["content"] if block["type"] == "toolCall"]


def _in_words(block: dict[str, Any], theirs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    call = theirs.get(block["id"]) if block["type"] == "toolCall" else None
    return block if call is None or call is block else in_their_tools(block, call)
