"""Asks a model for a session: price, permission, and answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from foredeck.accounting.figure import cost_of, stored_questions
from foredeck.config.sections import AskingSection
from foredeck.context.state.chat import Chat
from foredeck.errors import ForedeckError, StoreError
from foredeck.hosts.host import (
    AskCancelled,
    AskingTerms,
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
    dollars,
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
"""Shown to the user, by purpose."""

_OUTCOMES: dict[type[ForedeckError], AskedOutcome] = {
    AskTimedOut: "timed_out",
    AskCancelled: "cancelled",
    NoModel: "refused",
    NotAsked: "refused",
}


NOT_KEPT = "the provider no longer has the agent's last prompt in its cache"


class SessionAsking:
    """Asks for one session within the user's limits, one question at a time."""

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
        """Whether the model asked differs from the agent's."""
        return self._config.model is not None

    async def terms(self, *, warm: bool = False) -> AskingTerms:
        """Terms of the configured model, or of the current one for a `warm` question. Raises
        `NoModel`."""
        offer = await self._models.offered(None if warm else self._model)
        if offer.model is None:
            raise NoModel(offer.reason or "there is no model to ask")
        newest = self._chat.newest_record
        return AskingTerms.of(offer, None if newest is None else newest.stats)

    def forbidden(self, terms: AskingTerms, *, wanted: bool) -> str | None:
        """Why this model may never be asked; None if it may."""
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
        """Asks one question, and records it.

        `worth`: dollars that an answer saves; `insisted`: at any price. Raises `NotAsked` or
        `NoModel` if nothing was sent.
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
        is_wanted = wanted or self._config.single_slot or None
        model = None if warm else question.model or self._model
        settled = terms.with_room(question).model_copy(update={"model": model, "wanted": is_wanted})
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
        document, self._open = self._open, None
        if document is not None:
            self._show("")
            self._ended(document, outcome, usage, str(reason))

    def close(self) -> None:
        """Cancels the open question, while the store is open."""
        self._end("cancelled")

    @property
    def _model(self) -> ModelName | None:
        if self._config.model is None:
            return None
        provider, _, id = self._config.model.partition("/")
        return ModelName(provider=provider, id=id)

    def why_not(self, price: float, worth: float | None, *, insisted: bool = False) -> str | None:
        """Why a question at this price is not asked now; None if it may be."""
        questions = stored_questions(self._chat.store, self._chat.info.id)
        record = self._chat.newest_record
        rows = () if record is None else record.spent
        session = sum(row.ours * row.price for row in rows) / 1_000_000
        return why_not(questions, self._config, now_ms(), session, price, worth, insisted=insisted)

    def refuse(self, purpose: str, price: float, reason: str) -> None:
        """Records why a question was not asked, if possible."""
        try:
            document = self._begin(purpose, "", price, warm=False)
        except StoreError as error:
            log.warning("why a question was not asked is not noted: %s", error)
        else:
            self._ended(document, "refused", reason=reason)

    def _begin(self, purpose: str, model: str, price: float, *, warm: bool) -> AskedDocument:
        document = AskedDocument(
            id=asked_id(self._chat.info.id),
            session=self._chat.info.id,
            purpose=purpose,
            call=self._chat.log.newest,
            time_ms=now_ms(),
            model=model,
            warm=warm,
            price=price,
        )
        self._chat.store.commit(Batch(puts=[document.seal()]))
        return document

    def _ended(
        self,
        asked: AskedDocument,
        outcome: AskedOutcome,
        usage: ModelUsage | None = None,
        reason: str = "",
    ) -> None:
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
    """Why a question is not asked now; None if it may be.

    `asked`: earlier questions, oldest first; `session`, `price` and `worth` in dollars.
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
    """Why a question waits after failures: a minute, doubled with each; longer at a rate limit."""
    failures = _last_failures(asked)
    if not failures:
        return None
    last = failures[-1]
    first = RATE_LIMIT_PAUSE_MIN if is_rate_limit(last.reason) else 1
    minutes = min(LONGEST_PAUSE_MIN, first * 2 ** min(len(failures) - 1, 10))
    wait_ms = (last.ended_ms or last.time_ms) + minutes * MINUTE_MS - now_ms
    if wait_ms <= 0:
        return None
    return (
        f"the last question failed ({last.reason}); the next is in {-(-wait_ms // MINUTE_MS)} min"
    )


def _last_failures(asked: Sequence[AskedDocument]) -> list[AskedDocument]:
    failures: list[AskedDocument] = []
    for each in reversed(asked):
        if each.outcome == "answered":
            break
        if each.outcome in _FAILURES:
            failures.append(each)
    return failures[::-1]


def is_rate_limit(reason: str) -> bool:
    """Whether a provider refuses for too many requests."""
    text = reason.lower()
    return any(words in text for words in _RATE_LIMITS)
