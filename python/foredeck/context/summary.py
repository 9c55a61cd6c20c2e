"""A summary of chat that no model writes, and what any summary leaves out.

The summary says what was asked, which files were used, what failed, and what is open. It is
deterministic and bounded. All that it leaves out can be had by the handles that it names.
`losses_of` lists what a summary of anybody's does not name, so that neither the user nor the model
has to find out by missing it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.commands import ToolOutput
from foredeck.context import wording
from foredeck.context.arguments import args_display
from foredeck.context.digests import command_facts
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import ChatTurn, TranscriptNames, pause_marks
from foredeck.context.wording import handle, more_lines
from foredeck.model.figures import shortened
from foredeck.model.names import identifiers
from foredeck.model.own_tools import CONTEXT_TOOLS, OWN_TOOLS
from foredeck.model.quoting import block, one_line
from foredeck.sources.tool_calls import path_argument
from foredeck.worklog.done import FinishedWork, SessionWork, describe, failed_run, newest

ASKED_CHARS, ANSWER_CHARS, FACT_CHARS = 400, 280, 200
SHORT_ASK_CHARS = 80
OPEN_LINES = 6
_OPEN = re.compile(
    r"\b(?:TODO|FIXME|not yet|next steps?|remain(?:s|ing)"
    r"|still (?:need|fail|open|to)|left to do)\b",
    re.IGNORECASE,
)
_ROLES = {"read": "read", "edit": "edited", "write": "written"}


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """What is to be summed up."""

    turns: Sequence[ChatTurn]
    names: TranscriptNames
    ordinal: int
    """Handle of the object that will cover it."""
    file: Callable[[str], tuple[int, Mapping[str, Any]] | None]
    """A file's handle and metadata, by its path as the tools name it."""
    earlier: str = ""
    """A line about the compaction before."""
    pinned: Sequence[int] = ()
    """Handles of pinned objects that leave the view with it."""
    holds_question: bool = False
    """Whether the question of a turn that is under way leaves the view with it."""

    @property
    def items(self) -> list[Item]:
        """All messages."""
        return [item for turn in self.turns for item in turn.items]


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """The long one is for the prompt, the short one for lists."""

    long: str
    short: str


@dataclass(slots=True)
class _Touched:
    ordinal: int
    state: str
    last: int
    counts: dict[str, int] = field(default_factory=dict)


def summarise(given: SummaryInput, max_chars: int) -> ChatSummary:
    """The two summaries; the long one has at most `max_chars` characters."""
    failures = list(_failures(given))
    sections = {
        "Asked": list(_asked(given)),
        "Files": list(_files(given)),
        **({"Done": done} if (done := list(_done(given))) else {}),
        "Answers": list(_answers(given)),
        "Errors": failures,
        "Open": list(_open(given, failures)),
    }
    short = _short(given, len(sections["Files"]), len(failures))
    head = [wording.summary_heading(_span(given), given.ordinal)]
    if given.earlier:
        head.append(given.earlier)
    if given.pinned:
        head.append(wording.pinned_away(given.pinned))
    tail = _question(given, max_chars // 2)
    around = sum(len(line) + 1 for line in [*head, *tail])
    body = fit_sections(sections, max(0, max_chars - around - 10 * len(sections)))
    return ChatSummary("\n".join([*head, *body, *tail])[:max_chars], short)


def _question(given: SummaryInput, room: int) -> list[str]:
    """What the turn under way is about, where a line among others would not hold it."""
    last = given.turns[-1]
    if not (given.holds_question and _under_way(last) and len(last.asked) > ASKED_CHARS):
        return []
    asked, heading = last.asked, wording.question_heading(last.number)
    left = min(len(asked), len(asked) - room + len(heading) + 100)
    if left > 0:
        begins = (len(asked) - left) // 2
        gap = wording.question_gap(left, given.ordinal, last.number)
        return [heading, block(asked[:begins]) + gap + block(asked[begins + left :])]
    return [heading, block(asked)]


def _under_way(turn: ChatTurn) -> bool:
    """Whether a turn goes on after what is compacted of it."""
    last = turn.items[-1]
    return last.kind != "assistant" or bool(last.calls) or last.unsent


def _span(given: SummaryInput) -> str:
    first, last = given.turns[0].number, given.turns[-1].number
    times = [item.time_ms for item in given.items if item.time_ms > 0]
    ends = [given.names.time(time) for time in (min(times), max(times))] if times else []
    return wording.turns_span(first, last, *ends)


def _short(given: SummaryInput, files: int, errors: int) -> str:
    asks = [turn.asked for turn in given.turns if turn.asked]
    shown = [json.dumps(shortened(ask, SHORT_ASK_CHARS), ensure_ascii=False) for ask in asks[:2]]
    more = f" and {len(asks) - 2} more" if len(asks) > 2 else ""
    questions = f"{'; '.join(shown) or 'no question'}{more}"
    return wording.short_summary(_span(given), questions, files, errors)


def _asked(given: SummaryInput) -> Iterator[SummaryLine]:
    marks = pause_marks(given.items, given.names)
    index = 0
    for turn in given.turns:
        asked = False
        for item in turn.items:
            if index in marks:
                yield SummaryLine(marks[index], turn.number)
            index += 1
            if not asked and turn.asked and item.kind == "user":
                asked = True
                text = wording.turn_line(turn.number, shortened(turn.asked, ASKED_CHARS))
                yield SummaryLine(text, turn.number)


def _answers(given: SummaryInput) -> Iterator[SummaryLine]:
    for turn in given.turns:
        if turn.answered:
            text = wording.turn_line(turn.number, shortened(turn.answered, ANSWER_CHARS))
            yield SummaryLine(text, turn.number)


def _files(given: SummaryInput) -> Iterator[SummaryLine]:
    """Files in the order of their last use, the newest last."""
    touched: dict[str, _Touched] = {}
    for turn in given.turns:
        for item in turn.items:
            for call in item.calls:
                role = _ROLES.get(call.tool)
                path = path_argument(call.arguments) if role else None
                found = given.file(path) if path else None
                if role is None or path is None or found is None:
                    continue
                ordinal, fields = found
                entry = touched.pop(path, None) or _Touched(ordinal, _state(fields), 0)
                entry.counts[role] = entry.counts.get(role, 0) + 1
                entry.last = turn.number
                touched[path] = entry
    for path, entry in touched.items():
        done = ", ".join(r if n == 1 else f"{r} {n} times" for r, n in entry.counts.items())
        shown = args_display({"path": path}, given.names.cwd)
        text = wording.file_line(entry.ordinal, shown, done, entry.last, entry.state)
        yield SummaryLine(text, entry.last)


def _state(fields: Mapping[str, Any]) -> str:
    state = fields.get("state") or "text"
    return f"now {fields.get('char_count') or 0:,} chars" if state == "text" else f"now {state}"


def _failures(given: SummaryInput) -> Iterator[SummaryLine]:
    """Calls that failed and were not made again with success."""
    failed: dict[str, SummaryLine] = {}
    for turn in given.turns:
        for item in turn.items:
            if item.kind != "result" or item.tool in CONTEXT_TOOLS:
                continue
            what = f"{item.tool} {shortened(args_display(item.arguments, given.names.cwd), 80)}"
            failed.pop(what, None)
            if item.failed:
                error = "; ".join(command_facts(item.arguments, ToolOutput.of(item.text)))
                error = shortened(error or item.text, FACT_CHARS)
                ordinal = given.names.call(item.call_id)
                text = wording.error_line(ordinal, what, turn.number, error)
                failed[what] = SummaryLine(text, turn.number)
    yield from failed.values()


def _done(given: SummaryInput) -> Iterator[SummaryLine]:
    """Commits, and test runs that passed and have not failed since."""
    work = SessionWork("")
    found: list[tuple[int, FinishedWork]] = []
    for turn in given.turns:
        for item in turn.items:
            if item.kind != "result":
                continue
            tool, asked = item.tool, item.arguments
            done = work.take(tool, asked, item.text, failed=item.failed, time_ms=item.time_ms)
            broken = failed_run(tool, asked) if item.failed else None
            found = [(n, each) for n, each in found if each.kind != "tests" or each.what != broken]
            found += [] if done is None else [(turn.number, done)]
    last = {id(each) for each in newest([each for _turn, each in found])}
    for number, each in found:
        if id(each) in last:
            text = wording.turn_line(number, describe(each, given.names.cwd))
            yield SummaryLine(text, number)


def _open(given: SummaryInput, failures: list[SummaryLine]) -> Iterator[SummaryLine]:
    """What the model itself called unfinished, and what still fails."""
    said: list[SummaryLine] = []
    for turn in given.turns[-3:]:
        for line in turn.answered.split("\n"):
            if _OPEN.search(line):
                text = one_line(shortened(line, FACT_CHARS))
                said.append(SummaryLine(f"- {text}", turn.number))
    yield from said[-OPEN_LINES:]
    if failures:
        yield SummaryLine(wording.open_errors(len(failures)), failures[-1].turn)
    last = given.turns[-1]
    if _under_way(last):
        yield SummaryLine(wording.turn_under_way(last.number), last.number)


SHARES = {"Asked": 0.32, "Files": 0.24, "Answers": 0.2, "Errors": 0.12, "Open": 0.12}
"""Of the room, by section; what one does not need is given to those that follow."""

DONE_SHARE = 0.1
"""Of finished work, where there is any: the others share what it leaves."""

GAP_CHARS = 40
"""What the line that says how many were left out takes, at most."""


@dataclass(slots=True)
class SummaryLine:
    """A line, and the turn that it is about."""

    text: str
    turn: int


def fit_sections(sections: Mapping[str, Sequence[SummaryLine]], room: int) -> list[str]:
    """The sections under their names, within a number of characters."""
    wanted = {name: _size(lines) for name, lines in sections.items()}
    shares = _shares(has_done="Done" in sections)
    spare = max(0, room - sum(min(wanted[n], int(room * s)) for n, s in shares.items()))
    shown: list[str] = []
    for name, lines in sections.items():
        allowed = min(wanted[name], int(room * shares[name]) + spare)
        spare -= max(0, allowed - int(room * shares[name]))
        kept = _keep(lines, allowed)
        if kept:
            shown += [f"{name}:", *kept]
    return shown


def _shares(*, has_done: bool) -> dict[str, float]:
    if not has_done:
        return SHARES
    return {
        **{name: share * (1 - DONE_SHARE) for name, share in SHARES.items()},
        "Done": DONE_SHARE,
    }


def _size(lines: Sequence[SummaryLine]) -> int:
    return sum(len(line.text) + 1 for line in lines)


def _keep(lines: Sequence[SummaryLine], room: int) -> list[str]:
    """The first line and as many of the newest as fit; a line says what is left out."""
    if _size(lines) <= room:
        return [line.text for line in lines]
    first = list(lines[:1]) if _size(lines[:1]) + GAP_CHARS < room else []
    left = room - _size(first) - GAP_CHARS
    newest: list[SummaryLine] = []
    for line in reversed(lines[len(first) :]):
        left -= len(line.text) + 1
        if left < 0:
            break
        newest.insert(0, line)
    out = lines[len(first) : len(lines) - len(newest)]
    if not out or not (first or newest):
        return [line.text for line in [*first, *newest]]
    gone = more_lines(len(out), out[0].turn, out[-1].turn)
    return [*(line.text for line in first), gone, *(line.text for line in newest)]


MAX_LINES = 40
"""Of each kind, the newest; the others are counted."""

MAX_NAMES = 30
"""Of each turn."""

LINE_CHARS = 160

LOST = ("Questions without an answer", "Commands that failed", "Commands", "Paths", "Names")
"""What a report lists: the questions of turns that ended without an answer; identifiers that the
user or the model wrote, by turn."""

NOTHING_LOST = "The summary names everything."
"""In place of the report."""


def losses_of(turns: Sequence[ChatTurn], names: TranscriptNames, summary: str) -> str:
    """What these turns hold and their summary does not name, as lines that say where it is, oldest
    first; `NOTHING_LOST` where there is nothing."""
    lost: list[list[str]] = [[] for _ in LOST]
    questions, failed, commands, paths, others = lost
    seen: set[str] = set()
    for turn in turns:
        # Also where the summary has the question: it does not show that no answer came.
        if "?" in turn.asked and not turn.answered:
            questions.append(_line(turn.number, None, _cut(turn.asked)))
        for item in turn.items:
            if item.kind != "result" or item.tool in OWN_TOOLS:
                continue
            shown = args_display(item.arguments, names.cwd)
            # Lines of a summary are cut short, so no more than the beginning need be there.
            if not shown or shown in seen or " ".join(shown.split())[:60] in summary:
                continue
            seen.add(shown)
            of_path = path_argument(item.arguments) is not None
            kind = failed if item.failed else paths if of_path else commands
            ordinal = names.call(item.call_id)
            kind.append(_line(turn.number, ordinal, _cut(f"{item.tool} {shown}")))
        written = sorted(written_names(turn) - identifiers(summary) - seen)
        seen.update(written)
        if written:
            more = len(written) - MAX_NAMES
            rest = f" and {more} more" if more > 0 else ""
            others.append(f"- turn {turn.number}: {', '.join(written[:MAX_NAMES])}{rest}")
    sections = zip(LOST, lost, strict=True)
    listed = [line for name, lines in sections for line in _section(name, lines)]
    return "\n".join(listed) or NOTHING_LOST


def written_names(turn: ChatTurn) -> set[str]:
    """The identifiers that the user or the model wrote in a turn."""
    texts = [item.said for item in turn.items if item.kind in ("user", "assistant")]
    return {name for text in texts for name in identifiers(text)}


def _cut(text: str) -> str:
    return shortened(text, LINE_CHARS)


def _line(turn: int, ordinal: int | None, what: str) -> str:
    at = "" if ordinal is None else f"{handle(ordinal)} "
    return f"- turn {turn}: {at}{what}"


def _section(name: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield f"{name}:"
    if len(lines) > MAX_LINES:
        yield f"- {len(lines) - MAX_LINES} older ones"
    yield from lines[-MAX_LINES:]
