"""Remarks as text, and text as remarks: one form for answers, prompts, and the user's edits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from foredeck.errors import ForedeckError
from foredeck.model.observations import Priority, Remark
from foredeck.observations.excerpt import WallTime
from foredeck.observations.names import files_in, lines_in

MOST_REMARKS = 400
MOST_CHARS = 4000
"""Of one remark."""
_DATE = re.compile(r"(?:Date: ?)?(\d{4}-\d{2}-\d{2}):?")
_REMARK = re.compile(r"[-*] \(?(\d{1,2}:\d{2})\)? (high|medium|low) ([\w-]{1,40}): (\S.*)")
_FIELD = re.compile(r"([a-z_]+): (\S.*)")
_UNFOUNDED = "(not in the sources: "
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")


class Malformed(ForedeckError):
    """A text that does not hold remarks in their form; says which line, and what is expected."""


@dataclass(frozen=True, slots=True)
class TextRules:
    """How remarks are read. `fields`: names of lines that a mode knows. `first_ms`, `last_ms`:
    between these all times lie, however they are written. `sources`: see `names.unfounded`."""

    clock: WallTime = field(default_factory=WallTime)
    fields: Collection[str] = ()
    first_ms: int = 0
    last_ms: int = 0


@dataclass(slots=True)
class _Reading:
    time_ms: int
    priority: Priority
    category: str
    lines: list[str]
    fields: dict[str, list[str]] = field(default_factory=dict)
    unfounded: list[str] = field(default_factory=list)

    def remark(self) -> Remark:
        content = "\n".join(self.lines)
        named = "\n".join([content, *(text for texts in self.fields.values() for text in texts)])
        return Remark(
            time_ms=self.time_ms,
            priority=self.priority,
            category=self.category,
            content=content,
            files=files_in(named),
            line_numbers=lines_in(named),
            mode_specific=self.fields,
            unfounded=self.unfounded,
        )


def text_of(remarks: Sequence[Remark], clock: WallTime) -> str:
    """The remarks, under their dates. What nothing vouches for is marked."""
    lines: list[str] = []
    date = ""
    for remark in remarks:
        if (day := clock.date(remark.time_ms)) != date:
            date = day
            lines.append(day)
        lines += _lines_of(remark, clock)
    return "\n".join(lines)


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
    """The remarks of a text in this form. Raises `Malformed` for a line that is none of it, and
    where there is not one remark."""
    found: list[_Reading] = []
    date = rules.clock.date(rules.first_ms)
    for number, line in enumerate(_CONTROL.sub(" ", text).split("\n"), 1):
        if not line.strip():
            continue
        if line.startswith((" ", "\t")) and found:
            _add_line(found[-1], line.strip(), rules)
        elif day := _DATE.fullmatch(line.strip()):
            date = day[1]
        elif remark := _REMARK.fullmatch(line.rstrip()):
            found.append(_Reading(_time_ms(date, remark[1], rules, number), *_named(remark)))
        else:
            raise Malformed(
                f"Line {number} is neither a date nor a note such as "
                f'"- 09:15 medium change: ...": "{line.strip()[:80]}"'
            )
    if not found:
        raise Malformed("There is no note in it.")
    _check_size(found)
    return [reading.remark() for reading in found]


def _named(match: re.Match[str]) -> tuple[Priority, str, list[str]]:
    priority = next(known for known in _PRIORITIES if known == match[2])
    return priority, match[3], [match[4]]


def _add_line(reading: _Reading, line: str, rules: TextRules) -> None:
    if line.startswith(_UNFOUNDED) and line.endswith(")"):
        reading.unfounded += line[len(_UNFOUNDED) : -1].split(", ")
    elif (named := _FIELD.fullmatch(line)) and named[1] in rules.fields:
        reading.fields.setdefault(named[1], []).append(named[2])
    else:
        reading.lines.append(line)


def _time_ms(date: str, time: str, rules: TextRules, number: int) -> int:
    try:
        written = rules.clock.time_ms(date, time)
    except ValueError:
        raise Malformed(f"Line {number}: there is no {date} {time}.") from None
    if not rules.last_ms:
        return written
    return min(max(written, rules.first_ms), rules.last_ms)


def _check_size(found: Sequence[_Reading]) -> None:
    if len(found) > MOST_REMARKS:
        raise Malformed(f"It has {len(found)} notes, and {MOST_REMARKS} may be in one.")
    longest = max(sum(map(len, reading.lines)) for reading in found)
    if longest > MOST_CHARS:
        raise Malformed(f"A note has {longest:,} characters, and {MOST_CHARS:,} may be in one.")
