"""The order of hits in indexes of a thousand to 65,000 entries, beside one that is worked out from
the texts alone, entry by entry."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from foredeck.derived.layer import open_layer_file
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.layer import LAYER
from foredeck.search.ranking import NEAR, PRIOR, WEAK_SCORE, WEAK_WORDS, WEIGHTS
from foredeck.search.searching import ranked_entries
from foredeck.search.texts import SearchedText
from foredeck.search.writing import SearchWriter, Vocabulary
from foredeck.store.sqlite.connection import immediate

PER_SESSION = 40
FIRST = 20
TIME_MS = 1_770_000_000_000


Scored = tuple[float, float, int, int, int]
"""Score, own score, words that it has, number, words that it has or that are near it."""


@dataclass(frozen=True)
class Made:
    """Texts of made-up words, some common and most rare, in sessions of two projects, and their
    index. No word has an ending that stemming would take off."""

    index: SearchIndex
    texts: Sequence[Counter[str]]

    def session(self, number: int) -> str:
        return f"s{number // PER_SESSION}"

    def project(self, number: int) -> bool:
        return number // PER_SESSION % 2 == 0

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple({self.session(n): None for n in range(len(self.texts)) if self.project(n)})

    def by_hand(self, words: Sequence[str], *, scoped: bool) -> list[int]:
        """The best entries, by the formula: all texts, all words."""
        size = len(self.texts)
        mean = sum(text.total() for text in self.texts) / size
        searched = [n for n in range(size) if not scoped or self.project(n)]
        strengths, rarities = [], []
        for word in words:
            held = {n: self._strength(n, word, mean) for n in searched if word in self.texts[n]}
            share = sum(word in text for text in self.texts) / size
            few, many = len(held), len(searched)
            if scoped:
                few, many = few + PRIOR * share, many + PRIOR
            strengths.append(held)
            rarities.append(math.log(1 + (many - few + 0.5) / (few + 0.5)))
        best: list[Scored] = []
        reach = range(-len(NEAR), len(NEAR) + 1)
        promising = {n + place for held in strengths for n in held for place in reach}
        for n in promising.intersection(searched):
            own = lent = 0.0
            for held, rarity in zip(strengths, rarities, strict=True):
                near = max(self._near(n, held))
                own += rarity * held.get(n, 0.0)
                lent += rarity * max(held.get(n, 0.0), near)
            if lent:
                count = sum(n in held for held in strengths)
                about = sum(any(self._near(n, held)) or n in held for held in strengths)
                best.append((lent * self._weight(n), own, count, n, about))
        return self._ordered(best, len(words))

    def _ordered(self, best: list[Scored], words: int) -> list[int]:
        """What lacks a word after each that has all, and as much by itself; nothing that is weak
        beside the first."""
        complete = [one for one in best if one[2] == words]

        def place(one: Scored) -> tuple[float, bool, float, int]:
            score, own, count, n, _ = one
            above = [other[0] for other in complete if count < words and other[1] >= own]
            return -min([score, *above]), bool(above), -score, -n

        ordered = [one for one in sorted(best, key=place) if one[2] or not complete]
        first = ordered[0]
        return [
            one[3]
            for one in ordered
            if one[4] > first[4] * WEAK_WORDS or -place(one)[0] >= first[0] * WEAK_SCORE
        ]

    def _strength(self, number: int, word: str, mean: float) -> float:
        often = 2.0 * self.texts[number][word]
        length = self.texts[number].total()
        return often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / mean))

    def _near(self, number: int, held: dict[int, float]) -> Iterator[float]:
        yield 0.0
        for distance, share in enumerate(NEAR, 1):
            for other in (number - distance, number + distance):
                if other >= 0 and self.session(other) == self.session(number):
                    yield share * held.get(other, 0.0)

    def _weight(self, number: int) -> float:
        return WEIGHTS["user" if number % 2 else "assistant"]


@contextmanager
def made(path: Path, size: int) -> Iterator[Made]:
    chance = random.Random(size)
    words = [f"{a}{b}{c}{b}k" for a in "bdfgmnprtvz" for b in "aou" for c in "bdfghjklmnprtvz"]
    common = [1 / (place + 3) for place in range(len(words))]
    texts = [Counter(chance.choices(words, common, k=chance.randint(3, 12))) for _ in range(size)]
    with closing(open_layer_file(path)) as db:
        index = Made(SearchIndex(db), texts)
        with immediate(db):
            LAYER.create(db)
            writer = SearchWriter(db, Vocabulary())
            writer.add(
                SearchedText(
                    *(f"turn:{n}", "t", "", str(n), "message"),
                    *("user" if n % 2 else "assistant", "", TIME_MS),
                    session=index.session(n),
                    said=" ".join(text.elements()),
                )
                for n, text in enumerate(texts)
            )
            writer.finish()
        yield index


def first(index: Made, words: Sequence[str], *, scoped: bool) -> tuple[list[int], list[str]]:
    """The first entries, from 0, and the words that were looked for."""
    filters = Filters(index.sessions if scoped else None)
    found = ranked_entries(index.index, " ".join(words), filters, FIRST)
    assert not found.plan.is_part
    return [one.id - 1 for one in found.best[:FIRST]], [term.text for term in found.plan.terms]


def queries(index: Made) -> list[list[str]]:
    """Words of texts, common ones with rare ones."""
    chance = random.Random(1)
    texts = chance.sample(
        [text for text in index.texts if len(text) > 6], 3 if len(index.texts) > 1_000 else 12
    )
    return [chance.sample(sorted(text), 2 + n % 3) for n, text in enumerate(texts)]


@pytest.mark.parametrize("size", [1_000, 20_000, 65_000])
def test_the_order_is_that_of_all_texts(tmp_path: Path, size: int) -> None:
    with made(tmp_path / "index", size) as index:
        for words in queries(index):
            for scoped in (False, True):
                found, looked = first(index, words, scoped=scoped)
                if size <= 20_000:
                    assert set(looked) == set(words)
                assert found == index.by_hand(looked, scoped=scoped)[:FIRST], words


def test_a_large_project_has_its_hits_scored_however_common_the_words(tmp_path: Path) -> None:
    with made(tmp_path / "index", 45_000) as index:
        counts = Counter(word for text in index.texts for word in text)
        words = [word for word, _ in counts.most_common(40)] + [min(counts, key=counts.__getitem__)]
        found, looked = first(index, words, scoped=True)
        assert words[-1] in looked
        assert len(looked) < len(words)
        assert found == index.by_hand(looked, scoped=True)[:FIRST]
