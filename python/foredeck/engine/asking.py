"""Asking a model for a session: what a question would cost, whether it may be asked, its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from foredeck.accounting.figure import cost_of, stored_questions
from foredeck.config.sections import AskingSection
from foredeck.context.state.chat import Chat
from foredeck.errors import ForedeckError, StoreError
from foredeck.hosts.asking_terms import AskingTerms, dollars
from foredeck.hosts.host import (
    AskCancelled,
    AskModels,
    AskTimedOut,
    CompleteParams,
    CompleteResult,
    ModelName,
    ModelUsage,
    NoModel,
    NotAsked,
    Show,
    UselessAnswer,
)
from foredeck.model.records import AskedDocument, AskedOutcome, asked_id
from foredeck.store.clock import HOUR_MS, MINUTE_MS, now_ms
from foredeck.store.protocol import Batch

log = logging.getLogger(__name__)

LONGEST_PAUSE_MIN = 60
RATE_LIMIT_PAUSE_MIN = 5

_RATE_LIMITS = (
    "429",
    "529",
    "rate limit",
    "rate_limit",
    "overloaded",
    "too many requests",
    "quota",
)
_SENT = ("open", "answered", "useless", "timed_out", "cancelled")
_FAILURES = ("useless", "timed_out")

_DOING = {
    "observe": "noting down what was said and done",
    "reflect": "condensing older notes",
    "extract": "looking for what to remember",
}
"""What the user sees, by purpose."""

_OUTCOMES: dict[type[ForedeckError], AskedOutcome] = {
    AskTimedOut: "timed_out",
    AskCancelled: "cancelled",
    NoModel: "refused",
    NotAsked: "refused",
}


NOT_KEPT = "the provider no longer has the agent's last prompt in its cache"


class SessionAsking:
    """Asks for one session, within what its user allows. One question at a time.

    `show` shows the user what a model is being asked for; an empty text says that it has ended.
    """

    def __init__(
        self, chat: Chat, models: AskModels, config: AskingSection, show: Show = lambda _text: None
    ) -> None:
        self._chat = chat
        self._models = models
        self._config = config
        self._show = show
        self._open: AskedDocument | None = None

    @property
    def has_other_model(self) -> bool:
        """Whether another model than the agent's is asked."""
        return self._config.model is not None

    async def terms(self, *, warm: bool = False) -> AskingTerms:
        """Those of the model that would be asked: the configured one, or for a `warm` question
        always the one in use. Costs nothing. Raises `NoModel` where there is none."""
        offer = await self._models.offered(None if warm else self._model)
        if offer.model is None:
            raise NoModel(offer.reason or "there is no model to ask")
        newest = self._chat.newest_record
        return AskingTerms.of(offer, None if newest is None else newest.stats)

    def forbidden(self, terms: AskingTerms, *, wanted: bool) -> str | None:
        """Why this model is not asked at all; None where it may be. `wanted`: see `ask`."""
        if not (self._config.enabled or wanted):
            return "asking in the background is switched off (asking.enabled)"
        if terms.single_slot and not (wanted or self._config.single_slot):
            return f"{terms.model} answers one question at a time (asking.single_slot)"
        return None

    async def ask(
        self,
        purpose: str,
        question: CompleteParams,
        *,
        worth: float | None = None,
        output_tokens: int | None = None,
        wanted: bool = False,
        insisted: bool = False,
    ) -> CompleteResult:
        """One question, counted and kept as a record of the session.

        `worth`: dollars that an answer saves, beyond which it is not asked; `wanted`: the user
        wants it asked, also of a model that answers one at a time; `insisted`: at any price.
        Raises `NotAsked` or `NoModel` with the reason where nothing was sent, else what
        `hosts.host` names.
        """
        warm = question.warm is not None
        terms = await self.terms(warm=warm)
        price = terms.price(question, output_tokens)
        reason = self.forbidden(terms, wanted=wanted)
        if warm and terms.warm != question.warm:
            # It was kept when the question was planned; in full it would cost ten times as much.
            reason = reason or NOT_KEPT
        reason = reason or self.why_not(price, worth, insisted=insisted)
        if reason is not None:
            raise NotAsked(reason)
        said = wanted or self._config.single_slot or None
        # What is asked once is not worth writing to a cache, which some providers charge for.
        alone = {
            "model": question.model or self._model,
            "retention": question.retention or "none",
        }
        settled = terms.with_room(question).model_copy(
            update={**({} if warm else alone), "wanted": said}
        )
        self._open = self._begin(purpose, terms.model, price, warm=warm)
        cost = f", for about {dollars(price)}" if price else ""
        self._show(f"foredeck: {_DOING.get(purpose, purpose)}, with {terms.model}{cost}")
        return await self._ask(settled)

    async def _ask(self, question: CompleteParams) -> CompleteResult:
        try:
            answer = await self._models.ask(question, timeout_s=self._config.timeout_s)
        except UselessAnswer as error:
            self._end("useless", error.usage, error)
            raise
        except ForedeckError as error:
            self._end(_OUTCOMES.get(type(error), "useless"), reason=error)
            raise
        except asyncio.CancelledError:
            # Where the session was left, `close` has recorded it already, and the store is closed.
            self.close()
            raise
        self._end("answered", answer.usage)
        return answer

    def _end(
        self, outcome: AskedOutcome, usage: ModelUsage | None = None, reason: object = ""
    ) -> None:
        asked, self._open = self._open, None
        if asked is not None:
            self._show("")
            self._ended(asked, outcome, usage, str(reason))

    def close(self) -> None:
        """The answer to the open question is no longer wanted. Called while the store is still
        open."""
        self._end("cancelled")

    @property
    def _model(self) -> ModelName | None:
        if self._config.model is None:
            return None
        provider, _, id = self._config.model.partition("/")
        return ModelName(provider=provider, id=id)

    def why_not(self, price: float, worth: float | None, *, insisted: bool = False) -> str | None:
        """Why a question at this price is not asked now; None where it may be."""
        asked = stored_questions(self._chat.store, self._chat.info.id)
        record = self._chat.newest_record
        rows = () if record is None else record.spent
        session = sum(row.ours * row.price for row in rows) / 1_000_000
        return why_not(asked, self._config, now_ms(), session, price, worth, insisted=insisted)

    def refuse(self, purpose: str, price: float, reason: str) -> None:
        """Keep why a question was not asked. Where that cannot be noted it is not."""
        try:
            asked = self._begin(purpose, "", price, warm=False)
        except StoreError as error:
            log.warning("why a question was not asked is not noted: %s", error)
        else:
            self._ended(asked, "refused", reason=reason)

    def _begin(self, purpose: str, model: str, price: float, *, warm: bool) -> AskedDocument:
        """A question is about to be sent. Raises `StoreError` where that cannot be noted: then it
        must not be."""
        asked = AskedDocument(
            id=asked_id(self._chat.info.id),
            session=self._chat.info.id,
            purpose=purpose,
            call=self._chat.log.newest,
            time_ms=now_ms(),
            model=model,
            warm=warm,
            price=price,
        )
        self._chat.store.commit(Batch(puts=[asked.seal()]))
        return asked

    def _ended(
        self,
        asked: AskedDocument,
        outcome: AskedOutcome,
        usage: ModelUsage | None = None,
        reason: str = "",
    ) -> None:
        """A question has ended. Where that cannot be noted it counts at its expected price."""
        took = {} if usage is None else usage.model_dump()
        ended = asked.model_copy(
            update={"outcome": outcome, "reason": reason, "ended_ms": now_ms(), **took}
        )
        try:
            self._chat.store.commit(Batch(puts=[ended.seal()]))
        except StoreError as error:
            log.warning("what a question took is not noted: %s", error)


def why_not(
    asked: Sequence[AskedDocument],
    caps: AskingSection,
    now_ms: int,
    session: float,
    price: float,
    worth: float | None = None,
    *,
    insisted: bool = False,
) -> str | None:
    """Why a question is not asked now; None where it may be.

    `asked`: all before, oldest first. In dollars: what the agent's calls in the `session` have cost
    so far, the expected `price` of the question, and what an answer is `worth`, None where that is
    not the point. `insisted`: the user knows the price and wants it asked.
    """
    if not insisted and worth is not None and price > worth:
        return f"it would cost {dollars(price)} and save {dollars(worth)}"
    paused = _paused(asked, now_ms)
    if insisted or paused is not None:
        return paused
    recent = [each for each in asked if each.time_ms > now_ms - HOUR_MS and each.outcome in _SENT]
    if len(recent) >= caps.per_hour:
        return f"{len(recent)} questions were asked within the hour"
    spent = sum(map(cost_of, asked))
    if spent + price <= caps.share * session:
        return None
    return (
        f"it would cost {dollars(price)}; questions may cost {caps.share:.0%} of the "
        f"session's {dollars(session)} (asking.share), and have cost {dollars(spent)}"
    )


def _paused(asked: Sequence[AskedDocument], now_ms: int) -> str | None:
    """Why a question waits after failures: for a minute, doubled with each further failure; longer
    where the provider says that it is asked too often."""
    failures = _last_failures(asked)
    if not failures:
        return None
    last = failures[-1]
    first = RATE_LIMIT_PAUSE_MIN if is_rate_limit(last.reason) else 1
    minutes = min(LONGEST_PAUSE_MIN, first * 2 ** min(len(failures) - 1, 10))
    left = (last.ended_ms or last.time_ms) + minutes * MINUTE_MS - now_ms
    if left <= 0:
        return None
    return f"the last question failed ({last.reason}); the next is in {-(-left // MINUTE_MS)} min"


def _last_failures(asked: Sequence[AskedDocument]) -> list[AskedDocument]:
    """The questions since the last answer that failed, oldest first."""
    failures: list[AskedDocument] = []
    for each in reversed(asked):
        if each.outcome == "answered":
            break
        if each.outcome in _FAILURES:
            failures.append(each)
    return failures[::-1]


def is_rate_limit(reason: str) -> bool:
    """Whether a provider has said that it is asked too often."""
    said = reason.lower()
    return any(words in said for words in _RATE_LIMITS)
