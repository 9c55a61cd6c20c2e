"""Observations that no model writes: the same machinery, fed by a summary of the messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from foredeck.model.names import files_in, lines_in
from foredeck.model.observations import Mode, Priority, Remark
from foredeck.observations.chunks import Chunk
from foredeck.observations.excerpt import WallTime
from foredeck.observations.lease import ObservingFailed
from foredeck.observations.observers import LARGEST_SHARE, Condensed, Written
from foredeck.observations.texts import MOST_CHARS, text_of

Summarise = Callable[[Chunk], str]
"""A summary of a chunk: headings such as `Asked:`, and under each lines that begin with `- `."""

SECTIONS: Mapping[str, tuple[Priority, str]] = {
    "Asked": ("high", "request"),
    "Files": ("medium", "change"),
    "Done": ("medium", "done"),
    "Answers": ("medium", "answer"),
    "Errors": ("high", "error"),
    "Open": ("high", "open"),
}
"""What remarks of each section of a summary are."""
_TURN = re.compile(r"\bturn (\d+)\b")
_ORDER: Mapping[Priority, int] = {"low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class ModelFreeObserver:
    """Writes without a model. `summarise`: of a chunk; `count`: tokens of a text."""

    summarise: Summarise
    count: Callable[[str], int]
    clock: WallTime = field(default_factory=WallTime)

    async def observe(self, chunk: Chunk, mode: Mode) -> Written:  # noqa: ARG002
        """See `observers.Observer`: each line of the summary is a remark. Raises `ObservingFailed`
        where there is nothing to say."""
        remarks = summary_remarks(self.summarise(chunk), chunk)
        written = self._written(remarks)
        if not remarks or written.tokens >= chunk.tokens:
            raise ObservingFailed("A summary of these messages would not be shorter.")
        return written

    async def reflect(self, given: Condensed) -> Written:
        """See `observers.Observer`: remarks of the least priority are left out first, the oldest of
        them first. Raises `ObservingFailed` where none can be left out."""
        remarks = _newest_of(given.remarks)
        left = self._within(remarks, int(given.tokens * LARGEST_SHARE))
        written = self._written(left)
        if not left or written.tokens >= given.tokens:
            raise ObservingFailed("Nothing of it can be left out.")
        return replace(written, current_task=given.current_task, suggestion=given.suggestion)

    def _within(self, remarks: list[Remark], wanted: int) -> list[Remark]:
        """As many as have this many tokens."""
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


def summary_remarks(summary: str, chunk: Chunk) -> list[Remark]:
    """The lines of a summary as remarks, each at the time of the turn that it names, in the order
    of these times; lines under no heading are left out."""
    times: dict[int, int] = {}
    for message in chunk.messages:
        times.setdefault(message.turn, message.time_ms)
    last = max((message.time_ms for message in chunk.messages), default=0)
    found: list[Remark] = []
    section: tuple[Priority, str] | None = None
    for line in summary.split("\n"):
        if line.endswith(":") and line[:-1] in SECTIONS:
            section = SECTIONS[line[:-1]]
        elif section and line.startswith("- ") and line[2:].strip():
            text = line[2:].strip()[:MOST_CHARS]
            turn = _TURN.search(text)
            time_ms = times.get(int(turn[1]), last) if turn else last
            found.append(
                Remark(
                    time_ms=time_ms,
                    priority=section[0],
                    category=section[1],
                    content=text,
                    files=files_in(text),
                    line_numbers=lines_in(text),
                )
            )
    return sorted(found, key=lambda remark: remark.time_ms)


def _said(remark: Remark) -> tuple[str, str]:
    return remark.category, remark.content


def _newest_of(remarks: Sequence[Remark]) -> list[Remark]:
    """Of remarks that say the same, the newest, at its place."""
    last = {_said(remark): number for number, remark in enumerate(remarks)}
    return [remark for number, remark in enumerate(remarks) if last[_said(remark)] == number]
