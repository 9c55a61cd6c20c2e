"""The two ways to ask: an excerpt alone, or the agent's last prompt with the request at its end.

Whichever is expected to cost less is taken. The last prompt is read from the provider's cache and
shows all of the chat; the excerpt is short and can go to another model.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from foredeck.engine.background.asking import AskingTerms, SessionAsking
from foredeck.hosts.host import CompleteParams, NotAsked
from foredeck.observations.observers import AskedQuestion, ModelReply

POLL_S, POLLS = 0.25, 120
"""How often to check whether a model has begun to answer, and how many times."""


@dataclass(frozen=True, slots=True)
class AskingWay:
    """One way to ask: its question, its expected price in dollars, and on which terms."""

    question: CompleteParams
    price: float
    terms: AskingTerms

    @property
    def is_warm(self) -> bool:
        """Whether it is the agent's own last prompt."""
        return self.question.warm is not None


@dataclass
class ModelQuestions:
    """Asks for observations and reflections. `worth`: dollars that an answer saves, None where that
    is not the point; `wanted`: the user has asked for it; `insisted`: at any price."""

    asking: SessionAsking
    alone: AskingTerms
    agent: AskingTerms
    """Of the model that the agent works with."""
    wanted: bool = False
    insisted: bool = False
    worth: float | None = None
    ways: list[AskingWay] = field(default_factory=list)
    """Those of the question that was asked last, the cheapest first."""

    @classmethod
    async def open(cls, asking: SessionAsking, *, wanted: bool) -> ModelQuestions:
        """On the current terms. Raises `NoModel`, and `NotAsked` where it may not be at all."""
        alone = await asking.terms()
        if (reason := asking.forbidden(alone, wanted=wanted)) is not None:
            raise NotAsked(reason)
        agent = await asking.terms(warm=True) if asking.has_other_model else alone
        return cls(asking, alone, agent, wanted)

    def priced(self, asked: AskedQuestion) -> list[AskingWay]:
        """The ways to ask this, the cheapest first; of equal ones the excerpt."""
        expected = _expected(asked)
        alone = CompleteParams(
            messages=[_message(asked.text)], max_tokens=asked.max_tokens, system=asked.system
        )
        ways = [AskingWay(alone, self.alone.price(alone, expected), self.alone)]
        if self.agent.warm is not None and (added := self._added(asked)) is not None:
            ways.append(added)
        return sorted(ways, key=lambda way: way.price)

    def is_better_later(self, asked: AskedQuestion) -> bool:
        """Whether it would cost less once the model has begun to answer the agent, which makes its
        prompt readable from the cache."""
        added = self._added(asked)
        return (
            self.agent.warm is None
            and added is not None
            and added.price < self.priced(asked)[0].price
        )

    async def wait_until_warm(self) -> bool:
        """Wait for the model to begin to answer the agent; whether it has, and its prompt can be
        read from the cache. The agent's work waits for nothing here."""
        for _ in range(POLLS):
            await asyncio.sleep(POLL_S)
            self.agent = await self.asking.terms(warm=True)
            if self.agent.warm is not None:
                return True
        return False

    def _added(self, asked: AskedQuestion) -> AskingWay | None:
        """The question at the end of the last prompt."""
        if asked.warm is None:
            return None
        added = CompleteParams(
            messages=[_message(asked.warm)],
            max_tokens=asked.max_tokens,
            warm=self.agent.warm or 1,
        )
        return AskingWay(added, self.agent.price(added, _expected(asked)), self.agent)

    async def ask(self, asked: AskedQuestion) -> ModelReply:
        """`observers.AskModel`. Raises what `SessionAsking.ask` does."""
        self.ways = self.priced(asked)
        answer = await self.asking.ask(
            asked.work,
            self.ways[0].question,
            worth=None if self.wanted else self.worth,
            output_tokens=_expected(asked),
            wanted=self.wanted,
            insisted=self.insisted,
        )
        name = f"{answer.model.provider}/{answer.model.id}"
        return ModelReply(answer.text, answer.stop, len(answer.calls), name)


def _expected(asked: AskedQuestion) -> int:
    """Tokens of an answer, which has room for more."""
    return asked.max_tokens // 3


def _message(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}
