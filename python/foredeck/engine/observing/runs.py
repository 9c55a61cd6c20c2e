"""The jobs of an observer: who is asked, on which terms, and what the user reads of how it went."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foredeck.context.state.chat import Chat
from foredeck.engine.background.asking import SessionAsking
from foredeck.engine.background.jobs import Happening
from foredeck.engine.observing.questions import ModelQuestions
from foredeck.engine.observing.worth import Covered, worth_of
from foredeck.errors import ForedeckError
from foredeck.hosts.asking import NoModel, NotAsked
from foredeck.model.observations import NotedDocument, ReflectionDocument, Work
from foredeck.observations.chunks import Chunk, ChunkRules, Position, next_chunk
from foredeck.observations.lease import ObservingBusy
from foredeck.observations.messages import SourceMessage
from foredeck.observations.model_free import ModelFreeObserver
from foredeck.observations.modes import ModeChoice
from foredeck.observations.observers import ModelObserver

if TYPE_CHECKING:
    from foredeck.engine.observing.observing import LeavingChat, Observing

NOTHING = "There is nothing to note yet."
ALONE = "foredeck notes down older chat without a model: {reason}."

_NUMBERS = re.compile(r"\$?\d[\d.,]*")


async def observe(
    observing: Observing,
    asking: SessionAsking,
    happened: Happening,
    leaving: LeavingChat | None = None,
) -> None:
    """Observe the next chunk, where it may be and pays; of what is `leaving` however little it is.
    Nothing is raised for what can go wrong: the user reads of it, and it is tried again later."""
    wanted = _take_wish(observing, "observe")
    # The agent goes on meanwhile.
    is_under_way = happened in ("call", "tool") and not wanted
    least = 1 if wanted or leaving else None
    try:
        questions = await _questions(observing, asking, "observe", wanted=wanted)
    except ForedeckError as error:
        _refused(observing, asking, "observe", str(error), wanted=wanted)
        return
    if questions is None:
        await _observe_without_model(observing, least, leaving, wanted=wanted)
        return
    questions.insisted, observing.insists = wanted and observing.insists, False
    if leaving and leaving.call != observing.chat.log.newest:
        questions.agent = replace(questions.agent, warm=None)
    choice = _choice(observing, questions, least, leaving, may_wait=is_under_way)
    is_told = await _observe_by(observing, choice, leaving, wanted=wanted)
    if not is_told and choice.reason == LATER and await questions.wait_until_warm():
        choice = _choice(observing, questions, least, leaving, may_wait=False)
        is_told = await _observe_by(observing, choice, leaving, wanted=wanted)
    if not is_told and choice.reason not in ("", LATER):
        _refused(observing, asking, "observe", choice.reason, choice.price, wanted=wanted)
    elif not is_told:
        _tell(observing, choice.reason or NOTHING, wanted=wanted)


def _choice(
    observing: Observing,
    questions: ModelQuestions,
    least: int | None,
    leaving: LeavingChat | None,
    *,
    may_wait: bool,
) -> ChunkChoice:
    return ChunkChoice(
        chat=observing.chat,
        observer=_asking_model(observing, questions),
        questions=questions,
        mode=leaving.mode if leaving else observing.mode(),
        rules=observing.settings.rules.chunk,
        least=least,
        always=observing.settings.always or least is not None,
        may_wait=may_wait,
    )


def _messages(observing: Observing, leaving: LeavingChat | None) -> list[SourceMessage]:
    return list(leaving.messages if leaving else observing.sources.messages())


async def _observe_by(
    observing: Observing, choice: ChunkChoice, leaving: LeavingChat | None, *, wanted: bool
) -> bool:
    messages = _messages(observing, leaving)
    written = observing.keeper.observe(messages, choice, choice.observer, choice.mode)
    return await _finish(observing, "observe", written, choice.questions, wanted=wanted)


async def _observe_without_model(
    observing: Observing, least: int | None, leaving: LeavingChat | None, *, wanted: bool
) -> None:
    rules = observing.settings.rules.chunk

    def pick(messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
        return next_chunk(messages, position, rules, least=least)

    messages = _messages(observing, leaving)
    mode = leaving.mode if leaving else observing.mode()
    written = observing.keeper.observe(messages, pick, _without_model(observing), mode)
    if not await _finish(observing, "observe", written, wanted=wanted):
        _tell(observing, NOTHING, wanted=wanted)


async def reflect(observing: Observing, asking: SessionAsking) -> None:
    """Condense the oldest of what was noted; as `observe`."""
    wanted = _take_wish(observing, "reflect")
    try:
        questions = await _questions(observing, asking, "reflect", wanted=wanted)
    except ForedeckError as error:
        _refused(observing, asking, "reflect", str(error), wanted=wanted)
        return
    observer = (
        _without_model(observing) if questions is None else _asking_model(observing, questions)
    )
    messages = list(observing.sources.messages())
    written = observing.keeper.reflect(messages, observer, observing.window, asked=wanted)
    if not await _finish(observing, "reflect", written, questions, wanted=wanted):
        _tell(observing, NOTHING, wanted=wanted)


async def _questions(
    observing: Observing, asking: SessionAsking, work: Work, *, wanted: bool
) -> ModelQuestions | None:
    """How to ask a model; None where foredeck is to write by itself, for a reason on record."""
    try:
        return await ModelQuestions.open(asking, wanted=wanted)
    except (NoModel, NotAsked) as error:
        _record(observing, asking, work, str(error))
        return None


def _asking_model(observing: Observing, questions: ModelQuestions) -> ModelObserver:
    return ModelObserver(
        questions.ask,
        observing.tokens,
        rules=observing.settings.rules.chunk,
        cwd=observing.objects.info.cwd,
    )


def _without_model(observing: Observing) -> ModelFreeObserver:
    return ModelFreeObserver(observing.summarise, observing.tokens)


async def _finish(
    observing: Observing,
    work: Work,
    written: Awaitable[NotedDocument | None],
    questions: ModelQuestions | None = None,
    *,
    wanted: bool,
) -> bool:
    """Wait for what is written, and tell what became of it; False where nothing was begun."""
    again = observing.as_much_again(work)
    try:
        noted = await written
    except (NoModel, NotAsked, ObservingBusy) as error:
        # Nothing was spent: the next opportunity is as good.
        _tell(observing, str(error), wanted=wanted)
        return True
    except ForedeckError as error:
        # As much again has to come before the same is tried once more: what cannot be read is not
        # paid for at every call.
        observing.not_before[work] = again
        _tell(observing, f"{_WORDS[work]} came to nothing: {error}", wanted=wanted)
        return True
    if noted is None:
        return False
    observing.not_before.pop(work, None)
    if questions is None:
        _tell_alone(observing, wanted=wanted)
    else:
        observing.reason = ""
    observing.notes.refresh()
    _tell(observing, _told(noted, questions), wanted=wanted)
    return True


def _tell_alone(observing: Observing, *, wanted: bool) -> None:
    """Say once in a session, before its first notes of that kind are read, who writes them."""
    # An answer to a wish says it anyway.
    if observing.is_alone_told or wanted:
        return
    observing.is_alone_told = True
    noted = observing.on_branch.observations
    if not any(each.document.observed_by == "foredeck" for each in noted):
        observing.inbox.notify(ALONE.format(reason=observing.reason))


def _told(noted: NotedDocument, questions: ModelQuestions | None) -> str:
    ways = "" if questions is None else _ways(questions)
    by = noted.model or "foredeck itself, without a model"
    more = f" Lines of the answer that were no notes: {noted.left_out}." if noted.left_out else ""
    if isinstance(noted, ReflectionDocument):
        return (
            f"{noted.input_tokens:,} tokens of notes condensed to {noted.tokens:,} by {by}{ways}."
            f"{more}"
        )
    return (
        f"{noted.covered_tokens:,} tokens of chat noted in {noted.tokens:,} by {by}{ways}; "
        f"{noted.mode} work.{more}"
    )


def _ways(questions: ModelQuestions) -> str:
    """What the ways to ask would have cost, and which was taken."""
    named = [(("last prompt" if way.is_warm else "excerpt"), way.price) for way in questions.ways]
    if not named:
        return ""
    (taken, price), *others = named
    beside = "".join(f", {other} ${dearer:.4f}" for other, dearer in others)
    return f" (asked with the {taken}, expected ${price:.4f}{beside})"


def _refused(
    observing: Observing,
    asking: SessionAsking,
    work: Work,
    reason: str,
    price: float = 0.0,
    *,
    wanted: bool,
) -> None:
    """No model is asked, and nothing is written without one."""
    _record(observing, asking, work, reason, price)
    insist = " /foredeck observe yes asks all the same." if price and work == "observe" else ""
    _tell(observing, f"No model is asked: {reason}.{insist if wanted else ''}", wanted=wanted)


def _record(
    observing: Observing, asking: SessionAsking, work: Work, reason: str, price: float = 0.0
) -> None:
    """Keep a reason with the session, once as long as it is the same but for its numbers."""
    if _NUMBERS.sub("", reason) != _NUMBERS.sub("", observing.reason):
        asking.meter.refuse(work, "", price, reason)
    observing.reason = reason


def _tell(observing: Observing, text: str, *, wanted: bool) -> None:
    if text != NOTHING or not observing.last:
        observing.last = text
    if wanted:
        observing.inbox.notify(text)


def _take_wish(observing: Observing, work: Work) -> bool:
    wanted = work in observing.wishes
    observing.wishes.discard(work)
    return wanted


_WORDS: dict[Work, str] = {"observe": "An observation", "reflect": "Condensing older notes"}


LATER = "It will cost less once the agent's model has begun to answer."


@dataclass
class ChunkChoice:
    """Picks for an `ObservationKeeper`, on the current terms.

    `least`: tokens, None for the configured ones. `always`: also where it does not pay.
    `may_wait`: the agent's model is about to answer, and there will be another opportunity.
    `reason`: why nothing was picked, where a price was against it; `price` is that.
    """

    chat: Chat
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
        meter = questions.asking.meter
        why = meter.why_not(way.price, questions.worth, insisted=questions.insisted)
        self.reason = why or ""
        return why is None

    def _covered(self, chunk: Chunk, position: Position) -> Covered:
        chars = self.chat.branch.plan.chars
        first = position.messages
        sent = sum(chars[first : first + len(chunk.messages)])
        record = self.chat.newest_record
        calls = 0 if record is None else self.chat.log.newest
        return Covered(chunk.tokens, int(sent / self.questions.alone.rate), calls)
