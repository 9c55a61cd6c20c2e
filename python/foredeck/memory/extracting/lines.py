"""What a model answers to the question of extraction: lines of four fields, read strictly."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from foredeck.search.secrets import mask_secrets

ExtractedCategory = Literal["preference", "decision", "fact", "context"]
LASTING: frozenset[str] = frozenset({"preference", "decision"})
"""What would outlive its session."""

RefusalReason = Literal[
    "form",
    "category",
    "turn",
    "length",
    "invisible",
    "itself",
    "secret",
    "unsupported",
    "duplicate",
    "refused before",
    "private",
    "off",
    "too many",
]

NOTHING = "NONE"
"""The whole answer where there is nothing to keep."""
MAX_FACT, MAX_WORDS = 240, 400
MAX_LINES, MAX_KEPT = 40, 8
"""Of one answer: as many lines are read, as many facts taken."""

_TURN = re.compile(r"turn-([1-9]\d{0,3})")
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Controls, and characters that no reader sees: direction marks, joiners, tags."""


@dataclass(frozen=True, slots=True)
class ExtractedLine:
    """A line that has the form. `turn` numbers one of the sayings of the question; `words` are
    those that the model claims to have copied from it."""

    category: ExtractedCategory
    turn: int
    fact: str
    words: str


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line of which nothing is kept, and why."""

    line: str
    reason: RefusalReason


def read_answer(answer: str, turns: Collection[int]) -> Iterator[ExtractedLine | RefusedLine]:
    """Each line of an answer that is not empty. `turns`: numbers of sayings that it may name."""
    lines = [line.strip() for line in answer.split("\n")]
    for number, line in enumerate(line for line in lines if line and line != NOTHING):
        if number >= MAX_LINES:
            yield RefusedLine(line, "too many")
        else:
            yield _read(line, turns)


def _read(line: str, turns: Collection[int]) -> ExtractedLine | RefusedLine:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != 4:
        return RefusedLine(line, "form")
    category, turn, fact, words = fields
    if category not in get_args(ExtractedCategory):
        return RefusedLine(line, "category")
    named = _TURN.fullmatch(turn)
    if named is None or int(named[1]) not in turns:
        return RefusedLine(line, "turn")
    if (reason := unfit(fact, words or fact)) is not None:
        return RefusedLine(line, reason)
    return ExtractedLine(category, int(named[1]), fact, words or fact)  # type: ignore[arg-type]


def unfit(fact: str, words: str) -> RefusalReason | None:
    """Why a fact is not kept whoever said it; None where nothing speaks against it."""
    if not 0 < len(fact) <= MAX_FACT or len(words) > MAX_WORDS:
        return "length"
    if _INVISIBLE.search(fact + words):
        return "invisible"
    if mask_secrets(fact) != fact or mask_secrets(words) != words:
        return "secret"
    return "itself" if about_itself(fact) or about_itself(words) else None


# Facts about the agent, its instructions or its memory: never worth keeping, and the usual shape
# of an injection.
#
# Hygiene, not a boundary: what keeps injected text out of lasting memory is where it came from
# (`origin.py`), however it is put.

_SUBJECT = re.compile(
    r"^\W*(?:the |this |an? |your )?(?:(?:ai|llm|coding|language)[ -])?"
    r"(?:assistant|agent|ai|llm|model|chatbot|foredeck|memory|system prompt|extractor|observer)s?"
    r"(?: (?:must|should|shall|will|would|can|may|is|are|was|has|have|had|needs?|does|did)\b|\W*$)",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(r"\byou (?:must|should|shall|are (?:now|an?)|will now|have to)\b", re.I)
_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,30}"
    r"\b(?:instruction|prompt|rule|guard|polic|previous|above|earlier)",
    re.IGNORECASE,
)
_OWN_STORE = re.compile(
    r"\b(?:global|session|long[- ]term|persistent) memory\b"
    r"|\bsystem (?:prompt|message)s?\b|\bprompt injection\b",
    re.IGNORECASE,
)


def about_itself(text: str) -> bool:
    """Whether a text is about the agent, its instructions, or what it remembers."""
    patterns = (_SUBJECT, _ADDRESSED, _OVERRIDE, _OWN_STORE)
    return any(pattern.search(text) for pattern in patterns)
