"""Facts about the agent, its instructions or its memory: never worth keeping, and the usual shape
of an injection.

Hygiene, not a boundary: what keeps injected text out of lasting memory is where it came from
(`origin.py`), however it is put.
"""

from __future__ import annotations

import re

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
    """Whether a text is about the agent, what it is told, or what it remembers."""
    patterns = (_SUBJECT, _ADDRESSED, _OVERRIDE, _OWN_STORE)
    return any(pattern.search(text) for pattern in patterns)
