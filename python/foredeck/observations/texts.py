"""Notes as text, and text as notes: one form for answers, prompts, and the user's edits.

    2026-05-03
    - 09:15 high preference: User wants tests in pytest, never unittest
      -> a step, or a field of the mode (`root_cause: ...`)
      (not in the sources: a name that no message has)

Read line by line: a line that is no note is left out with a word on what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta, timezone

from foredeck.errors import ForedeckError
from foredeck.model.figures import MONTHS, cut
from foredeck.model.names import files_in, lines_in
from foredeck.model.observations import Priority, Remark
from foredeck.observations.chunks import WallTime

MOST_REMARKS = 400
MOST_CHARS = 4000
"""Of one remark."""
_SHOWN_CHARS = 80
_LEAST_WORDS = 3
"""Of a note without time and priority."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
_UNFOUNDED = "(not in the sources: "

CATEGORIES = (
    *("request", "question", "preference", "decision", "change", "finding", "error", "test"),
    *("command", "dependency", "config", "review", "blocker"),
)
"""Subjects of notes; others stay as written."""
_OTHER = "note"
"""The category of a note without one."""

_EXACT = re.compile(r"- (\d{2}:\d{2}) (high|medium|low) ([\w-]{1,40}): (\S.*)")
_BULLET = re.compile(r"(?:[-*+\u2022\u2013\u2014]|\d{1,3}[.)])\s+")
_AROUND = r"[\s*_|,;:()\[\]\u2013\u2014-]*"
"""What may surround time and priority."""
_CLOCK = r"(\d{1,2}):(\d{2})(?::\d{2}(?:[.,]\d+)?)?\s*([ap]\.?m\b\.?)?"
_TIME = re.compile(
    rf"(?:(\d{{4}}-\d{{2}}-\d{{2}})[ T])?{_CLOCK}Z?"
    rf"(?:\s*(?:-|\u2013|\u2014|to|until)\s*(?:\d{{4}}-\d{{2}}-\d{{2}}[ T])?{_CLOCK}Z?)?",
    re.IGNORECASE,
)
_PRIORITY = re.compile(
    r"(high|medium|low)\b(?:[ -]priority\b)?|(\U0001f534)|(\U0001f7e1)|(\U0001f7e2)", re.IGNORECASE
)
_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")
_SKIP = re.compile(_AROUND)
_CATEGORY = re.compile(
    r"[*_`(\[]*([A-Za-z][\w-]{0,39})(?: ([A-Za-z][\w-]{0,39}))?[*_`)\]]*"
    r"\s*(?::[*_]*|\||[\u2013\u2014-](?=\s))\s*(\S.*)"
)
_FIELD = re.compile(r"[*_`]*([A-Za-z][a-z_]*)[*_`]*: (\S.*)")
_STEP = re.compile(r"(?:->|=>|\u2192)\s*")

_MONTHS = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_WEEKDAY = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b\.?", re.I
)
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_NAMED_DAY = re.compile(
    r"(?:(?P<d1>\d{1,2})(?:st|nd|rd|th)?\.? )?(?P<month>[a-z]{3,9})\.?"
    r"(?: (?P<d2>\d{1,2})(?:st|nd|rd|th)?)?,? (?P<year>\d{4})"
)


class Malformed(ForedeckError):
    """Says which line is no note, and what is expected."""


@dataclass(frozen=True, slots=True)
class TextRules:
    """How to read notes; `first_ms` and `last_ms` clamp all times."""

    clock: WallTime = field(default_factory=WallTime)
    fields: Collection[str] = ()
    first_ms: int = 0
    last_ms: int = 0


@dataclass(slots=True)
class _Reading:
    """A note being read."""

    time_ms: int
    priority: Priority
    category: str
    lines: list[str]
    fields: dict[str, list[str]] = field(default_factory=dict)
    unfounded: list[str] = field(default_factory=list)

    def remark(self, clock: WallTime) -> Remark:
        content = "\n".join(self.lines)
        all_texts = "\n".join(
            [content, *(text for texts in self.fields.values() for text in texts)]
        )
        return Remark(
            time_ms=self.time_ms,
            utc_offset=clock.offset(self.time_ms),
            priority=self.priority,
            category=self.category,
            content=content,
            files=files_in(all_texts),
            line_numbers=lines_in(all_texts),
            mode_specific=self.fields,
            unfounded=self.unfounded,
        )


def text_of(remarks: Sequence[Remark], clock: WallTime) -> str:
    """Remarks under dates, in their own zone or `clock`'s; unfounded names are marked."""
    lines: list[str] = []
    day = ""
    for remark in remarks:
        own = zone_of(remark, clock)
        if (new := own.date(remark.time_ms)) != day:
            day = new
            lines.append(day)
        lines += _lines_of(remark, own)
    return "\n".join(lines)


def zone_of(remark: Remark, clock: WallTime) -> WallTime:
    """A remark's zone, or `clock`."""
    if remark.utc_offset is None:
        return clock
    return WallTime(timezone(timedelta(minutes=remark.utc_offset)))


def _lines_of(remark: Remark, clock: WallTime) -> Iterator[str]:
    first, *more = remark.content.split("\n")
    time = clock.time(remark.time_ms)
    yield f"- {time} {remark.priority} {remark.category}: {first}"
    yield from (f"  {line}" for line in more)
    for name, texts in remark.mode_specific.items():
        yield from (f"  {name}: {text}" for text in texts)
    if remark.unfounded:
        yield f"  {_UNFOUNDED}{', '.join(remark.unfounded)})"


def remarks_in(text: str, rules: TextRules) -> list[Remark]:
    """Remarks of a user's edit. Raises `Malformed` for any other line."""
    reader = NotesReader(rules)
    reader.read(text)
    if reader.faults:
        raise Malformed(reader.faults[0])
    if not reader.remarks:
        raise Malformed("There is no note in it.")
    return reader.remarks


class NotesReader:
    """Reads notes line by line; `faults` explains rejected lines."""

    def __init__(self, rules: TextRules) -> None:
        self.faults: list[str] = []
        self._rules = rules
        self._found: list[_Reading] = []
        self._date = rules.clock.date(rules.first_ms)
        self._time_ms = rules.first_ms
        self._number = 0
        self._is_open = False
        """Whether the line before belonged to a note."""

    @property
    def remarks(self) -> list[Remark]:
        return [reading.remark(self._rules.clock) for reading in self._found]

    def read(self, text: str, *, only_whole: bool = False) -> None:
        for line in _CONTROL.sub(" ", text).split("\n"):
            self._number += 1
            if not line.strip():
                self._is_open = False
                continue
            fault = self._take(line, only_whole=only_whole)
            self._is_open = fault is None and bool(self._found)
            if fault is not None and not only_whole:
                self.faults.append(f"Line {self._number}: {fault}")

    def _take(self, line: str, *, only_whole: bool) -> str | None:
        """Returns the line's fault, if any."""
        bare = line.strip()
        # Indented lines belong to the note before them. Outside of what is marked as notes they do
        # so only where that note has just been read: the rest is talk.
        if line[0] in " \t" and self._found and (not only_whole or self._is_open):
            return self._take_indented(bare)
        if (day := _date_in(bare)) is not None:
            return self._take_date(day)
        exact = _EXACT.fullmatch(bare)
        if exact:
            return self._take_note(exact[1], exact[2], exact[3].lower(), exact[4])
        return self._take_loose(bare, only_whole=only_whole)

    def _take_indented(self, bare: str) -> str | None:
        """A line below a note; a note of its own only if complete."""
        bullet = _BULLET.match(bare)
        if bullet and (whole := _head_of(bare[bullet.end() :])).is_whole:
            return self._take_head(whole)
        # A bullet before the arrow of a step goes with it; any other is part of what is said.
        return self._add(
            bare[bullet.end() :] if bullet and _STEP.match(bare, bullet.end()) else bare
        )

    def _take_loose(self, bare: str, *, only_whole: bool) -> str | None:
        # Models write the same in other words: with brackets, seconds, ranges, weekdays, capitals,
        # a colored dot for the priority.
        bullet = _BULLET.match(bare)
        head = _head_of(bare[bullet.end() :] if bullet else bare)
        if head.is_whole or (bullet and head.says_something and not only_whole):
            return self._take_head(head)
        is_detail = _STEP.match(bare) or _field_of(bare, self._rules.fields)
        goes_on = self._is_open and not bare[0].isupper()
        if self._found and not only_whole and (is_detail or goes_on):
            return self._add(bare)
        beginning = cut(bare, _SHOWN_CHARS, "...")
        return f'"{beginning}" is neither a date nor a note such as "- 09:15 low change: ..."'

    def _take_head(self, head: _Head) -> str | None:
        if not head.text:
            return f'the note says nothing: "{head.time} {head.priority}"'
        if head.date and (fault := self._take_date(head.date)):
            return fault
        return self._take_note(head.time, head.priority or "medium", head.category, head.text)

    def _take_note(self, time: str, priority: str, category: str, text: str) -> str | None:
        if len(self._found) == MOST_REMARKS:
            return f"there are more than {MOST_REMARKS} notes"
        if len(text) > MOST_CHARS:
            return f"the note has {len(text):,} characters, and {MOST_CHARS:,} may be in one"
        if time:
            try:
                time_ms = self._rules.clock.time_ms(self._date, time)
            except ValueError:
                return f"there is no {self._date} {time}"
            self._time_ms = self._within(time_ms)
        level = next(each for each in _PRIORITIES if each == priority)
        self._found.append(_Reading(self._time_ms, level, category, [text]))
        return None

    def _take_date(self, day: str) -> str | None:
        try:
            date.fromisoformat(day)
        except ValueError:
            return f"there is no {day}"
        self._date = day
        return None

    def _within(self, time_ms: int) -> int:
        rules = self._rules
        return min(max(time_ms, rules.first_ms), rules.last_ms) if rules.last_ms else time_ms

    def _add(self, line: str) -> str | None:
        reading = self._found[-1]
        pair = _field_of(line, self._rules.fields)
        if line.startswith(_UNFOUNDED) and line.endswith(")"):
            reading.unfounded += line[len(_UNFOUNDED) : -1].split(", ")
        elif pair:
            reading.fields.setdefault(pair[0], []).append(pair[1])
        elif sum(map(len, reading.lines)) + len(line) > MOST_CHARS:
            return f"the note would be longer than {MOST_CHARS:,} characters"
        else:
            reading.lines.append(line)
        return None


@dataclass(slots=True)
class _Head:
    """A note's beginning as far as given."""

    date: str = ""
    time: str = ""
    priority: str = ""
    category: str = _OTHER
    text: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it can only be a note."""
        return bool(self.time and self.priority and self.text)

    @property
    def says_something(self) -> bool:
        """Whether a list line is a note despite missing parts."""
        return bool(self.time or self.priority) or len(self.text.split()) >= _LEAST_WORDS


def _head_of(line: str) -> _Head:
    head, at = _Head(), 0
    while True:
        skipped = _SKIP.match(line, at)
        start = skipped.end() if skipped else at
        if not head.time and (time := _TIME.match(line, start)):
            head.date, head.time, at = time[1] or "", _clock_time(time), time.end()
        elif not head.priority and (priority := _PRIORITY.match(line, start)):
            head.priority = (
                _PRIORITIES[(priority.lastindex or 2) - 2]
                if not priority[1]
                else priority[1].lower()
            )
            at = priority.end()
        else:
            break
    rest = line[start if at else 0 :].strip().removesuffix("|").strip()
    category = _CATEGORY.fullmatch(rest)
    first, second = (category[1].lower(), (category[2] or "").lower()) if category else ("", "")
    is_category = first in CATEGORIES or second in CATEGORIES
    if category and (is_category or (at and not second)):
        head.category = f"{first}-{second}" if second else first
        rest = category[3]
    head.text = rest
    return head


def _clock_time(found: re.Match[str]) -> str:
    """A match's (first) time on a 24-hour clock."""
    hour = int(found[2])
    if found[4] and 1 <= hour <= 12:
        hour = hour % 12 + (12 if found[4][0] in "pP" else 0)
    return f"{hour:02}:{found[3]}"


def _date_in(line: str) -> str | None:
    """The date of a line such as `Date: May 3, 2026` or `## Sunday, 2026-05-03`."""
    bare = _WEEKDAY.sub(" ", line.lower().replace("date:", " "))
    bare = " ".join(re.sub(r"[#*_,()\[\]:|]+|^-\s", " ", bare).split())
    if iso := _ISO.fullmatch(bare):
        return f"{iso[1]}-{int(iso[2]):02}-{int(iso[3]):02}"
    day_match = _NAMED_DAY.fullmatch(bare)
    if (
        day_match
        and (month := _MONTHS.get(day_match["month"][:3]))
        and (day := day_match["d1"] or day_match["d2"])
    ):
        return f"{day_match['year']}-{month:02}-{int(day):02}"
    return None


def _field_of(line: str, fields: Collection[str]) -> tuple[str, str] | None:
    """Name and text of a line such as `root_cause: ...`."""
    match = _FIELD.fullmatch(line)
    name = match[1].lower() if match else ""
    return (name, match[2]) if match and name in fields else None
