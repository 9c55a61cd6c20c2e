"""Entries like a new fact: the same again, one that it contradicts, and the nearest others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.memory.words import content_words, folded, likeness

SAME, NEAR = 0.8, 0.2
"""How alike two facts are that say the same; that are worth showing beside each other."""
SHOWN = 3
_NEGATIONS = frozenset(
    ("no", "not", "never", "without", "avoid", "dont", "stop", "nicht", "kein", "nie", "pas")
)


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact that is there already: kept, waiting to be accepted, or refused."""

    id: str
    text: str
    state: Literal["kept", "waiting", "refused"] = "kept"
    stated: bool = False
    """The user stated it."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """What is known beside a new fact.

    same         says the same
    contradicts  says something else of the same thing, and is kept
    nearest      the kept entries most like it, the likest first
    """

    same: KnownFact | None
    contradicts: KnownFact | None
    nearest: tuple[KnownFact, ...]


def compare(text: str, known: Iterable[KnownFact]) -> FactComparison:
    """Look for what is known of a fact; the first of several as alike."""
    words = content_words(text)
    ranked = sorted(
        ((likeness(words, content_words(other.text)), other) for other in known),
        key=lambda pair: -pair[0],
    )
    same = next((other for much, other in ranked if _says_the_same(text, other.text, much)), None)
    kept = [(much, other) for much, other in ranked if other.state == "kept"]
    against = next(
        (other for _, other in kept if same is None and contradicts(text, other.text)), None
    )
    near = tuple(other for much, other in kept if much >= NEAR)[:SHOWN]
    return FactComparison(same, against, near)


def contradicts(one: str, other: str) -> bool:
    """Whether two short facts differ in one word of several, or only in that one is a negation.

    It is what words alone show; what it misses is kept beside the other entry, and the
    user decides.
    """
    if _negated(one) != _negated(other):
        return likeness(_plain(one), _plain(other)) >= SAME
    first, second = _plain(one), _plain(other)
    shared = {*first} & {*second}
    differ = len({*first} - shared), len({*second} - shared)
    return len(shared) >= 2 and differ == (1, 1)


def _says_the_same(one: str, other: str, much: float) -> bool:
    alike = folded(one) == folded(other) or much >= SAME
    return alike and _negated(one) == _negated(other)


def _plain(text: str) -> Sequence[str]:
    return [word for word in content_words(text) if word not in _NEGATIONS]


def _negated(text: str) -> bool:
    return not _NEGATIONS.isdisjoint(folded(text.replace("'", "")).split())
