"""One conversation in a loop's shape and in the engine's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Any

from foredeck.context.messages.shape import to_item
from foredeck.context.state.chat import Chat
from foredeck.embedded.format import (
    CountedTokens,
    Message,
    MessageFormat,
    as_mapping,
    blocks_of,
    read_each,
)
from foredeck.hosts.outgoing import SlotPlan, to_ops, whole_until
from foredeck.hosts.protocol import AssembleParams, SentPlan
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.messages import answered_by, entry_at, load_message, text_in
from foredeck.store.clock import now_ms

MOST_LISTS = 4
"""Of those that a loop has left."""


class LoopMessages:
    """Follows the loop's list from call to call.

    The engine identifies messages by content and time stamp: each keeps the one under which it was
    first seen.
    """

    def __init__(self, session: str, format: MessageFormat, chat: Chat) -> None:
        self._format = format
        self._host = SimulatedHost(session)
        self._originals: list[Mapping[str, Any]] = []
        """The loop's messages, without system messages."""
        self._made: list[Message] = []
        """The engine's messages that say just what the loop's do."""
        self._shown: list[Message] = []
        """The engine's messages, in the words of the loop."""
        self._places: list[int] = []
        """The loop's message of each of the engine's."""
        self._before: list[Mapping[str, Any]] = []
        self._pairing = Pairing()
        self._known = _stored_messages(chat)
        self._others: list[list[Message]] = []
        """Lists that the loop has left, the newest first."""
        self._usages: dict[int, CountedTokens] = {}
        self._asked: dict[int, dict[str, Any] | None] = {}
        """By the place of its answer, which model a request was for."""
        self.details: dict[str, Any] = {}
        """By call id, what our tools' results keep for the engine."""
        self.failures: set[tuple[str, str]] = set()
        """Id and text of failures, which not every API can say."""
        self.model: dict[str, Any] | None = None

    def take(
        self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]], system: str | None
    ) -> None:
        """The list before a call."""
        messages = read_each("message", as_mapping, messages)
        uses = read_each("message", self._format.tool_uses, messages)
        names = {use.id: use.name for each in uses for use in each}
        first = next(
            (n for n, m in enumerate(messages) if not self._format.is_system(m)), len(messages)
        )
        self._before, self._originals = list(messages[:first]), list(messages[first:])
        groups = read_each(
            "message", lambda m: self._format.to_engine(m, names), self._originals, first
        )
        placed = [(message, place) for place, group in enumerate(groups) for message in group]
        placed = self._pairing.own(placed)
        for place, nth, message_id, own in self._pairing.named:
            self._originals[place] = with_result_id(self._originals[place], nth, message_id, own)
        self._made = [message for message, _ in placed]
        self._return_to_list(placed)
        arranged, originals, self._places = self._arranged(placed)
        self._host.messages = [self._stamped(n, message) for n, message in enumerate(originals)]
        self._shown = self._host.messages if arranged is originals else arranged
        # Pi's entries have ids of their own; a loop's messages have but their places.
        self._host.entries = [entry_at(number) for number in range(len(originals))]
        texts = [{"role": "system", "content": text_in(m.get("content"))} for m in self._before]
        self._host.system = [*texts, *([{"role": "system", "content": system}] if system else [])]
        self._host.tools = tools

    def _arranged(
        self, made: list[tuple[Message, int]]
    ) -> tuple[list[Message], list[Message], list[int]]:
        """Messages as they go out, as the engine sees them, and the loop's place of each, below
        zero for none."""
        messages = [message for message, _ in made]
        return messages, messages, [place for _, place in made]

    def _return_to_list(self, made: list[tuple[Message, int]]) -> None:
        """Goes on with the list that these messages share most with: a loop may go back, ask
        something, and return."""
        newest = self._known
        if not self._others or self._shared(made) == len(newest):
            return
        lists, lengths = [newest, *self._others], list[int]()
        for self._known in lists:
            lengths.append(self._shared(made))
        self._known = lists.pop(lengths.index(max(lengths)))
        self._others = lists[:MOST_LISTS]
        same = takewhile(lambda pair: pair[0] is pair[1], zip(self._known, newest, strict=False))
        self._forget_usages(len(list(same)))

    def _shared(self, made: list[tuple[Message, int]]) -> int:
        """How many messages of the known list stand at the beginning of the loop's."""
        _, originals, _ = self._arranged(made)
        both = zip(originals, self._known, strict=False)
        same = takewhile(lambda pair: self._with_failure(*pair) == bare(pair[1]), both)
        return len(list(same))

    def _forget_usages(self, first: int) -> None:
        self._usages = {n: usage for n, usage in self._usages.items() if n < first}

    def _with_failure(self, message: Message, known: Message | None) -> Message:
        failed = message["role"] == "toolResult" and self._is_failure(message, known)
        return {**message, "isError": True} if failed else message

    def _stamped(self, index: int, message: Message) -> Message:
        stamped = self._known[index] if index < len(self._known) else None
        message = self._with_failure(message, stamped)
        if stamped is None or bare(stamped) != message:
            # The engine would take a message with another time for another message.
            if index < len(self._known):  # the loop has changed it: so has all that follows
                self._others = [list(self._known), *self._others][:MOST_LISTS]
                del self._known[index:]
                self._forget_usages(index)
            stamped = {**message, **self._by(index, message), "timestamp": now_ms()}
            self._known.append(stamped)
        if message["role"] == "assistant" and index in self._usages:
            # Not kept with what is known: it would make another message of the one that was stored.
            usage = self._usages[index]
            counted = {"input": usage.fresh, "cacheRead": usage.read, "cacheWrite": usage.written}
            return {**stamped, "usage": {**counted, "output": 0}}
        details = self.details.get(str(self._pairing.outside(message).get("toolCallId")))
        return stamped if details is None else {**stamped, "details": details}

    def _is_failure(self, message: Message, known: Message | None) -> bool:
        id = str(self._pairing.outside(message).get("toolCallId"))
        is_stored = known is not None and bare(known) == {**message, "isError": True}
        return is_stored or (id, text_in(message["content"])) in self.failures

    def _by(self, index: int, message: Message) -> Message:
        """Who wrote an answer, since providers count by model."""
        model = self._asked.get(index, self.model)
        if model is None or message["role"] != "assistant":
            return {}
        return {"provider": model["provider"], "model": model["id"], "api": model["api"]}

    def request(self, time_ms: int) -> AssembleParams:
        """The parameters of `context/assemble`."""
        self._host.model = self._asked[len(self._host.messages)] = self.model
        return self._host.request(time_ms)

    def report(self, usage: CountedTokens) -> None:
        """Belongs to the answer that comes next in the list."""
        self._usages[len(self._host.messages)] = usage

    def accepted(self, answer: SentPlan) -> list[dict[str, Any]]:
        """What goes out: the loop's own messages, but for changed ones."""
        self._host.accept(answer)
        return [message for _, message in self._put_out(self._host.plan)]

    def unfolded(self, chat: Chat) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The list that was taken in last, in two parts: what stands before the first message that
        has folded, as it went out with the newest call, and the rest as the loop has it."""
        record = chat.newest_record
        state = chat.replay(None if record is None else record.id)
        outgoing = list(state.outgoing(chat.store.blob))
        both = zip(state.keys, self._known, strict=False)
        same = takewhile(lambda pair: pair[0].address == _address_of(pair[1]), both)
        limit, places = min(whole_until(outgoing), len(list(same))), self._places
        while 0 < limit < len(places) and places[limit - 1] == places[limit]:
            limit -= 1  # both are of one message of the loop's
        ops = to_ops(outgoing, lambda _index: 0)
        pairs = self._put_out(SlotPlan().merged(0, ops).cut(limit))
        behind = {*places[limit:]}
        first = next((n for n, (place, _) in enumerate(pairs) if place in behind), len(pairs))
        messages = [message for _, message in pairs]
        return messages[:first], messages[first:]

    def _put_out(self, plan: SlotPlan) -> list[tuple[int | None, dict[str, Any]]]:
        places: list[int | None] = []
        for index in range(len(self._host.messages) + 1):
            slot = plan.slot(index)
            places += [None] * len(slot.says)
            if index < len(self._host.messages) and not slot.is_omitted:
                places.append(self._places[index])
        outgoing = list(zip(places, self._applied(plan), strict=True))
        whole = Counter(self._places)
        own_ids = {id(message) for message in self._made}
        if self._shown is self._host.messages:
            own_ids.update(map(id, self._shown))
        out: list[tuple[int | None, dict[str, Any]]] = [(None, dict(m)) for m in self._before]
        for place, pairs in groupby(outgoing, key=lambda pair: pair[0]):
            sent_group = [message for _, message in pairs]
            group = [self._pairing.outside(message) for message in sent_group]
            if place is None:
                out += [(None, self._format.from_engine([message], None)) for message in group]
            elif place < 0:
                out.append((place, self._format.from_engine(group, None)))
            # The loop's own object, so that what the API's client needs of it beside the text
            # stays.
            elif len(group) == whole[place] and all(
                id(message) in own_ids for message in sent_group
            ):
                out.append((place, dict(self._originals[place])))
            else:
                out.append((place, self._format.from_engine(group, self._originals[place])))
        return out

    def _applied(self, plan: SlotPlan) -> list[Message]:
        return plan.apply(self._shown)


def _stored_messages(chat: Chat) -> list[Message]:
    record = chat.newest_record
    if record is None:
        return []
    state = chat.replay(record.id)
    return [load_message(key.address, chat.store.blob) for key in state.keys]


def _address_of(message: Message) -> str:
    return to_item(message, None, {}).key.address


_ADDED = frozenset({"timestamp", "provider", "model", "api"})


def bare(message: Message) -> Message:
    return {name: value for name, value in message.items() if name not in _ADDED}


# Which result answers which call, where ids do not say. Inside, each call of an answer has an id of
# its own; outside, nothing changes.


@dataclass(slots=True)
class _Call:
    given: str
    own: str
    tool: str


@dataclass(slots=True)
class _Answer:
    """An answer with calls. `end`: where its results end; `strays`: results that name no call."""

    end: int
    open: list[_Call]
    strays: int = 0
    is_last: bool = True


@dataclass(slots=True)
class Pairing:
    """Gives calls and results ids of their own where these are missing or repeated, and puts a
    result behind its call."""

    named: list[tuple[int, int, str, str]] = field(default_factory=list)
    """Results under their call's id: place in the loop's list, how many precede, that id, and the
    call's."""
    given: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    _answers: list[_Answer] = field(default_factory=list)
    """Since the user has spoken."""

    def own(self, made: Sequence[tuple[Message, int]]) -> list[tuple[Message, int]]:
        """The messages with these ids, each with its place in the loop's list."""
        self.named.clear()
        self.given.clear()
        self.results.clear()
        self._answers.clear()
        pairs: list[tuple[Message, int]] = []
        for number, (message, place) in enumerate(made):
            if message["role"] == "toolResult":
                id, message = message["toolCallId"], self._named(message, made, number)
                if message["toolCallId"] != id:
                    same = [m for m, at in made[:number] if at == place]
                    nth = sum(m.get("toolCallId") == id for m in same)
                    self.named.append((place, nth, str(id), message["toolCallId"]))
            if message["role"] == "assistant":
                message, calls = self._answer(message, place)
                self._answers.append(_Answer(len(pairs) + 1, calls))
            elif message["role"] == "toolResult" and (at := self._answered(message)) is not None:
                answers = self._answers[at:]
                pairs.insert(answers[0].end, (self._result(message, answers[0]), place))
                for answer in answers:
                    answer.end += 1
                continue
            elif message["role"] == "user":
                del self._answers[:-1]
            if message["role"] not in ("assistant", "toolResult") and self._answers:
                self._answers[-1].is_last = False
            pairs.append((message, place))
        return pairs

    def _answer(self, message: Message, place: int) -> tuple[Message, list[_Call]]:
        content: list[dict[str, Any]] = []
        calls: list[_Call] = []
        for number, block in enumerate(blocks_of(message)):
            if block.get("type") == "toolCall":
                call_id = str(block.get("id") or "")
                is_new = call_id and all(call.own != call_id for call in calls)
                own = call_id if is_new else f"{call_id or 'call'}-{place}.{number}"
                if own != call_id:
                    self.given[own] = call_id
                    block = {**block, "id": own}
                calls.append(_Call(call_id, own, str(block.get("name") or "")))
            content.append(block)
        is_same = all(call.own == call.given for call in calls)
        return (message if is_same else {**message, "content": content}), calls

    def _named(self, message: Message, made: Sequence[tuple[Message, int]], number: int) -> Message:
        """A result under its call's id, if no other can be meant."""
        answer = self._answers[-1] if self._answers else None
        if answer is None or not answer.is_last or self._answered(message) is not None:
            return message
        answer.strays += 1
        if answer.strays > 1:
            return message
        # Those whose results come later, maybe behind other things.
        behind = [m for m, _ in made[number + 1 :]]
        later = [str(m.get("toolCallId") or "") for m in behind if m["role"] == "toolResult"]
        unanswered = [call for call in answer.open if call.given not in later]
        others = takewhile(lambda m: m["role"] == "toolResult", behind)
        strays = answer.strays + sum(self._answered(m) is None for m in others)
        if len(unanswered) != 1 or strays != 1 or not unanswered[0].given:
            return message
        return {**message, "toolCallId": unanswered[0].given, "toolName": unanswered[0].tool}

    def _answered(self, message: Message) -> int | None:
        id = str(message.get("toolCallId") or "")
        newest = len(self._answers) - 1
        for at in range(newest, -1, -1):
            if any(call.given == id for call in self._answers[at].open if id or at == newest):
                return at
        is_newest = newest >= 0 and _at(self._answers[newest].open, id) is not None
        return newest if is_newest else None

    def _result(self, message: Message, answer: _Answer) -> Message:
        id = str(message.get("toolCallId") or "")
        at = _at(answer.open, id)
        assert at is not None  # `_answered` has said so
        call = answer.open.pop(at)
        if call.own == id:
            return message
        self.results[call.own] = id
        return {**message, "toolCallId": call.own, "toolName": call.tool or message["toolName"]}

    def outside(self, message: Message) -> Message:
        id = message.get("toolCallId")
        if id in self.results or id in self.given:
            # What foredeck says of a call without a result has the call's id.
            return {**message, "toolCallId": self.results.get(id, self.given.get(id))}
        blocks = message.get("content")
        if message.get("role") != "assistant" or not isinstance(blocks, list):
            return message
        content = [
            {**block, "id": self.given[id]}
            if isinstance(id := block.get("id"), str) and id in self.given
            else block
            for block in blocks
        ]
        return message if content == blocks else {**message, "content": content}


_RESULT_IDS = ("tool_use_id", "tool_call_id", "call_id")


def with_result_id(message: Mapping[str, Any], nth: int, given: str, own: str) -> Message:
    """The nth of a message's results with this id, under another."""
    copy: Message = deepcopy(dict(message))
    # OpenAI's responses are gathered in one.
    lists = (copy.get(name) for name in ("content", "items"))
    parts = [part for listed in lists if isinstance(listed, list) for part in listed]
    places = [
        (holder, name)
        for holder in (copy, *parts)
        for name in _RESULT_IDS
        if isinstance(holder, dict) and name in holder and str(holder[name]) == given
    ]
    holder, name = places[nth]
    holder[name] = own
    return copy


def _at(calls: Sequence[_Call], result: str) -> int | None:
    at = answered_by([call.given for call in calls], result)
    numbers = (number for number, call in enumerate(calls) if call.tool == result != "")
    return next(numbers, None) if at is None else at
