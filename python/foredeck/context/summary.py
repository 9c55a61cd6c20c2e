"""A summary of chat without a model: what was asked, used, failed and open; and what any summary
omits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.commands import ToolOutput
from foredeck.context import wording
from foredeck.context.digests import command_facts
from foredeck.context.messages.items import Item, args_display
from foredeck.context.messages.transcript import ChatTurn, TranscriptNames, pause_marks
from foredeck.context.wording import handle, more_lines
from foredeck.model.figures import shortened
from foredeck.model.names import identifiers
from foredeck.model.own_tools import CONTEXT_TOOLS, OWN_TOOLS
from foredeck.model.quoting import block, one_line
from foredeck.sources.tool_calls import path_argument
from foredeck.worklog import FinishedWork, SessionWork, describe, failed_run, newest

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
    turns: Sequence[ChatTurn]
    names: TranscriptNames
    ordinal: int
    """Handle of the covering object."""
    file: Callable[[str], tuple[int, Mapping[str, Any]] | None]
    """Handle and metadata by the tools' path."""
    earlier: str = ""
    """A line about the previous compaction."""
    pinned: Sequence[int] = ()
    """Pinned objects that leave the view."""
    holds_question: bool = False
    """Whether the current turn's question leaves the view."""

    @property
    def items(self) -> list[Item]:
        return [item for turn in self.turns for item in turn.items]


@dataclass(frozen=True, slots=True)
class ChatSummary:
    long: str
    short: str


@dataclass(slots=True)
class _Touched:
    ordinal: int
    state: str
    last: int
    counts: dict[str, int] = field(default_factory=dict)


def summarise(given: SummaryInput, max_chars: int) -> ChatSummary:
    """Both summaries, the long one within `max_chars`."""
    failures = list(_failures(given))
    sections = {
        "Asked": list(_asked(given)),
        "Files": list(_files(given)),
        **({"Done": finished} if (finished := list(_done(given))) else {}),
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
    last = given.turns[-1]
    if not (given.holds_question and _under_way(last) and len(last.asked) > ASKED_CHARS):
        return []
    question, heading = last.asked, wording.question_heading(last.number)
    omitted = min(len(question), len(question) - room + len(heading) + 100)
    if omitted > 0:
        begins = (len(question) - omitted) // 2
        gap = wording.question_gap(omitted, given.ordinal, last.number)
        return [heading, block(question[:begins]) + gap + block(question[begins + omitted :])]
    return [heading, block(question)]


def _under_way(turn: ChatTurn) -> bool:
    last = turn.items[-1]
    return last.kind != "assistant" or bool(last.calls) or last.unsent


def _span(given: SummaryInput) -> str:
    first, last = given.turns[0].number, given.turns[-1].number
    times = [item.time_ms for item in given.items if item.time_ms > 0]
    ends = [given.names.time(time) for time in (min(times), max(times))] if times else []
    return wording.turns_span(first, last, *ends)


def _short(given: SummaryInput, files: int, errors: int) -> str:
    asks = [turn.asked for turn in given.turns if turn.asked]
    asks_in_short = [
        json.dumps(shortened(ask, SHORT_ASK_CHARS), ensure_ascii=False) for ask in asks[:2]
    ]
    more = f" and {len(asks) - 2} more" if len(asks) > 2 else ""
    questions = f"{'; '.join(asks_in_short) or 'no question'}{more}"
    return wording.short_summary(_span(given), questions, files, errors)


def _asked(given: SummaryInput) -> Iterator[SummaryLine]:
    marks = pause_marks(given.items, given.names)
    index = 0
    for turn in given.turns:
        has_question = False
        for item in turn.items:
            if index in marks:
                yield SummaryLine(marks[index], turn.number)
            index += 1
            if not has_question and turn.asked and item.kind == "user":
                has_question = True
                text = wording.turn_line(turn.number, shortened(turn.asked, ASKED_CHARS))
                yield SummaryLine(text, turn.number)


def _answers(given: SummaryInput) -> Iterator[SummaryLine]:
    for turn in given.turns:
        if turn.answered:
            text = wording.turn_line(turn.number, shortened(turn.answered, ANSWER_CHARS))
            yield SummaryLine(text, turn.number)


def _files(given: SummaryInput) -> Iterator[SummaryLine]:
    touched: dict[str, _Touched] = {}
    for turn in given.turns:
        for item in turn.items:
            for call in item.calls:
                role = _ROLES.get(call.tool)
                path = path_argument(call.arguments) if role else None
                described = given.file(path) if path else None
                if role is None or path is None or described is None:
                    continue
                ordinal, fields = described
                entry = touched.pop(path, None) or _Touched(ordinal, _state(fields), 0)
                entry.counts[role] = entry.counts.get(role, 0) + 1
                entry.last = turn.number
                touched[path] = entry
    for path, entry in touched.items():
        actions = ", ".join(r if n == 1 else f"{r} {n} times" for r, n in entry.counts.items())
        short_path = args_display({"path": path}, given.names.cwd)
        text = wording.file_line(entry.ordinal, short_path, actions, entry.last, entry.state)
        yield SummaryLine(text, entry.last)


def _state(fields: Mapping[str, Any]) -> str:
    state = fields.get("state") or "text"
    return f"now {fields.get('char_count') or 0:,} chars" if state == "text" else f"now {state}"


def _failures(given: SummaryInput) -> Iterator[SummaryLine]:
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
    """Commits, and test runs passed and not failed since."""
    work = SessionWork("")
    items_done: list[tuple[int, FinishedWork]] = []
    for turn in given.turns:
        for item in turn.items:
            if item.kind != "result":
                continue
            tool, arguments = item.tool, item.arguments
            finished = work.take(
                tool, arguments, item.text, failed=item.failed, time_ms=item.time_ms
            )
            broken = failed_run(tool, arguments) if item.failed else None
            items_done = [
                (n, each) for n, each in items_done if each.kind != "tests" or each.what != broken
            ]
            items_done += [] if finished is None else [(turn.number, finished)]
    last = {id(each) for each in newest([each for _turn, each in items_done])}
    for number, each in items_done:
        if id(each) in last:
            text = wording.turn_line(number, describe(each, given.names.cwd))
            yield SummaryLine(text, number)


def _open(given: SummaryInput, failures: list[SummaryLine]) -> Iterator[SummaryLine]:
    lines: list[SummaryLine] = []
    for turn in given.turns[-3:]:
        for line in turn.answered.split("\n"):
            if _OPEN.search(line):
                text = one_line(shortened(line, FACT_CHARS))
                lines.append(SummaryLine(f"- {text}", turn.number))
    yield from lines[-OPEN_LINES:]
    if failures:
        yield SummaryLine(wording.open_errors(len(failures)), failures[-1].turn)
    last = given.turns[-1]
    if _under_way(last):
        yield SummaryLine(wording.turn_under_way(last.number), last.number)


SHARES = {"Asked": 0.32, "Files": 0.24, "Answers": 0.2, "Errors": 0.12, "Open": 0.12}
"""Of the room, by section; unused room goes to later ones."""

DONE_SHARE = 0.1

GAP_CHARS = 40
"""Longest line about omitted lines."""


@dataclass(slots=True)
class SummaryLine:
    """A line and its turn."""

    text: str
    turn: int


def fit_sections(sections: Mapping[str, Sequence[SummaryLine]], room: int) -> list[str]:
    sizes = {name: _size(lines) for name, lines in sections.items()}
    shares = _shares(has_done="Done" in sections)
    spare = max(0, room - sum(min(sizes[n], int(room * s)) for n, s in shares.items()))
    output: list[str] = []
    for name, lines in sections.items():
        allowed = min(sizes[name], int(room * shares[name]) + spare)
        spare -= max(0, allowed - int(room * shares[name]))
        selection = _keep(lines, allowed)
        if selection:
            output += [f"{name}:", *selection]
    return output


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
    """The first line, the newest that fit, and a line on the rest."""
    if _size(lines) <= room:
        return [line.text for line in lines]
    first = list(lines[:1]) if _size(lines[:1]) + GAP_CHARS < room else []
    remaining = room - _size(first) - GAP_CHARS
    newest: list[SummaryLine] = []
    for line in reversed(lines[len(first) :]):
        remaining -= len(line.text) + 1
        if remaining < 0:
            break
        newest.insert(0, line)
    out = lines[len(first) : len(lines) - len(newest)]
    if not out or not (first or newest):
        return [line.text for line in [*first, *newest]]
    gone = more_lines(len(out), out[0].turn, out[-1].turn)
    return [*(line.text for line in first), gone, *(line.text for line in newest)]


MAX_LINES = 40
"""Of a kind, newest first; the rest is counted."""

MAX_NAMES = 30
"""Of each turn."""

LINE_CHARS = 160

LOST = ("Questions without an answer", "Commands that failed", "Commands", "Paths", "Names")
"""Unanswered questions; identifiers that user or model wrote."""

NOTHING_LOST = "The summary names everything."
"""The report without losses."""


def losses_of(turns: Sequence[ChatTurn], names: TranscriptNames, summary: str) -> str:
    """What the turns hold and their summary does not name, oldest first."""
    lost: list[list[str]] = [[] for _ in LOST]
    questions, failed, commands, paths, others = lost
    reported: set[str] = set()
    for turn in turns:
        # Also where the summary has the question: it does not show that no answer came.
        if "?" in turn.asked and not turn.answered:
            questions.append(_line(turn.number, None, _cut(turn.asked)))
        for item in turn.items:
            if item.kind != "result" or item.tool in OWN_TOOLS:
                continue
            arguments = args_display(item.arguments, names.cwd)
            # Lines of a summary are cut short, so no more than the beginning need be there.
            if (
                not arguments
                or arguments in reported
                or " ".join(arguments.split())[:60] in summary
            ):
                continue
            reported.add(arguments)
            of_path = path_argument(item.arguments) is not None
            kind = failed if item.failed else paths if of_path else commands
            ordinal = names.call(item.call_id)
            kind.append(_line(turn.number, ordinal, _cut(f"{item.tool} {arguments}")))
        fresh_names = sorted(written_names(turn) - identifiers(summary) - reported)
        reported.update(fresh_names)
        if fresh_names:
            more = len(fresh_names) - MAX_NAMES
            rest = f" and {more} more" if more > 0 else ""
            others.append(f"- turn {turn.number}: {', '.join(fresh_names[:MAX_NAMES])}{rest}")
    sections = zip(LOST, lost, strict=True)
    listed = [line for name, lines in sections for line in _section(name, lines)]
    return "\n".join(listed) or NOTHING_LOST


def written_names(turn: ChatTurn) -> set[str]:
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
