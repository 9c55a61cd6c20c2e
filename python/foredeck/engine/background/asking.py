"""Asking a model for a session: what a question would cost, whether it may be asked, its answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from foredeck.config.asking import AskingSection
from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.context.state.session import Session
from foredeck.context.status import tokens_of
from foredeck.engine.background.limits import Caps
from foredeck.engine.background.meter import Meter
from foredeck.engine.background.prices import AskingPrices, question_tokens
from foredeck.errors import ForedeckError
from foredeck.hosts.asking import (
    AskCancelled,
    AskModels,
    AskTimedOut,
    CompleteParams,
    CompleteResult,
    ModelName,
    ModelResult,
    ModelUsage,
    NoModel,
    NotAsked,
    UselessAnswer,
)
from foredeck.model.asked import AskedDocument, AskedOutcome


@dataclass(frozen=True, slots=True)
class Quote:
    """What asking would mean now. `price` is in dollars, expected; `warm` is the call whose prompt
    would be read from the provider's cache, or None, and `cold` says why."""

    model: str
    price: float
    single_slot: bool
    warm: int | None
    cold: str


class SessionAsking:
    """Asks for one session, within what its user allows. One question at a time."""

    def __init__(
        self, session: Session, models: AskModels, config: AskingSection, meter: Meter | None = None
    ) -> None:
        self._session = session
        self._models = models
        self._config = config
        self.meter = meter or Meter(session, Caps(config.share, config.per_hour))
        self._open: AskedDocument | None = None

    async def offered(self, *, warm: bool = False) -> ModelResult:
        """The model that would be asked: the configured one, or for a `warm` question always the
        one in use. Raises `NoModel` where there is none."""
        offer = await self._models.offered(None if warm else self._model)
        if offer.model is None:
            raise NoModel(offer.reason or "there is no model to ask")
        return offer

    async def quote(self, question: CompleteParams, *, output_tokens: int | None = None) -> Quote:
        """What a question would cost, without asking it. `output_tokens`: how long the answer will
        be; None: as long as it may. Raises `NoModel`."""
        offer = await self.offered(warm=question.warm is not None)
        record = offer.model or {}
        newest = self._session.newest_record
        stats = None if newest is None else newest.stats
        prompt = 0 if stats is None else tokens_of(stats, stats.chars_sent)
        rate = CHARS_PER_TOKEN if stats is None else stats.rate
        tokens = question_tokens(question, prompt, rate, output_tokens)
        return Quote(
            f"{record.get('provider')}/{record.get('id')}",
            AskingPrices.of(record).price(tokens),
            offer.single_slot,
            offer.warm,
            offer.cold or "",
        )

    async def ask(
        self,
        purpose: str,
        question: CompleteParams,
        *,
        worth: float | None = None,
        output_tokens: int | None = None,
        wanted: bool = False,
    ) -> CompleteResult:
        """One question, counted and kept as a record of the session.

        `worth`: dollars that an answer saves, beyond which it is not asked; `wanted`: the user
        wants it asked, also of a model that answers one at a time. Raises `NotAsked` or `NoModel`
        with the reason where nothing was sent, else what `hosts.asking` names.
        """
        if not (self._config.enabled or wanted):
            raise NotAsked("asking in the background is switched off (asking.enabled)")
        quote = await self.quote(question, output_tokens=output_tokens)
        wanted = wanted or self._config.single_slot
        if quote.single_slot and not wanted:
            raise NotAsked(f"{quote.model} answers one question at a time (asking.single_slot)")
        if (reason := self.meter.why_not(quote.price, worth)) is not None:
            raise NotAsked(reason)
        model = None if question.warm is not None else question.model or self._model
        settled = question.model_copy(update={"model": model, "wanted": wanted or None})
        return await self._ask(purpose, settled, quote)

    async def _ask(self, purpose: str, question: CompleteParams, quote: Quote) -> CompleteResult:
        warm = question.warm is not None
        self._open = self.meter.begin(purpose, quote.model, quote.price, warm=warm)
        try:
            answer = await self._models.ask(question, timeout_s=self._config.timeout_s)
        except UselessAnswer as error:
            self._end("useless", error.usage, error)
            raise
        except ForedeckError as error:
            self._end(_OUTCOMES.get(type(error), "useless"), reason=error)
            raise
        except asyncio.CancelledError:
            self.close()
            raise
        self._end("answered", answer.usage)
        return answer

    def _end(
        self, outcome: AskedOutcome, usage: ModelUsage | None = None, reason: object = ""
    ) -> None:
        asked, self._open = self._open, None
        if asked is not None:
            self.meter.end(asked, outcome, usage, str(reason))

    def close(self) -> None:
        """Nobody waits for the question at hand any more. Called while the store is still open."""
        self._end("cancelled")

    @property
    def _model(self) -> ModelName | None:
        if self._config.model is None:
            return None
        provider, _, id = self._config.model.partition("/")
        return ModelName(provider=provider, id=id)


_OUTCOMES: dict[type[ForedeckError], AskedOutcome] = {
    AskTimedOut: "timed_out",
    AskCancelled: "cancelled",
    NoModel: "refused",
    NotAsked: "refused",
}
