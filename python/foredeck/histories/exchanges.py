"""Records grouped into exchanges: what was said to the agent, its answer, the tools' results.

Each exchange becomes one turn. How records are grouped depends on nothing that comes later, but
for the newest exchanges of a session, so that a file that has grown gives the same ones again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from foredeck.context.messages.shape import Message
from foredeck.histories.lines import Place
from foredeck.histories.records import HistoryMessage, HistorySession, Record

MAX_RECORDS = 1000
MAX_BYTES = 64 * 1024 * 1024
"""An exchange that grows beyond these is closed, and goes on as another."""


@dataclass(slots=True)
class Exchange:
    """One answer with what came before it, since the answer before, and its tools' results."""

    session: str
    before: list[HistoryMessage] = field(default_factory=list)
    answer: list[HistoryMessage] = field(default_factory=list)
    """The parts of the answer; empty where the session ends before it."""
    results: list[HistoryMessage] = field(default_factory=list)
    count: int = 0
    size: int = 0
    """Records, and bytes of their lines."""

    def add(self, record: HistoryMessage, among: list[HistoryMessage]) -> None:
        """Put a record at the end of one of the three lists."""
        among.append(record)
        self.count += 1
        self.size += record.size

    @property
    def last(self) -> Place:
        """The last line that it is made of."""
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
        """The whole answer: its parts in order, with what the last one says of it."""
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
    """Group records; a session is passed on before its first exchange."""
    open_sessions: dict[str, _Grouping] = {}
    for record in records:
        if isinstance(record, HistorySession):
            open_sessions.setdefault(record.id, _Grouping(record.id))
            yield record
        else:
            yield from open_sessions[record.session].take(record)
    # The session that began first ends last: once it has ended, the whole file has been read.
    for grouping in reversed(open_sessions.values()):
        yield from grouping.close()


class _Grouping:
    """The newest exchange of one session, and what was said since its answer."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._open = Exchange(session)
        self._next = Exchange(session)

    def take(self, record: HistoryMessage) -> Iterator[Exchange]:
        """Put a record in its place; yields the exchange that it closes."""
        match record.role:
            case "toolResult":
                self._open.add(record, self._open.results)
            case "assistant":
                if self._is_another(record):
                    yield from self._close_open()
                self._open.add(record, self._open.answer)
            case _:
                is_answered = self._open.answer or self._open.results
                exchange = self._next if is_answered else self._open
                exchange.add(record, exchange.before)
        if self._open.is_full or self._next.is_full:
            yield from self._close_open()

    def _is_another(self, answer: HistoryMessage) -> bool:
        """Whether a part of an answer begins a new exchange."""
        known = self._open.answer
        if not known:
            return bool(self._open.results)
        return answer.group is None or known[-1].group != answer.group

    def close(self) -> Iterator[Exchange]:
        """What is left at the end."""
        yield from self._close_open()
        yield from self._close_open()

    def _close_open(self) -> Iterator[Exchange]:
        closed, self._open, self._next = self._open, self._next, Exchange(self._session)
        if closed.count:
            yield closed
