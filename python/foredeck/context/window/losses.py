"""What a summary of chat does not name: commands, failures, paths, open questions, names.

A summary is short because it leaves things out. This says which, each with where to have it again,
so that neither the user nor the model has to find out by missing it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.context.arguments import args_display
from foredeck.context.messages.items import Item
from foredeck.context.window.transcript import ChatTurn, TranscriptNames
from foredeck.context.wording import handle
from foredeck.model.figures import shortened
from foredeck.model.names import identifiers
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.sources.tool_calls import path_argument

MAX_LINES = 40
"""Of each kind, the newest; the others are counted."""

MAX_NAMES = 30
"""Of each turn."""

LINE_CHARS = 160

NOTHING_LOST = "The summary names everything."
"""In place of the report."""


@dataclass(slots=True)
class Losses:
    """What is not named, as lines that say where it is, oldest first."""

    questions: list[str] = field(default_factory=list)
    """The user's, in turns that ended without an answer."""
    failed: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """By turn, identifiers that the user or the model wrote."""

    def to_text(self) -> str:
        """The report."""
        kinds: Mapping[str, Sequence[str]] = {
            "Questions without an answer": self.questions,
            "Commands that failed": self.failed,
            "Commands": self.commands,
            "Paths": self.paths,
            "Names": self.names,
        }
        listed = [line for name, lines in kinds.items() for line in _section(name, lines)]
        return "\n".join(listed) or NOTHING_LOST


def losses_of(turns: Sequence[ChatTurn], names: TranscriptNames, summary: str) -> Losses:
    """What these turns hold and their summary does not."""
    found = Losses()
    seen: set[str] = set()
    for turn in turns:
        # Also where the summary has the question: that nobody has answered it is not to be seen.
        if "?" in turn.asked and not turn.answered:
            found.questions.append(_line(turn.number, None, _short(turn.asked)))
        for item in turn.items:
            if item.kind == "result" and item.tool not in OWN_TOOLS:
                _take_result(found, turn.number, item, names, summary, seen)
        written = sorted(written_names(turn) - identifiers(summary) - seen)
        seen.update(written)
        if written:
            found.names.append(
                _names_line(turn.number, written[:MAX_NAMES], len(written[MAX_NAMES:]))
            )
    return found


def _take_result(
    found: Losses,
    turn: int,
    item: Item,
    names: TranscriptNames,
    summary: str,
    seen: set[str],
) -> None:
    shown = args_display(item.arguments, names.cwd)
    path = path_argument(item.arguments)
    if not shown or shown in seen or _names(summary, shown):
        return
    seen.add(shown)
    line = _line(turn, names.call(item.call_id), _short(f"{item.tool} {shown}"))
    if item.failed:
        found.failed.append(line)
    elif path is not None:
        found.paths.append(line)
    else:
        found.commands.append(line)


def written_names(turn: ChatTurn) -> set[str]:
    """The identifiers that the user or the model wrote in a turn."""
    texts = [item.said for item in turn.items if item.kind in ("user", "assistant")]
    return {name for text in texts for name in identifiers(text)}


def _names(summary: str, text: str) -> bool:
    """Whether a summary has a text, as far as its lines are long."""
    return " ".join(text.split())[:60] in summary


def _short(text: str) -> str:
    return shortened(text, LINE_CHARS)


def _line(turn: int, ordinal: int | None, what: str) -> str:
    at = "" if ordinal is None else f"{handle(ordinal)} "
    return f"- turn {turn}: {at}{what}"


def _names_line(turn: int, names: Sequence[str], more: int) -> str:
    others = f" and {more} more" if more else ""
    return f"- turn {turn}: {', '.join(names)}{others}"


def _section(name: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield f"{name}:"
    if len(lines) > MAX_LINES:
        yield f"- {len(lines) - MAX_LINES} older ones"
    yield from lines[-MAX_LINES:]
