"""How much of a model's reasoning its prompts still hold in a form that its provider would accept.

A model of today binds its reasoning to every byte before it: a block is dropped as soon as anything
that preceded it has changed since it was produced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.accounting.cache import PromptPlace
from foredeck.accounting.shapes import blocks_of
from foredeck.context.calls.losses import CALLS_AT_WORK, reasoning_tokens, sealed_blocks
from foredeck.context.messages.shape import Message, is_signed, to_item
from foredeck.histories.records import Transcript
from foredeck.replay.as_model import ASSUMED_REASONING


@dataclass(slots=True)
class ReasoningShare:
    """Tokens of reasoning summed over all calls: produced before the call, and accepted by it."""

    produced: float = 0.0
    accepted: float = 0.0

    def add(self, other: ReasoningShare) -> None:
        """Add the tokens of another session."""
        self.produced += other.produced
        self.accepted += other.accepted

    @property
    def percent(self) -> float | None:
        """The share that is accepted; None where nothing was produced."""
        return 100 * self.accepted / self.produced if self.produced else None


@dataclass(slots=True)
class ReasoningKept:
    """All reasoning, that of the last twenty calls, and that of the turn under way; of signed
    answers only, and with what is assumed of the others."""

    signed: ReasoningShare = field(default_factory=ReasoningShare)
    signed_recent: ReasoningShare = field(default_factory=ReasoningShare)
    all: ReasoningShare = field(default_factory=ReasoningShare)
    recent: ReasoningShare = field(default_factory=ReasoningShare)
    turn: ReasoningShare = field(default_factory=ReasoningShare)

    def add(self, other: ReasoningKept) -> None:
        """Add another session."""
        for name in self.__slots__:
            getattr(self, name).add(getattr(other, name))


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """The reasoning of one recorded answer: its tokens, whether they are signed, and the number of
    user messages before it."""

    tokens: float
    is_signed: bool
    turn: int


def answers_of(transcript: Transcript) -> list[AnswerFacts]:
    """The reasoning of each call's answer."""
    facts, turn, seen = [], 0, 0
    for call in transcript.calls:
        new = transcript.messages[seen : call.seen]
        turn += sum(record.message.get("role") == "user" for record in new)
        seen = call.seen
        answer = to_item(transcript.answer_to(call), None, {})
        tokens = sum(reasoning_tokens(answer, block) for block in sealed_blocks(answer))
        facts.append(AnswerFacts(tokens or ASSUMED_REASONING, tokens > 0, turn))
    return facts


class ReasoningJudge:
    """Follows the answers of one session through its prompts."""

    def __init__(self, answers: Sequence[AnswerFacts], kept: ReasoningKept) -> None:
        self._answers, self._kept = answers, kept
        self._alive: dict[int, bytes] = {}
        """By call, the hash of the prompt that its answer followed, while that is accepted."""
        self._call = 0

    def see(self, places: Sequence[PromptPlace], sent: Sequence[Message]) -> None:
        """The next prompt: the ends of its messages, and the messages themselves."""
        at = {place.tip: number for number, place in enumerate(places)}
        number, answers = self._call, self._answers
        for call, tip in list(self._alive.items()):
            index = at.get(tip)
            following = sent[index] if index is not None and index < len(sent) else {}
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
        answer, kept = self._answers[call], self._kept
        shares = [kept.all]
        recent = now - call <= CALLS_AT_WORK
        if recent:
            shares.append(kept.recent)
        if answer.turn == self._answers[now].turn:
            shares.append(kept.turn)
        if answer.is_signed:
            shares += [kept.signed, *([kept.signed_recent] if recent else [])]
        for share in shares:
            share.produced += answer.tokens
            share.accepted += answer.tokens if call in self._alive else 0.0
