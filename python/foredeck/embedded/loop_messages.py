"""One conversation, in the loop's shape and in the engine's, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from foredeck.context.state.chat import Chat
from foredeck.embedded.format import CountedTokens, Message, MessageFormat, as_mapping
from foredeck.hosts.outgoing import SlotPlan
from foredeck.hosts.protocol import AssembleParams, SentPlan
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.messages import entry_at, load_message, text_in
from foredeck.store.clock import now_ms


class LoopMessages:
    """Follows the loop's list from call to call.

    The engine identifies messages by what is in them and by their time stamps, which the loop's
    have none of: a message keeps that under which it was seen first, across processes too.
    """

    def __init__(self, session: str, format: MessageFormat, chat: Chat) -> None:
        self._format = format
        self._host = SimulatedHost(session)
        self._originals: list[Mapping[str, Any]] = []
        """The loop's messages, those of the system left out, as they were at the newest call."""
        self._made: list[Message] = []
        """The messages of the engine's that say just what the loop's do."""
        self._shown: list[Message] = []
        """The engine's messages, in the words of the loop."""
        self._places: list[int] = []
        """By message of the engine's: which of the loop's it is from."""
        self._before: list[Mapping[str, Any]] = []
        """System messages, which go out as they are."""
        self._known = _stored_messages(chat)
        self._usages: dict[int, CountedTokens] = {}
        self.details: dict[str, Any] = {}
        """What our tools' results keep for the engine, by the id of the call."""
        self.model: dict[str, Any] | None = None

    def take(
        self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]], system: str | None
    ) -> None:
        """The list before a call."""
        messages = [as_mapping(message) for message in messages]
        names = {
            use.id: use.name for message in messages for use in self._format.tool_uses(message)
        }
        first = next(
            (n for n, m in enumerate(messages) if not self._format.is_system(m)), len(messages)
        )
        self._before, self._originals = list(messages[:first]), list(messages[first:])
        made = [
            (message, place)
            for place, original in enumerate(self._originals)
            for message in self._format.to_engine(original, names)
        ]
        self._made = [message for message, _ in made]
        shown, seen, self._places = self._arranged(made)
        self._host.messages = [self._stamped(n, message) for n, message in enumerate(seen)]
        self._shown = self._host.messages if shown is seen else shown
        # Pi's entries have ids of their own; a loop's messages have but their places.
        self._host.entries = [entry_at(number) for number in range(len(seen))]
        texts = [{"role": "system", "content": text_in(m.get("content"))} for m in self._before]
        self._host.system = [*texts, *([{"role": "system", "content": system}] if system else [])]
        self._host.tools = tools

    def _arranged(
        self, made: list[tuple[Message, int]]
    ) -> tuple[list[Message], list[Message], list[int]]:
        """The messages as they go out, as the engine sees them, and which of the loop's each is
        from; below zero for one that the loop does not have. The same number, the same message."""
        messages = [message for message, _ in made]
        return messages, messages, [place for _, place in made]

    def _stamped(self, index: int, message: Message) -> Message:
        """The message as the engine knows it, with the time at which it was seen first."""
        known = self._known[index] if index < len(self._known) else None
        if known is None or bare(known) != message:
            # The engine would take a message with another time for another message.
            if index < len(self._known):  # the loop has changed it: so has all that follows
                del self._known[index:]
                self._usages = {n: usage for n, usage in self._usages.items() if n < index}
            known = {**message, **self._by(message), "timestamp": now_ms()}
            self._known.append(known)
        if message["role"] == "assistant" and index in self._usages:
            # Not kept with what is known: it would make another message of the one that was stored.
            usage = self._usages[index]
            counted = {"input": usage.fresh, "cacheRead": usage.read, "cacheWrite": usage.written}
            return {**known, "usage": {**counted, "output": 0}}
        details = self.details.get(str(message.get("toolCallId")))
        return known if details is None else {**known, "details": details}

    def _by(self, message: Message) -> Message:
        """Who wrote an answer: what a provider counts is measured for each model."""
        if self.model is None or message["role"] != "assistant":
            return {}
        model = self.model
        return {"provider": model["provider"], "model": model["id"], "api": model["api"]}

    def request(self, time_ms: int) -> AssembleParams:
        """The parameters of `context/assemble`."""
        self._host.model = self.model
        return self._host.request(time_ms)

    def report(self, usage: CountedTokens) -> None:
        """What the provider has counted: it belongs to the answer that comes next in the list."""
        self._usages[len(self._host.messages)] = usage

    def accepted(self, answer: SentPlan) -> list[dict[str, Any]]:
        """What goes out: the loop's own messages, but for those that foredeck has changed."""
        self._host.accept(answer)
        places: list[int | None] = []
        for index in range(len(self._host.messages) + 1):
            slot = self._host.plan.slot(index)
            places += [None] * len(slot.says)
            if index < len(self._host.messages) and not slot.is_omitted:
                places.append(self._places[index])
        sent = list(zip(places, self._applied(self._host.plan), strict=True))
        whole = Counter(self._places)
        held = {id(message) for message in self._made}
        found: list[dict[str, Any]] = [dict(message) for message in self._before]
        for place, pairs in groupby(sent, key=lambda pair: pair[0]):
            group = [message for _, message in pairs]
            if place is None:
                found += [self._format.from_engine([message], None) for message in group]
            elif place < 0:
                found.append(self._format.from_engine(group, None))
            # The loop's own object, so that what the API's client needs of it beside the text
            # stays.
            elif len(group) == whole[place] and all(id(message) in held for message in group):
                found.append(dict(self._originals[place]))
            else:
                found.append(self._format.from_engine(group, self._originals[place]))
        return found

    def _applied(self, plan: SlotPlan) -> list[Message]:
        return plan.apply(self._shown)


def _stored_messages(chat: Chat) -> list[Message]:
    """What a conversation that goes on has said so far, as it was stored."""
    record = chat.newest_record
    if record is None:
        return []
    state = chat.replay(record.id)
    return [load_message(key.address, chat.store.blob) for key in state.keys]


_ADDED = frozenset({"timestamp", "provider", "model", "api"})
"""What a message of the loop's does not have."""


def bare(message: Message) -> Message:
    """A message without what the loop's does not have."""
    return {name: value for name, value in message.items() if name not in _ADDED}
