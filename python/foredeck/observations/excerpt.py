"""A chunk's messages for an observer: quoted, dated, bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from difflib import SequenceMatcher

from foredeck.model.figures import cut
from foredeck.model.names import names_in
from foredeck.model.quoting import block, one_line, word
from foredeck.observations.chunks import (
    CHARS_PER_TOKEN,
    Chunk,
    ChunkRules,
    SourceCall,
    SourceMessage,
)
from foredeck.sources.tool_calls import Edit, edits_of, written_texts

_SPEAKERS = {"user": "user", "assistant": "agent", "context": "context"}
_TAGS = re.compile(r"<(?=/?(?:conversation|notes|observations|current-task|suggested-response)\b)")
_BEGINNING = 2 / 3
"""Share of a long result's beginning."""
_CALL_CHARS = 400
_FIRST_WORDS = 60
_LEAST_LINE = 200
"""Characters of a line that survive cuts."""
_LEAST_ROOM = 4000
"""Characters always granted to calls."""
_RECEIPT_CHARS = 400
_ANCHORS, _GAP_MS = 12, 10 * 60_000
_DEFINES = re.compile(
    r"[-+\s]*(?:"
    # The beginnings of definitions in most languages, and of tables.
    r"(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|override"
    r"|declare|pub|unsafe|CREATE|ALTER)(?:\([a-z]+\))?\s+)*"
    r"(?:def|class|function|func|fn|fun|interface|type|struct|enum|trait|impl|module|namespace"
    r"|record|TABLE|INDEX|VIEW)\b"
    # Decorators, and routes as most servers declare them.
    r"|@\w|\w+\.(?:get|post|put|patch|delete|route|command)\("
    # Names that a file gives to others, and constants.
    r"|export\b|[A-Z][A-Z0-9_]{2,}\s*[:=]"
    r")"
)
"""What a reader of a file looks for first."""


@dataclass(frozen=True, slots=True)
class WallTime:
    """Writes times in `zone`; None: this machine's."""

    zone: tzinfo | None = None

    def at(self, time_ms: int) -> datetime:
        """The moment in the zone."""
        moment = datetime.fromtimestamp(time_ms / 1000, self.zone)
        return moment if self.zone else moment.astimezone()

    def date(self, time_ms: int) -> str:
        """`2026-05-03`."""
        return f"{self.at(time_ms):%Y-%m-%d}"

    def time(self, time_ms: int) -> str:
        """`09:15`."""
        return f"{self.at(time_ms):%H:%M}"

    def offset(self, time_ms: int) -> int:
        """The zone's minutes ahead of UTC."""
        ahead = self.at(time_ms).utcoffset()
        return int(ahead.total_seconds()) // 60 if ahead else 0

    def moment(self, time_ms: int) -> str:
        """`2026-05-03 09:15`."""
        return f"{self.at(time_ms):%Y-%m-%d %H:%M}"

    def time_ms(self, date: str, time: str) -> int:
        """Milliseconds of a date and time as written here. Raises `ValueError`."""
        moment = datetime.strptime(f"{date} {time}", "%Y-%m-%d %H:%M").replace(tzinfo=self.zone)
        return int((moment if self.zone else moment.astimezone()).timestamp() * 1000)


def excerpt(chunk: Chunk, rules: ChunkRules, clock: WallTime) -> str:
    """User and agent whole, results' two ends, calls with what they write."""
    visible = list(_shown(chunk))
    lines_of_calls = [[_lines_of(call) for call in message.calls] for message in visible]
    sizes = [_chars(lines) for calls in lines_of_calls for lines in calls]
    budget = int(rules.calls * chunk.tokens * CHARS_PER_TOKEN)
    room = _room(sizes, max(_LEAST_ROOM, budget))
    lines = [*_heading_lines("earlier, the user asked", chunk.request)]
    lines += _heading_lines("noted so far as the task", chunk.task)
    date = ""
    for message, texts in zip(visible, lines_of_calls, strict=True):
        if message.time_ms and (day := clock.date(message.time_ms)) != date:
            date = day
            lines.append(date)
        lines.append(_heading(message, clock))
        # Indented, so that no line of a text can pass for a heading of this frame.
        lines += _quoted(_text(chunk, message, rules))
        for call, text in zip(message.calls, texts, strict=True):
            lines += _shown_call(call, text, room)
    return "\n".join(lines)


def _shown(chunk: Chunk) -> Iterator[SourceMessage]:
    """Visible messages: neither foredeck's own nor receipts."""
    # A short word that a file was written says nothing that its call does not show.
    writes: dict[str, bool] = {}
    for message in chunk.messages:
        writes |= {call.id: bool(written_texts(call.arguments)) for call in message.calls}
        is_receipt = writes.get(message.call_id, False) and len(message.text) <= _RECEIPT_CHARS
        if not (message.is_ours or message.unsent or message.kind == "opaque") and (
            message.failed or not is_receipt
        ):
            yield message


def _heading_lines(heading: str, text: str) -> Iterator[str]:
    if text:
        yield f"{heading}:"
        yield from _quoted(text)


def _shown_call(call: SourceCall, lines: Sequence[str], room: int) -> Iterator[str]:
    """`calls edit src/a.py:` and what it writes, on one line if short."""
    if not lines:
        yield f"  calls {word(call.tool)} {_one_line(call.shown)}".rstrip()
        return
    about = f" {_one_line(call.shown)}" if call.path else ""
    yield f"  calls {word(call.tool)}{about}:"
    selection = telling_lines(lines, room)
    yield from (f"  {line}" for line in _quoted("\n".join(selection)))
    if len(selection) < len(lines):
        yield f"    ({len(lines) - len(selection):,} of {len(lines):,} lines left out)"


def _lines_of(call: SourceCall) -> list[str]:
    """What a call says beyond `shown`: changed lines of an edit, or other texts."""
    edits = edits_of(call.arguments)
    if edits:
        return [line for edit in edits for line in _changed_lines(edit)]
    texts = (text for text in call.texts if " ".join(text.split()) not in call.shown)
    path = call.path
    return [line for text in texts if text != path for line in text.split("\n") if line.strip()]


def _changed_lines(edit: Edit) -> Iterator[str]:
    old, new = edit.old.split("\n"), edit.new.split("\n")
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in old[a:b] if line.strip())
            yield from (f"+ {line}" for line in new[c:d] if line.strip())


def _room(sizes: Sequence[int], budget: int) -> int:
    remaining, rest = budget, sorted(sizes)
    for number, size in enumerate(rest):
        share = remaining // (len(rest) - number)
        if size > share:
            return share
        remaining -= size
    return budget


def telling_lines(lines: Sequence[str], room: int) -> list[str]:
    if _chars(lines) <= room:
        return list(lines)
    earlier: set[str] = set()
    ranks: list[int] = []
    for line in lines:
        names = set(names_in(line)) - earlier
        earlier |= names
        removed = line.startswith("- ")
        ranks.append(3 if removed else 0 if _DEFINES.match(line) else 1 if names else 2)
    numbers: list[int] = []
    # One line may be all that there is.
    longest = max(_LEAST_LINE, room // 4)
    shorter = [line if len(line) <= longest else f"{line[: longest - 3]}..." for line in lines]
    for number in sorted(range(len(lines)), key=lambda n: (ranks[n], n)):
        if len(shorter[number]) < room:
            numbers.append(number)
            room -= len(shorter[number]) + 1
    return [shorter[number] for number in sorted(numbers)]


def _chars(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def source_text(chunk: Chunk) -> str:
    """The text in which names must occur to be believed."""
    return "\n".join(_sources(chunk))


def opening(message: SourceMessage) -> str:
    """A message's beginning, to find it by."""
    text = message.text
    if message.kind == "result" or not text:
        # What a tool has put out may be nothing, or what many others did.
        text = " ".join(
            [message.tool, message.shown, *(f"{c.tool} {c.shown}" for c in message.calls)]
        )
    words = " ".join(one_line(text).split())
    beginning = cut(words, _FIRST_WORDS, "...")
    who = "the user's" if message.kind == "user" else f"the {_speaker(message)}'s"
    return f'{who}, "{_TAGS.sub("< ", beginning)}"'


def _sources(chunk: Chunk) -> Iterator[str]:
    yield from (chunk.request, chunk.task)
    for message in chunk.messages:
        if message.is_ours:
            continue
        yield chunk.text_of(message)
        yield f"{message.tool} {message.shown}"
        for call in message.calls:
            yield "\n".join([call.tool, call.shown, *call.texts])


def anchors(chunk: Chunk, clock: WallTime) -> list[str]:
    timed = [message for message in chunk.messages if message.time_ms]
    dated: list[SourceMessage] = []
    for number, message in enumerate(timed):
        waited = message.time_ms - timed[number - 1].time_ms if number else _GAP_MS
        if waited >= _GAP_MS or message.kind == "user" or message is timed[-1]:
            dated.append(message)
    selection = [*dated[: _ANCHORS - 1], *dated[_ANCHORS - 1 :][-1:]]
    return [f"{clock.moment(message.time_ms)} {opening(message)}" for message in selection]


def _speaker(message: SourceMessage) -> str:
    return _SPEAKERS.get(message.kind, "result")


def _heading(message: SourceMessage, clock: WallTime) -> str:
    time = f"{clock.time(message.time_ms)} " if message.time_ms else ""
    if message.kind != "result":
        return f"{time}{_speaker(message)}:"
    state = "(failed)" if message.failed else ""
    about = filter(None, [word(message.tool), _one_line(message.shown), state])
    return f"{time}result of {' '.join(about)}:"


def _text(chunk: Chunk, message: SourceMessage, rules: ChunkRules) -> str:
    text = chunk.text_of(message)
    return without_middle(text, message, rules) if message.kind == "result" else text


def without_middle(text: str, message: SourceMessage, rules: ChunkRules) -> str:
    """Both ends of a result, with the length of the gap."""
    rate = max(1.0, len(text) / message.tokens) if message.tokens else CHARS_PER_TOKEN
    room = int(rules.result * rate)
    if len(text) <= room:
        return text
    begins = int(room * _BEGINNING)
    ends = room - begins
    return f"{text[:begins]}\n({len(text) - room:,} characters left out)\n{text[-ends:]}"


def _quoted(text: str) -> Iterator[str]:
    # No text can close a tag of the prompt. What hides in a tag goes before the tags do.
    return (f" {_TAGS.sub('< ', line)}" for line in block(text).split("\n") if line.strip())


def _one_line(text: str) -> str:
    return cut(" ".join(_TAGS.sub("< ", one_line(text)).split()), _CALL_CHARS, "...")
