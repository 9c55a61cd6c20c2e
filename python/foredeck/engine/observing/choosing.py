"""Which chunk is observed now: one whose observation may be asked for, and is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.context.state.session import Session
from foredeck.engine.observing.questions import ModelQuestions
from foredeck.engine.observing.worth import Covered, worth_of
from foredeck.observations.chunks import Chunk, ChunkRules, Position, next_chunk
from foredeck.observations.messages import SourceMessage
from foredeck.observations.modes import ModeChoice
from foredeck.observations.observers import ModelObserver

LATER = "It will cost less once the agent's model has begun to answer."


@dataclass
class ChunkChoice:
    """Picks for an `ObservationKeeper`, on the current terms.

    `least`: tokens, None for the configured ones. `always`: also where it does not pay.
    `may_wait`: the agent's model is about to answer, and there will be another opportunity.
    `reason`: why nothing was picked, where a price was against it; `price` is that.
    """

    session: Session
    observer: ModelObserver
    questions: ModelQuestions
    mode: ModeChoice
    rules: ChunkRules
    least: int | None
    always: bool
    may_wait: bool
    reason: str = ""
    price: float = 0.0

    def __call__(self, messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
        """The next chunk, or None."""

        def is_affordable(chunk: Chunk) -> bool:
            return self._is_affordable(chunk, position)

        return next_chunk(messages, position, self.rules, is_affordable, least=self.least)

    def _is_affordable(self, chunk: Chunk, position: Position) -> bool:
        asked, questions = self.observer.question(chunk, self.mode.mode), self.questions
        if self.may_wait and questions.is_better_later(asked):
            self.reason = LATER
            return False
        way = questions.priced(asked)[0]
        if not self.always:
            questions.worth = worth_of(self._covered(chunk, position), questions.agent.prices)
        self.price = way.price
        self.reason = questions.asking.meter.why_not(way.price, questions.worth) or ""
        return not self.reason

    def _covered(self, chunk: Chunk, position: Position) -> Covered:
        parts = self.session.branch.conversation.parts
        first = position.messages
        sent = sum(part.chars for part in parts[first : first + len(chunk.messages)])
        record = self.session.newest_record
        calls = 0 if record is None else self.session.log.newest
        return Covered(chunk.tokens, int(sent / self.questions.alone.rate), calls)
