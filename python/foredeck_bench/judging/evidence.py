"""What each recorded call needed to see, and what of the reasoning before it was still valid."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from foredeck.accounting.cache import PromptPlace, Shape, blocks_of, is_sent, leaves, texts_of
from foredeck.context.calls.feedback import CALLS_AT_WORK, reasoning_tokens, sealed_blocks
from foredeck.context.messages.shape import Message, is_signed, to_item
from foredeck.model.messages import texts_in
from foredeck.model.names import identifiers
from foredeck.sources.tool_calls import edits_of
from foredeck_agents.histories.records import Transcript
from foredeck_lab.replay.pi import ASSUMED_REASONING

_CODE = re.compile(r"[A-Za-z]{3}")
_SHAPED = re.compile(r"[_/$]|[a-z][A-Z]|[A-Za-z]\.[A-Za-z]")


@dataclass(slots=True)
class Needs:
    """What one call needed, each with the newest message that held it."""

    edits: list[tuple[str, int | None]] = field(default_factory=list)
    """Old texts of the answer's edits."""
    names: dict[str, int] = field(default_factory=dict)
    """Identifiers that an earlier tool result held."""
    copied: frozenset[str] = frozenset()
    """Those with the shape of code that can only be copied from a result."""
    own_words: frozenset[str] = frozenset()
    """Identifiers that only the model's earlier answers held."""


def has_code_shape(name: str) -> bool:
    """Whether an identifier looks like a program's or a path: with an underscore, slash, inner
    capital or dot."""
    return bool(_CODE.search(name) and _SHAPED.search(name))


def needs_of(transcript: Transcript) -> list[Needs]:
    messages = [recorded.message for recorded in transcript.messages]
    texts = [texts_of(message) if is_sent(message) else [] for message in messages]
    in_results: dict[str, int] = {}
    names_written: set[str] = set()
    texts_said: set[str] = set()
    elsewhere: set[str] = set()
    needs: list[Needs] = []
    position = 0
    for call in transcript.calls:
        for index in range(position, call.seen):
            names = frozenset[str]().union(*map(identifiers, texts[index]))
            if messages[index].get("role") == "toolResult":
                in_results.update(dict.fromkeys(names, index))
            else:
                names_written |= names
            own_text = names_said(messages[index]) if texts[index] else frozenset()
            texts_said |= own_text
            # What an answer both says and writes into a call stands in the call as well.
            elsewhere |= names - own_text | names_asked(messages[index], own_text)
        position = call.seen
        answer = messages[call.seen]
        used = names_said(answer) | names_asked(answer)
        own = _needs(answer, used, in_results, texts[: call.seen])
        own.copied = frozenset(filter(has_code_shape, own.names)) - names_written
        own.own_words = (used & texts_said) - elsewhere
        needs.append(own)
    return needs


def names_said(message: Message) -> frozenset[str]:
    """Identifiers in an answer's text."""
    if message.get("role") != "assistant":
        return frozenset()
    return frozenset[str]().union(*map(identifiers, texts_in(message.get("content"))))


def names_asked(message: Message, among: frozenset[str] | None = None) -> frozenset[str]:
    if message.get("role") != "assistant" or among == frozenset():
        return frozenset()
    calls = (b.get("arguments") for b in blocks_of(message) if b.get("type") == "toolCall")
    names = frozenset[str]().union(*(identifiers(t) for each in calls for t in leaves(each)))
    return names if among is None else names & among


def _needs(
    answer: Message, used: frozenset[str], in_results: dict[str, int], texts: Sequence[list[str]]
) -> Needs:
    needs = Needs()
    for block in blocks_of(answer):
        arguments = block.get("arguments")
        if block.get("name") == "edit" and isinstance(arguments, dict):
            olds = (edit.old for edit in edits_of(arguments))
            needs.edits += [(old, _newest_holder(old, texts)) for old in olds if old.strip()]
    needs.names = {name: in_results[name] for name in used if name in in_results}
    return needs


def _newest_holder(text: str, texts: Sequence[list[str]]) -> int | None:
    for index in range(len(texts) - 1, -1, -1):
        if any(text in held for held in texts[index]):
            return index
    return None


@lru_cache(maxsize=20_000)
def _names_in(shape: Shape) -> frozenset[str]:
    return frozenset[str]().union(*map(identifiers, shape.texts))


class View:
    """What can be read in the newest prompt, updated by differences."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}
        self._names: Counter[str] = Counter()

    def show(self, shapes: Sequence[Shape]) -> None:
        """Go on to another prompt."""
        by_hash = {shape.hash: shape for shape in shapes}
        for digest in self._shapes.keys() - by_hash.keys():
            self._names.subtract(_names_in(self._shapes[digest]))
        for digest in by_hash.keys() - self._shapes.keys():
            self._names.update(_names_in(by_hash[digest]))
        self._shapes = by_hash

    def has_name(self, name: str) -> bool:
        """Whether an identifier is in the prompt."""
        return self._names[name] > 0

    def has_text(self, text: str) -> bool:
        """Whether a text is in the prompt, in one piece or line by line; white space like the
        host's `edit`."""
        if self._stands(text):
            return True
        lines = {line for whole in text.split("\n") if (line := whole.strip())}
        return bool(lines) and all(map(self._stands, lines))

    def _stands(self, text: str) -> bool:
        return any(text in held for shape in self._shapes.values() for held in shape.texts)


@dataclass(slots=True)
class ReasoningShare:
    """Tokens of reasoning produced before calls, and accepted by them."""

    produced: float = 0.0
    accepted: float = 0.0

    def add(self, other: ReasoningShare) -> None:
        """Add the tokens of another session."""
        self.produced += other.produced
        self.accepted += other.accepted


@dataclass(slots=True)
class ReasoningKept:
    """All reasoning, that of the last twenty calls, and what of it is signed."""

    all: ReasoningShare = field(default_factory=ReasoningShare)
    recent: ReasoningShare = field(default_factory=ReasoningShare)
    signed_recent: ReasoningShare = field(default_factory=ReasoningShare)

    def add(self, other: ReasoningKept) -> None:
        """Add another session."""
        for name in self.__slots__:
            getattr(self, name).add(getattr(other, name))


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """One answer's reasoning."""

    tokens: float
    is_signed: bool
    message: Message


def answers_of(transcript: Transcript) -> list[AnswerFacts]:
    """The reasoning of each call's answer."""
    facts = []
    for call in transcript.calls:
        message = transcript.answer_to(call)
        answer = to_item(message, None, {})
        tokens = sum(reasoning_tokens(answer, block) for block in sealed_blocks(answer))
        facts.append(AnswerFacts(tokens or ASSUMED_REASONING, tokens > 0, message))
    return facts


class ReasoningJudge:
    """Follows a session's answers through its prompts.

    `keeps_behind`: reasoning stays valid behind a summary, as with Anthropic's API (beta
    `compact-2026-09-04`).
    """

    def __init__(
        self, answers: Sequence[AnswerFacts], kept: ReasoningKept, *, keeps_behind: bool = False
    ) -> None:
        self._answers, self._kept, self._keeps_behind = answers, kept, keeps_behind
        self._alive: dict[int, bytes] = {}
        """Hash of the prompt before each accepted answer, by call."""
        self._call = 0

    def see(self, places: Sequence[PromptPlace], sent: Sequence[Message]) -> None:
        at = {place.tip: number for number, place in enumerate(places)}
        number, answers = self._call, self._answers
        for call, tip in list(self._alive.items()):
            index = at.get(tip)
            following = sent[index] if index is not None and index < len(sent) else {}
            if self._keeps_behind:
                said = answers[call].message
                following = said if any(each is said for each in sent) else {}
            whole = following.get("role") == "assistant" and (
                not answers[call].is_signed or any(map(is_signed, blocks_of(following)))
            )
            if not whole:
                del self._alive[call]
        for call in range(number):
            self._count(call, number)
        self._alive[number] = places[-1].tip
        self._call += 1

    def _count(self, call: int, now: int) -> None:
        answer, shares = self._answers[call], [self._kept.all]
        if now - call <= CALLS_AT_WORK:
            shares += [self._kept.recent, *([self._kept.signed_recent] if answer.is_signed else ())]
        for share in shares:
            share.produced += answer.tokens
            share.accepted += answer.tokens if call in self._alive else 0.0
