"""An observer's jobs: how to ask a model, its terms, and the user's report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from foredeck.context.compactions import SummaryRequest, summary_of
from foredeck.context.messages.transcript import split_turns
from foredeck.context.rebase import later_calls
from foredeck.context.state.chat import Branch
from foredeck.context.state.objects import Objects
from foredeck.engine.asking import SessionAsking
from foredeck.errors import ForedeckError
from foredeck.hosts.host import AskingTerms, CompleteParams, NoModel, NotAsked
from foredeck.model.observations import NotedDocument, ReflectionDocument, Work
from foredeck.observations.chunks import Chunk, Position, SourceMessage, next_chunk
from foredeck.observations.lease import ObservingBusy
from foredeck.observations.observers import (
    NOTE_SHARE,
    AskedQuestion,
    ModelFreeObserver,
    ModelObserver,
    ModelReply,
)
from foredeck.observations.rules import ModeChoice
from foredeck.prices import rates_at

if TYPE_CHECKING:
    from foredeck.engine.observing import ChatBefore, Observing

SUMMARY_CHARS = 8000
"""Longest summary in place of a model's observation."""

NOTHING = "There is nothing to note yet."
ALONE = "foredeck notes down older chat without a model: {reason}."
LATER = "It will cost less once the agent's model has begun to answer."

POLL_S, POLLS = 0.25, 120
"""Interval and number of checks whether a model has begun to answer."""

_NUMBERS = re.compile(r"\$?\d[\d.,]*")
_WORDS: dict[Work, str] = {"observe": "An observation", "reflect": "Condensing older notes"}


@dataclass
class ObservingRun:
    """One job; failures are reported and retried later, never raised."""

    observing: Observing
    asking: SessionAsking
    work: Work
    before: ChatBefore | None = None
    requested: bool = field(init=False)
    """Whether the user asked."""
    against: str = ""
    """Why a price prevented a choice; `price` is in dollars."""
    price: float = 0.0

    def __post_init__(self) -> None:
        self.requested = self.work in self.observing.requested
        self.observing.requested.discard(self.work)

    async def run(self, *, under_way: bool) -> None:
        try:
            questions = await self._questions()
        except ForedeckError as error:
            self._refuse(str(error))
            return
        if self.work == "observe":
            await self._observe(questions, under_way=under_way)
        else:
            await self._reflect(questions)

    async def _observe(self, questions: ModelQuestions | None, *, under_way: bool) -> None:
        observing = self.observing
        if questions is not None:
            questions.insisted = self.requested and observing.at_any_price
            observing.at_any_price = False
            if self.before and self.before.call != observing.chat.log.newest:
                questions.agent = questions.agent._replace(warm=None)
        may_wait = under_way and not self.requested
        is_done = await self._observe_with(questions, may_wait=may_wait)
        may_come = not is_done and self.against == LATER
        if may_come and questions is not None and await questions.wait_until_warm():
            is_done = await self._observe_with(questions, may_wait=False)
        if not is_done and self.against not in ("", LATER):
            self._refuse(self.against, self.price)
        elif not is_done:
            self._report(self.against or NOTHING)

    async def _reflect(self, questions: ModelQuestions | None) -> None:
        observing = self.observing
        observer = self._without_model() if questions is None else self._asking_model(questions)
        messages, window = list(observing.sources.messages()), observing.window
        saving = observing.keeper.reflect(messages, observer, window, asked=self.requested)
        if not await self._finish(saving, questions):
            self._report(NOTHING)

    async def _observe_with(self, questions: ModelQuestions | None, *, may_wait: bool) -> bool:
        """Observes the next chunk; False if nothing was picked, with the price reason in
        `against`."""
        self.against, self.price = "", 0.0
        rules, mode, least = self.observing.settings.rules.chunk, self._mode, self._least
        asking = None if questions is None else self._asking_model(questions)

        def pick(messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
            def is_affordable(chunk: Chunk) -> bool:
                if questions is None or asking is None:
                    return True
                question = asking.question(chunk, mode.mode)
                if may_wait and questions.is_better_later(question):
                    self.against = LATER
                    return False
                return self._is_worth_it(questions, question, chunk, position.messages)

            return next_chunk(messages, position, rules, is_affordable, least=least)

        observer = self._without_model() if asking is None else asking
        saving = self.observing.keeper.observe(self._messages, pick, observer, mode)
        return await self._finish(saving, questions)

    def _is_worth_it(
        self, questions: ModelQuestions, asked: AskedQuestion, chunk: Chunk, first: int
    ) -> bool:
        chat, self.price = self.observing.chat, questions.priced(asked)[0].price
        # Where notes are always wanted, or this is asked for, it need not pay.
        if not self.observing.settings.always and self._least is None:
            chars_sent = sum(chat.branch.plan.chars[first : first + len(chunk.messages)])
            calls = 0 if chat.newest_record is None else chat.log.newest
            sent_tokens, agent = int(chars_sent / questions.alone.rate), questions.agent
            read = rates_at(agent.cost, agent.prompt_tokens)["cacheRead"]
            questions.worth = worth_of(chunk.tokens, sent_tokens, calls, read)
        why = self.asking.why_not(self.price, questions.worth, insisted=questions.insisted)
        self.against = why or ""
        return why is None

    @property
    def _messages(self) -> list[SourceMessage]:
        return list(self.before.messages if self.before else self.observing.sources.messages())

    @property
    def _mode(self) -> ModeChoice:
        return self.before.mode if self.before else self.observing.mode()

    @property
    def _least(self) -> int | None:
        """Least tokens of a chunk; None for the configured ones."""
        return 1 if self.requested or self.before else None

    async def _questions(self) -> ModelQuestions | None:
        """How to ask a model; None if foredeck writes."""
        try:
            return await ModelQuestions.open(self.asking, wanted=self.requested)
        except (NoModel, NotAsked) as error:
            self._record(str(error))
            return None

    def _asking_model(self, questions: ModelQuestions) -> ModelObserver:
        observing = self.observing
        rules, cwd = observing.settings.rules.chunk, observing.objects.info.cwd
        return ModelObserver(questions.ask, observing.tokens, rules=rules, cwd=cwd)

    def _without_model(self) -> ModelFreeObserver:
        observing = self.observing
        summarise = partial(_summary, observing.objects, observing.chat.branch)
        return ModelFreeObserver(summarise, observing.tokens)

    async def _finish(
        self, written: Awaitable[NotedDocument | None], questions: ModelQuestions | None = None
    ) -> bool:
        """Waits for the result and reports it; False if nothing began."""
        observing = self.observing
        threshold = observing.retry_threshold(self.work)
        try:
            noted = await written
        except (NoModel, NotAsked, ObservingBusy) as error:
            # Nothing was spent: the next opportunity is as good.
            self._report(str(error))
            return True
        except ForedeckError as error:
            # As much again has to come before the same is tried once more: what cannot be read is
            # not paid for at every call.
            observing.not_before[self.work] = threshold
            self._report(f"{_WORDS[self.work]} came to nothing: {error}")
            return True
        if noted is None:
            return False
        observing.not_before.pop(self.work, None)
        if questions is None:
            self._say_who_writes()
        else:
            observing.reason = ""
        observing.notes.refresh()
        self._report(_result(noted))
        return True

    def _say_who_writes(self) -> None:
        observing = self.observing
        # The answer to what the user has asked for says it anyway.
        if observing.has_said_alone or self.requested:
            return
        observing.has_said_alone = True
        noted = observing.on_branch.observations
        if not any(each.document.observed_by == "foredeck" for each in noted):
            observing.inbox.notify(ALONE.format(reason=observing.reason))

    def _refuse(self, reason: str, price: float = 0.0) -> None:
        self._record(reason, price)
        insist = " /foredeck observe yes asks all the same."
        may_insist = price and self.work == "observe" and self.requested
        self._report(f"No model is asked: {reason}.{insist if may_insist else ''}")

    def _record(self, reason: str, price: float = 0.0) -> None:
        if _NUMBERS.sub("", reason) != _NUMBERS.sub("", self.observing.reason):
            self.asking.refuse(self.work, price, reason)
        self.observing.reason = reason

    def _report(self, text: str) -> None:
        if text != NOTHING or not self.observing.last:
            self.observing.last = text
        if self.requested:
            self.observing.inbox.notify(text)


def _summary(objects: Objects, branch: Branch, chunk: Chunk) -> str:
    covered = {message.address for message in chunk.messages}
    items = [i for i in branch.plan.items if i.key.address in covered]
    if not items:
        return ""
    first = chunk.messages[0].turn
    turns = split_turns(items, first + (items[0].kind != "user"))
    return summary_of(objects, turns, 0, SummaryRequest("window", SUMMARY_CHARS, 0), None, ()).long


def _result(noted: NotedDocument) -> str:
    by = noted.model or "foredeck itself, without a model"
    more = f" Lines of the answer that were no notes: {noted.left_out}." if noted.left_out else ""
    if isinstance(noted, ReflectionDocument):
        return (
            f"{noted.input_tokens:,} tokens of notes condensed to {noted.tokens:,} by {by}.{more}"
        )
    return (
        f"{noted.covered_tokens:,} tokens of chat noted in {noted.tokens:,} by {by}; "
        f"{noted.mode} work.{more}"
    )


class AskingWay(NamedTuple):
    """A way to ask: its question, and expected price in dollars."""

    question: CompleteParams
    price: float


@dataclass
class ModelQuestions:
    """Asks for observations and reflections.

    `worth`: dollars saved by an answer; `insisted`: at any price.
    """

    asking: SessionAsking
    alone: AskingTerms
    agent: AskingTerms
    """Terms of the agent's model."""
    wanted: bool = False
    insisted: bool = False
    worth: float | None = None

    @classmethod
    async def open(cls, asking: SessionAsking, *, wanted: bool) -> ModelQuestions:
        """Opens on current terms. Raises `NoModel` or `NotAsked`."""
        alone = await asking.terms()
        if (reason := asking.forbidden(alone, wanted=wanted)) is not None:
            raise NotAsked(reason)
        agent = await asking.terms(warm=True) if asking.has_other_model else alone
        return cls(asking, alone, agent, wanted)

    def priced(self, asked: AskedQuestion) -> list[AskingWay]:
        """Ways to ask, cheapest first; on a tie the excerpt."""
        expected = _expected(asked)
        alone = CompleteParams(
            messages=[_message(asked.text)], max_tokens=asked.max_tokens, system=asked.system
        )
        ways = [AskingWay(alone, self.alone.price(alone, expected))]
        if self.agent.warm is not None and (added := self._added(asked)) is not None:
            ways.append(added)
        return sorted(ways, key=lambda way: way.price)

    def is_better_later(self, asked: AskedQuestion) -> bool:
        """Whether it costs less once the agent's prompt is cached."""
        added = self._added(asked)
        return (
            self.agent.warm is None
            and self.agent.keeps
            and added is not None
            and added.price < self.priced(asked)[0].price
        )

    async def wait_until_warm(self) -> bool:
        """Waits until the agent's prompt is cached; returns whether it is."""
        for _ in range(POLLS):
            await asyncio.sleep(POLL_S)
            self.agent = await self.asking.terms(warm=True)
            if self.agent.warm is not None:
                return True
        return False

    def _added(self, asked: AskedQuestion) -> AskingWay | None:
        if asked.warm is None:
            return None
        added = CompleteParams(
            messages=[_message(asked.warm)], max_tokens=asked.max_tokens, warm=self.agent.warm or 1
        )
        return AskingWay(added, self.agent.price(added, _expected(asked)))

    async def ask(self, asked: AskedQuestion) -> ModelReply:
        """Implements `observers.AskModel`. Raises what `SessionAsking.ask` does."""
        answer = await self.asking.ask(
            asked.work,
            self.priced(asked)[0].question,
            worth=None if self.wanted else self.worth,
            output_tokens=_expected(asked),
            wanted=self.wanted,
            insisted=self.insisted,
        )
        name = f"{answer.model.provider}/{answer.model.id}"
        return ModelReply(answer.text, answer.stop, len(answer.calls), name)


def _expected(asked: AskedQuestion) -> int:
    return asked.max_tokens // 3


def _message(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def worth_of(tokens: int, sent: int, calls: int, read: float) -> float:
    """Dollars that later calls save if an observation covers messages.

    `read`: dollars for a million cached tokens.
    """
    leaving = max(0, sent - tokens // NOTE_SHARE)
    return leaving * read / 1e6 * later_calls(calls)
