"""The questions of a session: counted before they are sent, and again when they have ended."""

from __future__ import annotations

import logging
from collections.abc import Callable

from foredeck.accounting.asked import AskedAccount, asked_account, stored_questions
from foredeck.context.state.session import Session
from foredeck.engine.background.limits import Caps, Spending, why_not
from foredeck.errors import StoreError
from foredeck.hosts.asking import ModelUsage
from foredeck.model.asked import AskedDocument, AskedOutcome, asked_id
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch

log = logging.getLogger(__name__)


class Meter:
    """Keeps the questions of one session. `clock` gives the time in milliseconds."""

    def __init__(self, session: Session, caps: Caps, clock: Callable[[], int] = now_ms) -> None:
        self._session = session
        self._caps = caps
        self._clock = clock

    @property
    def account(self) -> AskedAccount:
        """What all questions of the session took."""
        return asked_account(stored_questions(self._session.store, self._session.id))

    @property
    def session_cost(self) -> float:
        """What the agent's prompts have cost so far, in dollars."""
        record = self._session.newest_record
        rows = () if record is None else record.spent or ()
        return sum(row.ours * row.price for row in rows) / 1_000_000

    def why_not(self, price: float, worth: float | None) -> str | None:
        """Why a question at this price is not asked now; None where it may be."""
        asked = stored_questions(self._session.store, self._session.id)
        return why_not(asked, Spending(self.session_cost, price, worth), self._caps, self._clock())

    def begin(self, purpose: str, model: str, price: float, *, warm: bool) -> AskedDocument:
        """A question is about to be sent. Raises `StoreError` where that cannot be noted: then it
        must not be."""
        asked = AskedDocument(
            id=asked_id(self._session.id),
            session=self._session.id,
            purpose=purpose,
            call=self._session.log.newest,
            time_ms=self._clock(),
            model=model,
            warm=warm,
            price=price,
        )
        self._session.store.commit(Batch(puts=[asked.seal()]))
        return asked

    def refuse(self, purpose: str, model: str, price: float, reason: str) -> None:
        """Keep why a question was not asked. Where that cannot be noted it is not."""
        try:
            asked = self.begin(purpose, model, price, warm=False)
        except StoreError as error:
            log.warning("why a question was not asked is not noted: %s", error)
        else:
            self.end(asked, "refused", reason=reason)

    def end(
        self,
        asked: AskedDocument,
        outcome: AskedOutcome,
        usage: ModelUsage | None = None,
        reason: str = "",
    ) -> None:
        """A question has ended. Where that cannot be noted it counts at its expected price."""
        took = {} if usage is None else usage.model_dump()
        ended = asked.model_copy(
            update={"outcome": outcome, "reason": reason, "ended_ms": self._clock(), **took}
        )
        try:
            self._session.store.commit(Batch(puts=[ended.seal()]))
        except StoreError as error:
            log.warning("what a question took is not noted: %s", error)
