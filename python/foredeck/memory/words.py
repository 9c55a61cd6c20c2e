"""Compares short texts by words: likeness, contradiction, and claims to last."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.model.names import WORD, words_in


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EMPTY = _split("""\
a an and are as at be been but by can do does for from had has have he her his i if in
into is it its me my no of on or our she so than that the their them then there these
they this those to us was we were what when which who will with would you your""")
_FRAME = _split("""\
user users prefers prefer preferred wants want wanted likes like asked asks asking says
said stated states decided decides decision chose chosen project team session please
always should must uses use used using""")
"""Frame words of third-person facts, without content."""
_ENDINGS = ("ing", "ed", "es", "s")

_LASTING = re.compile(
    r"\b(?:"
    r"always|never|prefer(?:s|red)?|(?:don'?t|do not) (?:ever|like|use|want)|from now on|by default"
    r"|in (?:future|general)|generally|usually|every time|whenever|remember|as a rule"
    r"|(?:i|we) (?:like|hate|use|avoid|want)"
    r"|(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|chose)"
    r"|let'?s (?:stick|go|use|keep)|our (?:convention|standard|policy|rule)s?"
    r"|immer|nie(?:mals)?|bevorzuge\w*|ab (?:jetzt|sofort)|in zukunft|grunds\u00e4tzlich|merk dir"
    r"|wir (?:nutzen|verwenden|haben (?:beschlossen|entschieden))"
    r"|toujours|jamais|pr\u00e9f\u00e8re|d\u00e9sormais|dorénavant|siempre|nunca|prefiero|sempre|mai|preferisco"
    r"|prefiro|altijd|nooit|zawsze|nigdy"
    r")\b",
    re.IGNORECASE,
)
_LASTING_UNSPACED = re.compile(
    "\u3044\u3064\u3082|\u5e38\u306b|\u5fc5\u305a|\u4eca\u5f8c|\u3053\u308c\u304b\u3089|\u597d\u307f|\u597d\u304d|\u65b9\u91dd"
    "|\u6c7a\u3081|\u603b\u662f|\u59cb\u7ec8|\u6c38\u8fdc|\u4ece\u4e0d|\u4eca\u540e|\u4ee5\u540e|\u559c\u6b22|\u504f\u597d|\u51b3\u5b9a"
    "|\ud56d\uc0c1|\uc808\ub300|\uc55e\uc73c\ub85c|\uc120\ud638"
)

SAME, NEAR = 0.8, 0.2
"""Likeness of equal facts, and of facts to show together."""
SHOWN = 3
_NEGATIONS = frozenset(
    ("no", "not", "never", "without", "avoid", "dont", "stop", "nicht", "kein", "nie", "pas")
)


def folded(text: str) -> str:
    return " ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def content_words(text: str) -> list[str]:
    words = (word for word in words_in(text) if word not in _EMPTY and word not in _FRAME)
    return list(dict.fromkeys(_stem(word) for word in words))


def all_words(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words_in(text))


def share_in(words: Collection[str], of: Collection[str]) -> float:
    return sum(word in of for word in words) / len(words) if words else 0.0


def likeness(one: Collection[str], other: Collection[str]) -> float:
    together = len({*one, *other})
    return len({*one} & {*other}) / together if together else 0.0


@dataclass(frozen=True, slots=True)
class KnownFact:
    """An existing fact: kept, waiting or refused."""

    id: str
    text: str
    state: Literal["kept", "waiting", "refused"] = "kept"
    stated: bool = False
    """Whether the user stated it."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """What is known beside a new fact: the same, contradicting, and nearest entries."""

    same: KnownFact | None
    contradicts: KnownFact | None
    nearest: tuple[KnownFact, ...]


def compare(text: str, known: Iterable[KnownFact]) -> FactComparison:
    """What is known about a fact; of equals the first."""
    words = content_words(text)
    ranked = sorted(
        ((likeness(words, content_words(other.text)), other) for other in known),
        key=lambda pair: -pair[0],
    )
    same = next((other for much, other in ranked if _says_the_same(text, other.text, much)), None)
    similar = [(much, other) for much, other in ranked if other.state == "kept"]
    against = next(
        (other for _, other in similar if same is None and contradicts(text, other.text)), None
    )
    near = tuple(other for much, other in similar if much >= NEAR)[:SHOWN]
    return FactComparison(same, against, near)


def contradicts(one: str, other: str) -> bool:
    """Whether two facts differ in one word, or by a negation."""
    # It is what words alone show; what it misses is kept beside the other entry, and the user
    # decides.
    if _negated(one) != _negated(other):
        return likeness(_plain(one), _plain(other)) >= SAME
    first, second = _plain(one), _plain(other)
    shared = {*first} & {*second}
    differ = len({*first} - shared), len({*second} - shared)
    return len(shared) >= 2 and differ == (1, 1)


_HAPPENED = (
    r"\w+ed|are|did|found|forgot|got|had|has|heard|knew|ran|said|saw|seen|thought|understood|was|were"
    r"|wrote|breaks|crashes|ends|fails|gets|gives|goes|hangs|happens|prints|returns|says|seems|shows"
    r"|takes|throws|works|an?|the"
)
"""After "always" or "never" these report instead of ruling."""
_HAPPENS = rf"{_HAPPENED}|am|forget|get|have|know|see"
"""The same after "I" and "we"."""
_RULE = re.compile(
    r"^(?:please |and |but |so )*(?:"
    rf"(?:always|never)\b(?=\W+\w)(?!\W+(?:{_HAPPENED}|mind)\b)"
    r"|(?:as a rule|by default|immer|nie(?:mals)?|toujours|jamais|siempre|nunca|sempre|mai|altijd"
    r"|nooit|zawsze|nigdy)\b)"
    r"|\b(?:from now on|ab (?:jetzt|sofort)|d\u00e9sormais)\b"
    rf"|\b(?:i|we) (?:(?:always|never) (?!(?:{_HAPPENS})\b)|prefer\b)",
    re.IGNORECASE,
)
_OF_A_PROJECT = re.compile(
    r"\b(?:we|our|us|here|this|project|repo(?:sitory)?|wir|unser\w*|hier|nous|notre|ici)\b", re.I
)


def states_a_rule(sentence: str) -> bool:
    """Whether a user's sentence states a rule."""
    # Stricter than `says_it_lasts`: nobody has judged beforehand that it is worth keeping.
    return bool(_RULE.search(sentence) or _LASTING_UNSPACED.match(sentence))


def is_of_project(sentence: str) -> bool:
    """Whether a rule is about the work, not only its user."""
    return bool(_OF_A_PROJECT.search(sentence))


def says_it_lasts(sentence: str) -> bool:
    """Whether a user's sentence says that it lasts, in known languages."""
    # Only the user may say so: an extractor that obeys a web page would call any order of the
    # user's a preference.
    return bool(
        _LASTING.search(sentence.replace("\u2019", "'")) or _LASTING_UNSPACED.search(sentence)
    )


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.isascii() and word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _says_the_same(one: str, other: str, much: float) -> bool:
    alike = folded(one) == folded(other) or much >= SAME
    return alike and _negated(one) == _negated(other)


def _plain(text: str) -> Sequence[str]:
    return [word for word in content_words(text) if word not in _NEGATIONS]


def _negated(text: str) -> bool:
    return not _NEGATIONS.isdisjoint(folded(text.replace("'", "")).split())
