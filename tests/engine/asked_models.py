"""Models of a host for tests without Pi: they answer as a test says, at Anthropic's prices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from foredeck.hosts.host import CompleteParams, CompleteResult, ModelName, ModelResult, ModelUsage

COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
RECORD = {
    **{"provider": "p", "id": "m", "api": "anthropic-messages", "contextWindow": 200_000},
    "cost": COST,
}
USAGE = ModelUsage(read=0, written=0, fresh=1000, output=100, cost=0.0045)


class Models:
    """`wait`: answers come only once that is set. `warm`: the call whose prompt would be read from
    the cache."""

    def __init__(self, *, single_slot: bool = False) -> None:
        self.single_slot = single_slot
        self.asked: list[CompleteParams] = []
        self.about: list[ModelName | None] = []
        self.failure: Exception | None = None
        self.wait: asyncio.Event | None = None
        self.none: str | None = None
        self.cost = COST
        self.lives: dict[str, Any] = {"promptCache": {"short": 300}}
        self.warm: int | None = None
        self.answer: Callable[[CompleteParams], str] = lambda _question: "noted"

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        self.about.append(model)
        if self.none is not None:
            return ModelResult(model=None, reason=self.none)
        name = {} if model is None else model.model_dump()
        return ModelResult(
            model={**RECORD, **name, "cost": self.cost, **self.lives},
            single_slot=self.single_slot,
            warm=self.warm,
        )

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        del timeout_s
        self.asked.append(question)
        if self.wait is not None:
            await self.wait.wait()
        if self.failure is not None:
            raise self.failure
        name = question.model or ModelName(provider="p", id="m")
        text = self.answer(question)
        return CompleteResult(
            text=text, calls=[], stop="stop", model=name, usage=USAGE, single_slot=False
        )


async def settled() -> None:
    """Let what was begun on the event loop go on until nothing is left to do but wait."""
    for _ in range(40):
        await asyncio.sleep(0)
