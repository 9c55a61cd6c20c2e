"""An observer's or reflector's answer, read strictly: what is not in the form replaces nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from foredeck.model.observations import Remark
from foredeck.observations.texts import Malformed, TextRules, remarks_in

_BLOCK = re.compile(
    r"\s*<observations>\n?(?P<notes>.*?)</observations>\s*"
    r"(?:<current-task>(?P<task>.*?)</current-task>\s*)?"
    r"(?:<suggested-response>(?P<next>.*?)</suggested-response>\s*)?",
    re.DOTALL,
)
_TAG = re.compile(r"</?(?:observations|current-task|suggested-response)>")
_MOST_TAGS = 6
_TASK_CHARS, _SUGGESTION_CHARS = 1200, 600


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer holds."""

    remarks: list[Remark]
    current_task: str = ""
    suggestion: str = ""


def parse_answer(text: str, rules: TextRules, *, stop: str = "stop") -> ParsedAnswer:
    """The parts of an answer. `stop`: why the model stopped (`length`: its answer is cut off).

    Raises `Malformed` for an answer that is empty, cut off, has anything outside of its parts, or
    a line that is no note.
    """
    if not text.strip():
        raise Malformed("The answer is empty.")
    if stop == "length":
        raise Malformed("The answer was cut off at its longest.")
    match = _BLOCK.fullmatch(text)
    tags = _TAG.findall(text)
    if match is None or len(tags) != len(set(tags)) or len(tags) > _MOST_TAGS:
        raise Malformed("The answer is not one block of observations with what belongs to it.")
    remarks = remarks_in(match["notes"], rules)
    return ParsedAnswer(
        remarks,
        _lines(match["task"] or "", _TASK_CHARS),
        _lines(match["next"] or "", _SUGGESTION_CHARS),
    )


def _lines(text: str, chars: int) -> str:
    """Its lines without blank ones, cut to a number of characters."""
    kept = "\n".join(" ".join(line.split()) for line in text.split("\n") if line.strip())
    return kept if len(kept) <= chars else kept[: chars - 3] + "..."
