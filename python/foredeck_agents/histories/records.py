"""What all readers yield: sessions, and messages in the stored shape.

To be stored, records become exchanges; to be replayed, a `Transcript`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.errors import ForedeckError
from foredeck.model.identity import encode_text
from foredeck.model.messages import answered_by, fingerprint, is_digest
from foredeck_agents.histories.lines import Place

MAX_CALL_ID = 200
"""A longer id of a call is replaced by its hash."""
_SESSION_ID = re.compile(r"[A-Za-z0-9][\w.\-]{0,199}", re.ASCII)
_OURS = re.compile(
    r"(session|chat|system_prompt|turn|member|call|nickname|compaction|forgotten|archived"
    r"|calibration|reasoning):"
)


@dataclass(frozen=True, slots=True)
class HistorySession:
    """A session of which messages follow."""

    id: str
    harness: str
    """`claude-code`, `codex` or `pi`."""
    cwd: str = ""
    parent: str | None = None
    """Session that this one was forked from."""
    started_by: str | None = None
    """Session whose agent started this one."""


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message, or a part of an answer."""

    session: str
    place: Place
    size: int
    """Bytes of its line."""
    message: Message
    entry: str | None = None
    """The agent's own id of the line."""
    group: str | None = None
    """Parts of one answer share it; None for a whole one."""
    file_before: str | None = None
    system: tuple[Message, ...] = ()
    """System messages around an answer's chat, if known."""
    parent: str | None = None
    """Id of the entry before, if ids are unique within a file only."""
    root: str | None = None
    """The session whose messages this file begins with, for copies without id."""
    is_edited: bool = False
    """Changed by its agent before any model saw it: a result shows no file then."""

    @property
    def role(self) -> str:
        """The message's role."""
        return str(self.message.get("role") or "")


Record = HistorySession | HistoryMessage


class Identities:
    """Which messages in the files of all sessions are the same."""

    # A fork, a resumed session and a subagent's file repeat the messages that they go on from.

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()
        self._lines: set[tuple[str, str]] = set()

    def of(self, record: HistoryMessage) -> str:
        """The identity of a message; ask in the file's order."""
        message = dict(record.message)
        time = message.pop("timestamp", None)
        if record.root is not None:
            # Copies have the time of the fork: what is said for the second time is another message.
            said = fingerprint({"root": record.root, **message})
            self._met[said] += 1
            return fingerprint({"said": said, "time": self._met[said]})
        if record.entry is None:
            message["session"] = record.session
        if record.role == "assistant" and message.get("responseId"):
            # The provider's own name of an answer, whatever a copy of it is called.
            return fingerprint({"answer": message["responseId"], "content": message["content"]})
        own = {"entry": record.entry, "parent": record.parent, "time": time}
        return fingerprint({**message, **own})

    def is_repeated(self, record: HistoryMessage) -> bool:
        """Whether the file has had the same line: some have each twice."""
        is_copy = record.root not in (None, record.session)
        if record.entry is None and (is_copy or not record.message.get("timestamp")):
            return False  # what is said twice may be two messages
        # The tool of a result is known once: its call waits for no second one.
        own = {"entry": record.entry, "parent": record.parent, "toolName": None}
        line = record.session, fingerprint({**record.message, **own})
        is_known = line in self._lines
        self._lines.add(line)
        return is_known


def milliseconds(stamp: Any) -> int:
    """Milliseconds since 1970; 0 for no time stamp."""
    if isinstance(stamp, str):
        try:
            return max(0, int(datetime.fromisoformat(stamp).timestamp() * 1000))
        except (ValueError, OverflowError):
            return 0
    is_number = isinstance(stamp, int | float) and not isinstance(stamp, bool)
    return int(stamp) if is_number and 0 <= stamp < 1e15 else 0


def session_id(value: Any) -> str | None:
    """A session's id, unless unfit for stored ids."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None


def tool_call_id(value: Any, session: str, place: Place) -> str:
    """A call's id, made up or replaced if it could mean something else."""
    # What is made up is the same at every reading, so that nothing is stored twice.
    if not isinstance(value, str) or not value:
        return f"{_made_up(session)}{place.line}"
    if len(value) > MAX_CALL_ID or _OURS.match(value) or is_digest(value):
        return f"call-{hashlib.sha256(encode_text(value)).hexdigest()[:32]}"
    return value


def _made_up(session: str) -> str:
    return f"call-{session}-"


def folder(value: Any) -> str:
    """An absolute path without detours; else empty."""
    if not isinstance(value, str) or len(value) > 4096 or "\0" in value:
        return ""
    is_absolute = value.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\\\", value)
    return value if is_absolute and ".." not in re.split(r"[\\/]", value) else ""


# Exchanges: what was said to the agent, its answer, the results of its tools


MAX_RECORDS = 1000
MAX_BYTES = 64 * 1024 * 1024
"""A larger exchange goes on as another."""


@dataclass(slots=True)
class Exchange:
    """One answer with what came before it, and its tools' results."""

    session: str
    before: list[HistoryMessage] = field(default_factory=list)
    answer: list[HistoryMessage] = field(default_factory=list)
    """Parts of the answer, if the session has one."""
    results: list[HistoryMessage] = field(default_factory=list)
    count: int = 0
    size: int = 0
    """Records, and bytes of their lines."""

    def add(self, record: HistoryMessage, among: list[HistoryMessage]) -> None:
        """Appends a record to one of the lists."""
        among.append(record)
        self.count += 1
        self.size += record.size

    @property
    def last(self) -> Place:
        return max(record.place for record in self.records)

    @property
    def records(self) -> list[HistoryMessage]:
        """All that it is made of."""
        return [*self.before, *self.answer, *self.results]

    @property
    def is_full(self) -> bool:
        """Whether it must not grow further."""
        return self.count >= MAX_RECORDS or self.size >= MAX_BYTES

    def message(self) -> Message | None:
        """The whole answer, with what its last part says of it."""
        if not self.answer:
            return None
        if self.answer[0].group is None:
            return self.answer[0].message
        whole: Message = {}
        for part in self.answer:
            whole |= part.message
        blocks = [block for part in self.answer for block in part.message.get("content") or ()]
        whole["content"] = blocks
        if (first := self.answer[0].message.get("timestamp")) is not None:
            whole["timestamp"] = first
        asks = any(isinstance(b, dict) and b.get("type") == "toolCall" for b in blocks)
        whole.setdefault("stopReason", "toolUse" if asks else "stop")
        return whole


def exchanges(records: Iterable[Record]) -> Iterator[HistorySession | Exchange]:
    """Groups records; a session precedes its exchanges.

    Each exchange is one turn. A grown file gives the same ones again, but for the newest.
    """
    open_sessions: dict[str, _Grouping] = {}
    identities = Identities()
    for record in records:
        if isinstance(record, HistorySession):
            open_sessions.setdefault(record.id, _Grouping(record.id))
            yield record
        elif not identities.is_repeated(record):
            yield from open_sessions[record.session].take(record)
    # The session that began first ends last: once it has ended, the whole file has been read.
    for grouping in reversed(open_sessions.values()):
        yield from grouping.close()


class _Grouping:
    def __init__(self, session: str) -> None:
        self._session = session
        self._open = Exchange(session)
        self._next = Exchange(session)
        self._waiting: list[tuple[str, str, str]] = []
        """Unanswered calls: their agent's id, their own, and the tool."""
        self._ids: set[str] = set()

    def take(self, record: HistoryMessage) -> Iterator[Exchange]:
        """Puts a record in its place; yields the exchange that it ends."""
        match record.role:
            case "toolResult":
                self._open.add(self._paired(record), self._open.results)
            case "assistant":
                if self._is_another(record):
                    yield from self._close_open()
                self._open.add(self._with_ids(record), self._open.answer)
            case _:
                is_answered = self._open.answer or self._open.results
                exchange = self._next if is_answered else self._open
                exchange.add(record, exchange.before)
        if self._open.is_full or self._next.is_full:
            yield from self._close_open()

    def _is_another(self, answer: HistoryMessage) -> bool:
        parts = self._open.answer
        if not parts:
            return bool(self._open.results)
        return answer.group is None or parts[-1].group != answer.group

    def _with_ids(self, answer: HistoryMessage) -> HistoryMessage:
        made_up = _made_up(self._session)
        blocks, content = answer.message.get("content"), list[Any]()
        if not isinstance(blocks, list):
            return answer
        for number, block in enumerate(blocks):
            if isinstance(block, dict) and block.get("type") == "toolCall":
                given = own = block["id"]
                if own in self._ids:
                    own = f"{made_up}{answer.place.line}.{number}"
                    block = {**block, "id": own}
                self._ids.add(own)
                given = "" if given.startswith(made_up) else given
                self._waiting.append((given, own, str(block.get("name") or "")))
            content.append(block)
        if content == blocks:
            return answer
        return replace(answer, message={**answer.message, "content": content})

    def _paired(self, result: HistoryMessage) -> HistoryMessage:
        message = result.message
        id = message["toolCallId"]
        given = "" if id.startswith(_made_up(self._session)) else id
        at = answered_by([call for call, *_ in self._waiting], given)
        if at is None:
            return result
        _, own, tool = self._waiting.pop(at)
        named = {"toolCallId": own, "toolName": message.get("toolName") or tool}
        return replace(result, message={**message, **named})

    def close(self) -> Iterator[Exchange]:
        """What is left at the end."""
        yield from self._close_open()
        yield from self._close_open()

    def _close_open(self) -> Iterator[Exchange]:
        closed, self._open, self._next = self._open, self._next, Exchange(self._session)
        self._waiting, self._ids = [], set()
        if closed.count:
            yield closed


# A session to be replayed


class TranscriptError(ForedeckError):
    """A file that is not a recorded session, or not to be read."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message on the branch, with its entry's id."""

    message: Message
    entry: str | None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One model call, which saw the first `seen` messages."""

    seen: int
    time_ms: int
    provider: str
    model: str
    api: str
    identity: str = ""
    branch: int = 0
    """Its branch; 0: the transcript's own."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Compaction:
    """Calls that see `seen` messages or more were shown `summary` and the messages from `kept_from`
    on."""

    seen: int
    kept_from: int
    summary: str


@dataclass(frozen=True, slots=True)
class MessageEdit:
    """Calls that see `seen` messages or more were shown `message` in place of the one at `index`,
    if any."""

    seen: int
    index: int
    message: RecordedMessage | None


@dataclass(frozen=True, slots=True)
class SystemChange:
    """A system message, for calls that see `seen` messages or more."""

    seen: int
    message: Message
    is_whole: bool = False
    """Whether it replaces all before it."""


@dataclass(slots=True)
class Transcript:
    """A recorded session along its last entry's branch."""

    path: Path
    id: str
    cwd: str
    messages: list[RecordedMessage] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    """Compactions at the time, which a replay does not follow."""
    edits: list[MessageEdit] = field(default_factory=list)
    system: list[SystemChange] = field(default_factory=list)
    """System messages, which are none of `messages`."""
    skipped: int = 0
    """Lines that could not be read."""
    lost: dict[str, list[int]] = field(default_factory=dict)

    branches: list[Transcript] = field(default_factory=list)
    """The session along its other branches."""

    def along(self, call: RecordedCall) -> Transcript:
        """The session along a call's branch."""
        return self.branches[call.branch - 1] if call.branch else self

    def answer_to(self, call: RecordedCall) -> Message:
        return self.along(call).messages[call.seen].message

    def edited(self, seen: int) -> list[RecordedMessage | None]:
        """The first `seen` messages as edited by then; None for removed ones."""
        messages: list[RecordedMessage | None] = [*self.messages[:seen]]
        for edit in self.edits:
            if edit.seen <= seen:
                messages[edit.index] = edit.message
        return messages

    def shown_to(self, call: RecordedCall) -> list[RecordedMessage]:
        """Messages shown to a call, without compactions."""
        messages = self.along(call).edited(call.seen)
        return [recorded for recorded in messages if recorded is not None]

    def system_of(self, call: RecordedCall) -> list[Message]:
        """System messages shown to a call."""
        messages: list[Message] = []
        for change in self.along(call).system:
            if change.seen <= call.seen:
                messages = [change.message] if change.is_whole else [*messages, change.message]
        return messages

    @property
    def tool_calls(self) -> int:
        """Tool results on the branch."""
        return sum(1 for r in self.messages if r.message.get("role") == "toolResult")
