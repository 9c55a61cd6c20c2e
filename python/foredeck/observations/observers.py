"""Those who write: a model that is asked, with its answer checked before anybody believes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from foredeck.errors import ForedeckError
from foredeck.model.observations import Mode, ObservedBy, Remark, Work
from foredeck.observations.chunks import Chunk, ChunkRules
from foredeck.observations.excerpt import WallTime, anchors, excerpt, opening, source_text
from foredeck.observations.lease import ObservingFailed
from foredeck.observations.modes import MODES
from foredeck.observations.names import KnownNames, all_of, checked
from foredeck.observations.parsing import ParsedAnswer, parse_answer
from foredeck.observations.prompts import (
    EXAMPLES,
    notes_wanted,
    observer_system,
    observer_text,
    reflector_system,
    reflector_text,
    repair_system,
    repair_text,
    warm_text,
)
from foredeck.observations.texts import TextRules, text_of, zone_of

LARGEST_SHARE = 0.5
"""Of its input, that a reflection should have at most."""
NOTE_SHARE = 8
"""One token of an observation stands for this many of chat, as it is asked for."""
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
    left_out: int = 0
    """Lines of the answer that were no notes."""


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
        notes = notes_wanted(chunk.tokens // NOTE_SHARE)
        # A piece of a message cannot be pointed at in a prompt that shows all of it.
        warm = None
        if chunk.part is None:
            times = anchors(chunk, self.clock)
            warm = warm_text(mode, opening(first), opening(last), times, notes)
        return AskedQuestion(
            work="observe",
            system=observer_system(mode),
            text=observer_text(excerpt(chunk, self.rules, self.clock), notes),
            max_tokens=min(_MOST_ANSWER, max(_LEAST_ANSWER, chunk.tokens // 3)),
            warm=warm,
        )

    async def observe(self, chunk: Chunk, mode: Mode) -> Written:
        """See `Observer`."""
        times = [message.time_ms for message in chunk.messages if message.time_ms]
        rules = self._rules(times, MODES[mode].fields)
        parsed, model = await self._answer(self.question(chunk, mode), rules)
        remarks = checked(parsed.remarks, KnownNames([source_text(chunk)], self.cwd))
        written = self._written(remarks, parsed, model, 0)
        if written.tokens >= chunk.tokens:
            raise ObservingFailed(
                "observe",
                f"The observation is longer ({written.tokens:,} tokens) than what it would stand "
                f"for ({chunk.tokens:,}).",
                retryable=False,
            )
        return written

    async def reflect(self, given: Condensed) -> Written:
        """See `Observer`. An answer of more than half its input is condensed again, twice, more
        strongly each time. One that is shorter than the input counts in the end."""
        known = KnownNames([all_of(remark) for remark in given.remarks])
        doubted = {name for remark in given.remarks for name in remark.unfounded}
        newest = max(given.remarks, key=lambda remark: remark.time_ms)
        # All times in one zone, so that those of the answer are in it, too.
        clock = zone_of(newest, self.clock)
        rules = replace(
            self._rules([remark.time_ms for remark in given.remarks], _all_fields()), clock=clock
        )
        wanted = int(given.tokens * LARGEST_SHARE)
        remarks, tokens = list(given.remarks), given.tokens
        written: Written | None = None
        for attempt in range(_ATTEMPTS):
            shown = [r.model_copy(update={"utc_offset": newest.utc_offset}) for r in remarks]
            asked = AskedQuestion(
                work="reflect",
                system=reflector_system(attempt, tokens, wanted),
                text=reflector_text(text_of(shown, clock)),
                max_tokens=max(wanted * 5 // 4, 1000),
            )
            parsed, model = await self._answer(asked, rules)
            made = self._written(checked(parsed.remarks, known, doubted), parsed, model, attempt)
            if made.tokens < tokens:
                written, remarks, tokens = made, made.remarks, made.tokens
            if tokens <= wanted:
                break
        if written is None:
            raise ObservingFailed(
                "reflect",
                f"The reflection stayed as long as what it condenses ({given.tokens:,} tokens).",
                retryable=False,
            )
        return written

    async def _answer(self, asked: AskedQuestion, rules: TextRules) -> tuple[ParsedAnswer, str]:
        """What a model answers, and its name. Where little of that can be read it is asked once
        more, with its answer and what is wrong with it."""
        reply = await self.ask(asked)
        parsed = _parsed(reply, rules)
        if parsed.is_poor and reply.text.strip():
            text = repair_text(reply.text, parsed.faults)
            try:
                again = await self.ask(
                    AskedQuestion(asked.work, repair_system(), text, asked.max_tokens)
                )
            except ForedeckError:
                # It may not be asked now, or fails: what counts is the first answer.
                again = reply
            parsed = max(parsed, _parsed(again, rules), key=lambda each: len(each.remarks))
        if parsed.is_poor:
            fault = next(iter(parsed.faults), _no_notes(reply))
            raise ObservingFailed(
                asked.work, f"The model's answer is of no use: {fault}.", retryable=True
            )
        return parsed, reply.model

    def _rules(self, times: Sequence[int], fields: Iterable[str]) -> TextRules:
        return TextRules(self.clock, tuple(fields), min(times, default=0), max(times, default=0))

    def _written(
        self, remarks: list[Remark], parsed: ParsedAnswer, model: str, attempt: int
    ) -> Written:
        text = text_of(remarks, self.clock)
        return Written(
            remarks=remarks,
            text=text,
            tokens=self.count(text),
            by="model",
            current_task=parsed.current_task,
            suggestion=parsed.suggestion,
            model=model,
            left_out=len(parsed.faults),
            compression=attempt,
        )


def _parsed(reply: ModelReply, rules: TextRules) -> ParsedAnswer:
    return parse_answer(reply.text, rules, stop=reply.stop, examples=EXAMPLES)


def _no_notes(reply: ModelReply) -> str:
    return "it calls a tool" if reply.calls else "there is no note in it"


def _all_fields() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rules in MODES.values() for name in rules.fields))
