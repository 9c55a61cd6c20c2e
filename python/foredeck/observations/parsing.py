"""An observer's or reflector's answer: what of it is right is kept, and the rest is counted."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from foredeck.model.observations import Remark
from foredeck.observations.texts import NotesReader, TextRules

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r".*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$", re.MULTILINE)
_NAMES = r"(observations?|notes|current[-_ ]?task|suggested[-_ ]?(?:response|next|reply))"
_TAG = re.compile(rf"[*`]*<\s*(/?)\s*{_NAMES}\s*/?>[*`]*", re.IGNORECASE)
_HEADING = re.compile(
    # With an empty group, so that the name is the second one, as in a tag.
    rf"^[ \t]*(?:#+ *|\*\*)(){_NAMES}:?(?:\*\*)?:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_TASK_CHARS, _SUGGESTION_CHARS = 1200, 600


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer holds. `faults`: a sentence for each line that was left out."""

    remarks: list[Remark]
    current_task: str = ""
    suggestion: str = ""
    faults: list[str] = field(default_factory=list)

    @property
    def is_poor(self) -> bool:
        """Whether little of it could be read."""
        return not self.remarks or len(self.faults) > len(self.remarks)


def parse_answer(
    text: str, rules: TextRules, *, stop: str = "stop", examples: Collection[str] = ()
) -> ParsedAnswer:
    """What is right of an answer, whatever stands around it.

    `stop`: why the model stopped (`length`: its answer is cut off, and its last line does not
    count). `examples`: first lines of notes that the question gave as examples, and words that it
    gave for the other parts: their echo is left out.
    """
    reader = NotesReader(rules)
    said = {"task": "", "next": ""}
    parts = _parts(_END_OF_THOUGHT.sub("", _THOUGHT.sub("", text)), is_cut=stop == "length")
    has_notes = any(name == "notes" for name, _ in parts)
    for name, part in parts:
        if name in said:
            said[name] = said[name] or ("" if part.strip() in examples else part)
        else:
            # Beside the notes anything may be said; where nothing is marked as notes, all may be.
            reader.read(part, only_whole=has_notes and name != "notes")
    remarks, faults = [], reader.faults
    for remark in reader.remarks:
        if remark.content.partition("\n")[0] in examples:
            faults.append(f'an example is no note: "{remark.content}"')
        elif remark not in remarks:
            remarks.append(remark)
    task, suggestion = _lines(said["task"], _TASK_CHARS), _lines(said["next"], _SUGGESTION_CHARS)
    return ParsedAnswer(remarks, task, suggestion, faults)


def _parts(text: str, *, is_cut: bool) -> list[tuple[str, str]]:
    """The text by tags: `notes`, `task`, `next`; what stands outside of them has an empty name."""
    if is_cut:
        text = text.rpartition("\n")[0]
    text = _FENCE.sub("", text)
    marks = [*_TAG.finditer(text)] or [*_HEADING.finditer(text)]
    found: list[tuple[str, str]] = []
    name, at = "", 0
    for mark in marks:
        found.append((name, text[at : mark.start()]))
        name, at = "" if mark[1] else _part_named(mark[2]), mark.end()
    return [*found, (name, text[at:])]


def _part_named(tag: str) -> str:
    return {"c": "task", "s": "next"}.get(tag[0].lower(), "notes")


def _lines(text: str, chars: int) -> str:
    """Its lines without blank ones, cut to a number of characters."""
    kept = "\n".join(" ".join(line.split()) for line in text.split("\n") if line.strip())
    return kept if len(kept) <= chars else kept[: chars - 3] + "..."
