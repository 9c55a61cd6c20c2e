from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.accounting.cache import PromptPlace
from foredeck.accounting.shapes import blocks_of
from foredeck.context.calls.losses import CALLS_AT_WORK, reasoning_tokens, sealed_blocks
from foredeck.context.messages.shape import Message, is_signed, to_item
from foredeck_agents.histories.records import Transcript
from foredeck_lab.replay.as_model import ASSUMED_REASONING


@dataclass(slots=True)
class ReasoningShare:
    """Tokens of reasoning produced before calls, and accepted by them."""

    produced: float = 0.0
    accepted: float = 0.0

    def add(self, other: ReasoningShare) -> None:
        """Add the tokens of another session."""
        self.produced += other.produced
        self.accepted += other.accepted

    @property
    def percent(self) -> float | None:
        """The accepted share; None without reasoning."""
        return 100 * self.accepted / self.produced if self.produced else None


@dataclass(slots=True)
class ReasoningKept:
    """All reasoning, that of the last twenty calls, and of the turn under way."""

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
    """One answer's reasoning, and the user messages before it."""

    tokens: float
    is_signed: bool
    turn: int
    message: Message


def answers_of(transcript: Transcript) -> list[AnswerFacts]:
    """The reasoning of each call's answer."""
    facts, turn, position = [], 0, 0
    for call in transcript.calls:
        new = transcript.messages[position : call.seen]
        turn += sum(record.message.get("role") == "user" for record in new)
        position = call.seen
        message = transcript.answer_to(call)
        answer = to_item(message, None, {})
        tokens = sum(reasoning_tokens(answer, block) for block in sealed_blocks(answer))
        facts.append(AnswerFacts(tokens or ASSUMED_REASONING, tokens > 0, turn, message))
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
        answer, remaining = self._answers[call], self._kept
        shares = [remaining.all]
        recent = now - call <= CALLS_AT_WORK
        if recent:
            shares.append(remaining.recent)
        if answer.turn == self._answers[now].turn:
            shares.append(remaining.turn)
        if answer.is_signed:
            shares += [remaining.signed, *([remaining.signed_recent] if recent else [])]
        for share in shares:
            share.produced += answer.tokens
            share.accepted += answer.tokens if call in self._alive else 0.0
