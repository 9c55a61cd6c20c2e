"""Writers of notes: a model, with its answer checked, or foredeck itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from foredeck.errors import ForedeckError
from foredeck.model.figures import cut
from foredeck.model.names import files_in, lines_in, names_in
from foredeck.model.observations import Mode, ObservedBy, Priority, Remark, Work
from foredeck.observations.chunks import (
    Chunk,
    ChunkRules,
    WallTime,
    anchors,
    excerpt,
    opening,
    sources_of,
)
from foredeck.observations.lease import ObservingFailed
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
from foredeck.observations.rules import ALL_FIELDS, MODES
from foredeck.observations.texts import MOST_CHARS, NotesReader, TextRules, text_of, zone_of

LARGEST_SHARE = 0.5
"""Of a reflection's input."""
NOTE_SHARE = 8
"""Chat tokens per token of notes."""
_ATTEMPTS = 3
_LEAST_ANSWER, _MOST_ANSWER = 400, 8000
"""Tokens of an observation's answer."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question alone, or `warm` behind the agent's last prompt."""

    work: Work
    system: str
    text: str
    max_tokens: int
    warm: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's answer; `calls`: attempted tool calls."""

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
    """Remarks to condense, in order, with their tokens."""

    remarks: Sequence[Remark]
    tokens: int
    current_task: str = ""
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class ModelObserver:
    """Asks a model. `count`: tokens of a text; `cwd`: the session's folder."""

    ask: AskModel
    count: Callable[[str], int]
    clock: WallTime = field(default_factory=WallTime)
    rules: ChunkRules = field(default_factory=ChunkRules)
    cwd: str = ""

    def question(self, chunk: Chunk, mode: Mode) -> AskedQuestion:
        """The question, for its price."""
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
        times = [message.time_ms for message in chunk.messages if message.time_ms]
        rules = self._rules(times, MODES[mode].fields)
        parsed, model = await self._answer(self.question(chunk, mode), rules)
        remarks = checked(parsed.remarks, KnownNames(sources_of(chunk), self.cwd))
        output = self._written(remarks, parsed, model, 0)
        if output.tokens >= chunk.tokens:
            raise ObservingFailed(
                f"The observation is longer ({output.tokens:,} tokens) than the chat that it "
                f"would replace ({chunk.tokens:,})."
            )
        return output

    async def reflect(self, given: Condensed) -> Written:
        # An answer of more than half its input is condensed again, twice, more strongly each time.
        # One that is shorter than the input counts in the end.
        source_names = KnownNames([all_of(remark) for remark in given.remarks])
        doubted = {name for remark in given.remarks for name in remark.unfounded}
        newest = max(given.remarks, key=lambda remark: remark.time_ms)
        # All times in one zone, so that those of the answer are in it, too.
        clock = zone_of(newest, self.clock)
        times = [remark.time_ms for remark in given.remarks]
        rules = replace(self._rules(times, ALL_FIELDS), clock=clock)
        target = int(given.tokens * LARGEST_SHARE)
        remarks, tokens = list(given.remarks), given.tokens
        best: Written | None = None
        for attempt in range(_ATTEMPTS):
            zoned = [r.model_copy(update={"utc_offset": newest.utc_offset}) for r in remarks]
            question = AskedQuestion(
                work="reflect",
                system=reflector_system(attempt, tokens, target),
                text=reflector_text(text_of(zoned, clock)),
                max_tokens=max(target * 5 // 4, 1000),
            )
            parsed, model = await self._answer(question, rules)
            output = self._written(
                checked(parsed.remarks, source_names, doubted), parsed, model, attempt
            )
            if output.tokens < tokens:
                best, remarks, tokens = output, output.remarks, output.tokens
            if tokens <= target:
                break
        if best is None:
            raise ObservingFailed(
                f"The reflection stayed as long as what it condenses ({given.tokens:,} tokens)."
            )
        return best

    async def _answer(self, asked: AskedQuestion, rules: TextRules) -> tuple[ParsedAnswer, str]:
        # Where little of it can be read, it is asked once more, with its answer and what is wrong.
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
            none = "it calls a tool" if reply.calls else "there is no note in it"
            fault = next(iter(parsed.faults), none)
            raise ObservingFailed(f"The model's answer is of no use: {fault}.")
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


_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r".*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$", re.MULTILINE)
_NAMES = r"(observations?|notes|current[-_ ]?task|suggested[-_ ]?(?:response|next|reply))"
_TAG = re.compile(rf"[*`]*<\s*(/?)\s*{_NAMES}\s*/?>[*`]*", re.IGNORECASE)
_HEADING = re.compile(
    # With an empty group, so that the name is the second one, as in a tag.
    rf"^[ \t]*(?:#+ *|\*\*)(){_NAMES}:?(?:\*\*)?:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_TASK_CHARS, _SUGGESTION_CHARS = 1200, 600


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer's contents, with a sentence per rejected line."""

    remarks: list[Remark]
    current_task: str = ""
    suggestion: str = ""
    faults: list[str] = field(default_factory=list)

    @property
    def is_poor(self) -> bool:
        """Whether little was readable."""
        return not self.remarks or len(self.faults) > len(self.remarks)


def parse_answer(
    text: str, rules: TextRules, *, stop: str = "stop", examples: Collection[str] = ()
) -> ParsedAnswer:
    """The valid part of an answer.

    `stop`: `length` drops a cut last line. `examples`: texts of the question, whose echo is
    dropped.
    """
    # An answer may hold thoughts, fences, bold tags, headings in their place, or talk around it.
    reader = NotesReader(rules)
    texts = {"task": "", "next": ""}
    parts = _parts(_END_OF_THOUGHT.sub("", _THOUGHT.sub("", text)), is_cut=stop == "length")
    has_notes = any(name == "notes" for name, _ in parts)
    for name, part in parts:
        if name in texts:
            texts[name] = texts[name] or ("" if part.strip() in examples else part)
        else:
            # Beside the notes anything may be said; where nothing is marked as notes, all may be.
            reader.read(part, only_whole=has_notes and name != "notes")
    remarks, faults = [], reader.faults
    for remark in reader.remarks:
        if remark.content.partition("\n")[0] in examples:
            faults.append(f'an example is no note: "{remark.content}"')
        elif remark not in remarks:
            remarks.append(remark)
    task, suggestion = _lines(texts["task"], _TASK_CHARS), _lines(texts["next"], _SUGGESTION_CHARS)
    return ParsedAnswer(remarks, task, suggestion, faults)


def _parts(text: str, *, is_cut: bool) -> list[tuple[str, str]]:
    """The text by tags `notes`, `task`, `next`, or "" outside."""
    if is_cut:
        text = text.rpartition("\n")[0]
    text = _FENCE.sub("", text)
    marks = [*_TAG.finditer(text)] or [*_HEADING.finditer(text)]
    sections: list[tuple[str, str]] = []
    name, at = "", 0
    for mark in marks:
        sections.append((name, text[at : mark.start()]))
        section = {"c": "task", "s": "next"}.get(mark[2][0].lower(), "notes")
        name, at = "" if mark[1] else section, mark.end()
    return [*sections, (name, text[at:])]


def _lines(text: str, chars: int) -> str:
    """Non-blank lines, cut to `chars`."""
    lines = (" ".join(line.split()) for line in text.split("\n") if line.strip())
    return cut("\n".join(lines), chars, "...")


# Without a model: the same machinery, fed by a summary of the messages.

Summarise = Callable[[Chunk], str]
"""Summarises a chunk: headings such as `Asked:`, with lines."""

SECTIONS: Mapping[str, tuple[Priority, str]] = {
    "Asked": ("high", "request"),
    "Files": ("medium", "change"),
    "Done": ("medium", "done"),
    "Answers": ("medium", "answer"),
    "Errors": ("high", "error"),
    "Open": ("high", "open"),
}
"""Kinds of remarks by summary section."""
_TURN = re.compile(r"\bturn (\d+)\b")
_ORDER: Mapping[Priority, int] = {"low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class ModelFreeObserver:
    """Writes without a model. `summarise`: of a chunk; `count`: tokens of a text."""

    summarise: Summarise
    count: Callable[[str], int]
    clock: WallTime = field(default_factory=WallTime)

    async def observe(self, chunk: Chunk, mode: Mode) -> Written:  # noqa: ARG002
        """Makes each summary line a remark; raises `ObservingFailed` without any."""
        remarks = summary_remarks(self.summarise(chunk), chunk)
        output = self._written(remarks)
        if not remarks or output.tokens >= chunk.tokens:
            raise ObservingFailed("A summary of these messages would not be shorter.")
        return output

    async def reflect(self, given: Condensed) -> Written:
        """Drops the lowest priorities first, oldest first. Raises `ObservingFailed` if nothing can
        go."""
        remarks = _newest_of(given.remarks)
        remaining = self._within(remarks, int(given.tokens * LARGEST_SHARE))
        output = self._written(remaining)
        if not remaining or output.tokens >= given.tokens:
            raise ObservingFailed("Nothing of it can be left out.")
        return replace(output, current_task=given.current_task, suggestion=given.suggestion)

    def _within(self, remarks: list[Remark], wanted: int) -> list[Remark]:
        sizes = [self.count(text_of([remark], self.clock)) for remark in remarks]
        total, gone = sum(sizes), set[int]()
        for number in sorted(range(len(remarks)), key=lambda n: (_ORDER[remarks[n].priority], n)):
            if total <= wanted:
                break
            gone.add(number)
            total -= sizes[number]
        return [remark for number, remark in enumerate(remarks) if number not in gone]

    def _written(self, remarks: list[Remark]) -> Written:
        text = text_of(remarks, self.clock)
        return Written(remarks, text, self.count(text), "foredeck")


Observer = ModelObserver | ModelFreeObserver
"""Writes observations and reflections. Raises `ObservingFailed`."""


def summary_remarks(summary: str, chunk: Chunk) -> list[Remark]:
    """A summary's lines as remarks, at their turns' times."""
    times: dict[int, int] = {}
    for message in chunk.messages:
        times.setdefault(message.turn, message.time_ms)
    last = max((message.time_ms for message in chunk.messages), default=0)
    remarks: list[Remark] = []
    section: tuple[Priority, str] | None = None
    for line in summary.split("\n"):
        if line.endswith(":") and line[:-1] in SECTIONS:
            section = SECTIONS[line[:-1]]
        elif section and line.startswith("- ") and line[2:].strip():
            text = line[2:].strip()[:MOST_CHARS]
            turn = _TURN.search(text)
            time_ms = times.get(int(turn[1]), last) if turn else last
            remarks.append(
                Remark(
                    time_ms=time_ms,
                    priority=section[0],
                    category=section[1],
                    content=text,
                    files=files_in(text),
                    line_numbers=lines_in(text),
                )
            )
    return sorted(remarks, key=lambda remark: remark.time_ms)


def _newest_of(remarks: Sequence[Remark]) -> list[Remark]:
    last = {(one.category, one.content): number for number, one in enumerate(remarks)}
    return [r for number, r in enumerate(remarks) if last[r.category, r.content] == number]


# Whether the names that an observer writes are in its sources: what it has made up is marked.


class KnownNames:
    """Names in sources, whatever their case."""

    def __init__(self, texts: Iterable[str], cwd: str = "") -> None:
        """`cwd`: the folder of relative paths."""
        self._text = "\n".join(texts).casefold()
        self._cwd = cwd.rstrip("/").casefold() + "/" if cwd else ""

    def __contains__(self, name: str) -> bool:
        return any(form in self._text for form in self._forms(name.casefold()))

    def _forms(self, name: str) -> Iterator[str]:
        yield name
        if self._cwd and name.startswith(self._cwd):
            yield name[len(self._cwd) :]
        yield name.removeprefix("./").rstrip("/")
        if "." in name and "/" not in name:
            # `User.validate` may be defined as `validate` in `class User`: both must be there.
            parts = name.split(".")
            if all(part in self._text for part in parts):
                yield parts[-1]


def unfounded(text: str, known: KnownNames, doubted: Collection[str] = ()) -> list[str]:
    """Names that no source has, or that are `doubted` there."""
    return [name for name in names_in(text) if name in doubted or name not in known]


def checked(
    remarks: Sequence[Remark], known: KnownNames, doubted: Collection[str] = ()
) -> list[Remark]:
    return [
        remark.model_copy(update={"unfounded": unfounded(all_of(remark), known, doubted)})
        for remark in remarks
    ]


def all_of(remark: Remark) -> str:
    """All text of a remark."""
    more = (text for texts in remark.mode_specific.values() for text in texts)
    return "\n".join([remark.content, *more])


def dropped(before: Iterable[str], after: str) -> list[str]:
    """Names in the old texts that the new one lacks."""
    new_names = KnownNames([after])
    return list(dict.fromkeys(n for text in before for n in names_in(text) if n not in new_names))
