"""The conversation as an observer sees it: which messages come next, and how they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from difflib import SequenceMatcher
from typing import Any

from foredeck.model.figures import cut, shortened
from foredeck.model.messages import CallOrResult, MessageKind, are_answered, strings_in
from foredeck.model.names import names_in
from foredeck.model.observations import MessagePart
from foredeck.model.quoting import block, one_line, word
from foredeck.sources.tool_calls import Edit, edits_of, path_argument, written_texts

CHARS_PER_TOKEN = 4
"""Only for cutting messages into parts."""

REQUEST_CHARS = 1000
"""Of the request that a chunk serves."""


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A tool call inside an answer. `shown`: its arguments in short."""

    id: str
    tool: str
    shown: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file that it concerns; empty for none."""
        return path_argument(self.arguments) or ""

    @property
    def texts(self) -> list[str]:
        """All texts of its arguments, in order."""
        return list(strings_in(self.arguments))


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A host message, in branch order.

    `tokens`: of the whole message. `is_ours`: hidden from observers.
    """

    address: str
    kind: MessageKind
    text: str = ""
    tokens: int = 0
    time_ms: int = 0
    turn: int = 0
    calls: tuple[SourceCall, ...] = ()
    call_id: str = ""
    """Result: the call that it answers."""
    tool: str = ""
    shown: str = ""
    """Result: the call's arguments in short."""
    failed: bool = False
    unsent: bool = False
    """Aborted or failed, so not sent."""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How long a chunk is, in tokens.

    `most`: shown to an observer; `result`: shown of each result; `calls`: share for what calls
    write.
    """

    least: int = 6000
    most: int = 24_000
    result: int = 150
    calls: float = 0.4


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive messages to observe at once.

    `part`: the observed piece of an overlong first message.
    """

    messages: tuple[SourceMessage, ...]
    part: MessagePart | None
    tokens: int
    request: str = ""
    task: str = ""

    @property
    def covers(self) -> list[str]:
        whole = self.messages
        if self.part is not None and self.part.end < self.part.length:
            whole = tuple(m for m in whole if m.address != self.part.address)
        return [message.address for message in whole]

    def text_of(self, message: SourceMessage) -> str:
        """The observed text of a message."""
        part = self.part
        if part is None or part.address != message.address:
            return message.text
        return message.text[part.start : part.end]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a branch is observed: whole messages, and characters of the next."""

    messages: int = 0
    chars: int = 0


def pending_tokens(messages: Sequence[SourceMessage], position: Position) -> int:
    """Unobserved tokens."""
    rest = tokens_of(messages[position.messages :])
    if not position.chars or position.messages >= len(messages):
        return rest
    first = messages[position.messages]
    return rest - first.tokens * position.chars // max(1, len(first.text))


def shown_tokens(message: SourceMessage, rules: ChunkRules) -> int:
    """Tokens of a message as an observer sees it."""
    if message.is_ours or message.unsent or message.kind == "opaque":
        return 0
    return min(message.tokens, rules.result) if message.kind == "result" else message.tokens


def tokens_of(messages: Iterable[SourceMessage]) -> int:
    return sum(message.tokens for message in messages)


def ends_of_batches(messages: Sequence[CallOrResult]) -> list[int]:
    """Indexes where a chunk may end: all calls before have results."""
    # So a question stays with its answer, and a call with its result.
    ends: list[int] = []
    for index, is_answered in enumerate(are_answered(messages)):
        follows = messages[index + 1].kind if index + 1 < len(messages) else "assistant"
        if is_answered and messages[index].kind in ("assistant", "result") and follows != "result":
            ends.append(index + 1)
    return ends


def next_chunk(
    messages: Sequence[SourceMessage],
    position: Position,
    rules: ChunkRules,
    is_affordable: Callable[[Chunk], bool] = lambda _chunk: True,
    *,
    least: int | None = None,
) -> Chunk | None:
    """The longest allowed chunk of the oldest unobserved messages, if any.

    `least` replaces `rules.least`. An unaffordable chunk waits, and grows.
    """
    if position.messages >= len(messages):
        return None
    chunk = _part(messages, position, rules) or _whole_messages(messages, position, rules)
    if chunk is None:
        return None
    chunk = replace(chunk, request=_request(messages[: position.messages], chunk))
    minimum = rules.least if least is None else least
    is_long_enough = chunk.tokens >= minimum or chunk.part is not None
    return chunk if is_long_enough and is_affordable(chunk) else None


def _request(before: Sequence[SourceMessage], chunk: Chunk) -> str:
    """The user's last request, unless the chunk has one."""
    if any(message.kind == "user" for message in chunk.messages):
        return ""
    requests = (message.text for message in reversed(before) if message.kind == "user")
    return shortened(next(requests, ""), REQUEST_CHARS)


def _whole_messages(
    messages: Sequence[SourceMessage], position: Position, rules: ChunkRules
) -> Chunk | None:
    # A batch that is longer by itself than an observer may be shown is taken whole: of results it
    # sees a little, and longer texts are cut into parts. One of these ends the span before it.
    start, end = position.messages, None
    for candidate in _ends(messages, start, rules):
        size = sum(shown_tokens(m, rules) for m in messages[start:candidate])
        if end is not None and size > rules.most:
            break
        end = candidate
    if end is None:
        return None
    selection = tuple(messages[start:end])
    return Chunk(selection, None, tokens_of(selection))


def _ends(messages: Sequence[SourceMessage], start: int, rules: ChunkRules) -> list[int]:
    """Where a chunk from `start` may end: never after an unfinished message."""
    # Also before a message that is cut into parts: the calls are in that message, so none is
    # separated from its result.
    ends = [end for end in ends_of_batches(messages) if end > start]
    last = ends[-1] if ends else start
    huge = next((i for i in range(start + 1, last) if _is_huge(messages[i], rules)), None)
    return ends if huge is None else [*(end for end in ends if end < huge), huge]


def _part(messages: Sequence[SourceMessage], position: Position, rules: ChunkRules) -> Chunk | None:
    start, message = position.messages, messages[position.messages]
    ends = _ends(messages, start, rules)
    if not _is_huge(message, rules) or not ends:
        return None
    length = len(message.text)
    end = min(length, position.chars + _part_chars(message, rules))
    part = MessagePart(address=message.address, start=position.chars, end=end, length=length)
    tokens = message.tokens * (end - position.chars) // max(1, length)
    if end < length:
        return Chunk((message,), part, tokens)
    rest = tuple(messages[start + 1 : ends[0]])
    return Chunk((message, *rest), part, tokens + tokens_of(rest))


def _is_huge(message: SourceMessage, rules: ChunkRules) -> bool:
    return shown_tokens(message, rules) > rules.most and len(message.text) > _part_chars(
        message, rules
    )


def _part_chars(message: SourceMessage, rules: ChunkRules) -> int:
    rate = len(message.text) / message.tokens if message.tokens else CHARS_PER_TOKEN
    return max(1, int(rules.most * rate))


# A chunk as an observer reads it: quoted, dated, bounded


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


def sources_of(chunk: Chunk) -> Iterator[str]:
    """The texts in which names must occur to be believed."""
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
