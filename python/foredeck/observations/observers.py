"""Those who write: a model that is asked, with its answer checked before anybody believes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foredeck.model.observations import Mode, ObservedBy, Remark, Work
from foredeck.observations.chunks import Chunk, ChunkRules
from foredeck.observations.excerpt import WallTime, anchors, excerpt, opening, source_text
from foredeck.observations.lease import ObservingFailed
from foredeck.observations.modes import MODES
from foredeck.observations.names import KnownNames, all_of, checked
from foredeck.observations.parsing import ParsedAnswer, parse_answer
from foredeck.observations.prompts import (
    observer_system,
    observer_text,
    reflector_system,
    reflector_text,
    warm_text,
)
from foredeck.observations.texts import Malformed, TextRules, text_of

LARGEST_SHARE = 0.5
"""Of its input, that a reflection should have at most."""
_ATTEMPTS = 3
_LEAST_ANSWER, _MOST_ANSWER = 400, 8000
"""Tokens of an observation's answer."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """What a model is to be asked, in either of two ways: `system` and `text` alone, or `warm` at
    the end of the agent's own last prompt."""

    work: Work
    system: str
    text: str
    max_tokens: int
    warm: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's answer. `calls`: how many tools it wanted to call; `model`: `provider/id`."""

    text: str
    stop: str = "stop"
    calls: int = 0
    model: str = ""


AskModel = Callable[[AskedQuestion], Awaitable[ModelReply]]


@dataclass(frozen=True, slots=True)
class Written:
    """What an observer or reflector has written."""

    remarks: list[Remark]
    text: str
    tokens: int
    by: ObservedBy
    current_task: str = ""
    suggestion: str = ""
    model: str = ""
    compression: int = 0


@dataclass(frozen=True, slots=True)
class Condensed:
    """What is to be condensed: its remarks in their order, and its tokens as it stands now."""

    remarks: Sequence[Remark]
    tokens: int
    current_task: str = ""
    suggestion: str = ""


class Observer(Protocol):
    """Writes observations and reflections. Raises `ObservingFailed`."""

    async def observe(self, chunk: Chunk, mode: Mode) -> Written:
        """What is to be noted of these messages."""
        ...

    async def reflect(self, given: Condensed) -> Written:
        """The same in less."""
        ...


@dataclass(frozen=True, slots=True)
class ModelObserver:
    """Asks a model. `count`: tokens of a text; `cwd`: the folder of the session."""

    ask: AskModel
    count: Callable[[str], int]
    clock: WallTime = field(default_factory=WallTime)
    rules: ChunkRules = field(default_factory=ChunkRules)
    cwd: str = ""

    def question(self, chunk: Chunk, mode: Mode) -> AskedQuestion:
        """What it would ask, for its price to be known before."""
        first, last = chunk.messages[0], chunk.messages[-1]
        # A piece of a message cannot be pointed at in a prompt that shows all of it.
        warm = None
        if chunk.part is None:
            warm = warm_text(mode, opening(first), opening(last), anchors(chunk, self.clock))
        return AskedQuestion(
            work="observe",
            system=observer_system(mode),
            text=observer_text(excerpt(chunk, self.rules, self.clock)),
            max_tokens=min(_MOST_ANSWER, max(_LEAST_ANSWER, chunk.tokens // 3)),
            warm=warm,
        )

    async def observe(self, chunk: Chunk, mode: Mode) -> Written:
        """See `Observer`."""
        reply = await self.ask(self.question(chunk, mode))
        times = [message.time_ms for message in chunk.messages if message.time_ms]
        parsed = _parsed("observe", reply, self._rules(times, MODES[mode].fields))
        remarks = checked(parsed.remarks, KnownNames([source_text(chunk)], self.cwd))
        written = self._written(remarks, parsed, reply, 0)
        if written.tokens >= chunk.tokens:
            raise ObservingFailed(
                "observe",
                f"The observation is longer ({written.tokens:,} tokens) than what it would stand "
                f"for ({chunk.tokens:,}).",
                retryable=False,
            )
        return written

    async def reflect(self, given: Condensed) -> Written:
        """See `Observer`. An answer of more than half its input is asked for again, twice, more
        strongly each time; then the shortest counts that is shorter than the input."""
        known = KnownNames([all_of(remark) for remark in given.remarks])
        doubted = {name for remark in given.remarks for name in remark.unfounded}
        rules = self._rules([remark.time_ms for remark in given.remarks], _all_fields())
        text = reflector_text(text_of(given.remarks, self.clock))
        wanted = int(given.tokens * LARGEST_SHARE)
        shortest: Written | None = None
        tokens = 0
        for attempt in range(_ATTEMPTS):
            system = reflector_system(attempt, tokens, wanted)
            reply = await self.ask(AskedQuestion("reflect", system, text, max(wanted * 2, 1000)))
            parsed = _parsed("reflect", reply, rules)
            remarks = checked(parsed.remarks, known, doubted)
            written = self._written(remarks, parsed, reply, attempt)
            tokens = written.tokens
            if shortest is None or tokens < shortest.tokens:
                shortest = written
            if tokens <= wanted:
                return written
        if shortest is not None and shortest.tokens < given.tokens:
            return shortest
        raise ObservingFailed(
            "reflect",
            f"The reflection stayed as long as what it condenses ({given.tokens:,} tokens).",
            retryable=False,
        )

    def _rules(self, times: Sequence[int], fields: Iterable[str]) -> TextRules:
        return TextRules(self.clock, tuple(fields), min(times, default=0), max(times, default=0))

    def _written(
        self, remarks: list[Remark], parsed: ParsedAnswer, reply: ModelReply, attempt: int
    ) -> Written:
        text = text_of(remarks, self.clock)
        return Written(
            remarks=remarks,
            text=text,
            tokens=self.count(text),
            by="model",
            current_task=parsed.current_task,
            suggestion=parsed.suggestion,
            model=reply.model,
            compression=attempt,
        )


def _parsed(work: Work, reply: ModelReply, rules: TextRules) -> ParsedAnswer:
    if reply.calls:
        raise ObservingFailed(
            work, "The model called a tool in place of an answer.", retryable=True
        )
    try:
        return parse_answer(reply.text, rules, stop=reply.stop)
    except Malformed as error:
        raise ObservingFailed(
            work, f"The model's answer is of no use: {error}", retryable=True
        ) from None


def _all_fields() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rules in MODES.values() for name in rules.fields))
