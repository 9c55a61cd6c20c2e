"""Logistic regression over weighted rows, and how well its scores rank. No library, no chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

Row = tuple[float, ...]
"""The features of one case; the first is 1, for the intercept."""

PENALTY = 3.0
"""On the squares of all weights but the intercept's; features are scaled before."""

ROUNDS, ENOUGH = 25, 1e-6


@dataclass(frozen=True, slots=True)
class Observed:
    """One case that did or did not come about; it stands for `weight` like it."""

    row: Row
    happened: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was fitted: the chance of a case from its features."""

    weights: Row
    """Per standard deviation of each feature."""
    middles: Row
    spreads: Row

    def chance(self, row: Row) -> float:
        """Between 0 and 1."""
        return _chance(self.weights, _scaled(row, self.middles, self.spreads))


def fit(cases: Sequence[Observed]) -> Fitted:
    """The weights by Newton's method. Raises `ValueError` without cases."""
    if not cases:
        raise ValueError("there are no cases to fit")
    middles, spreads = _scale(cases)
    scaled = [Observed(_scaled(c.row, middles, spreads), c.happened, c.weight) for c in cases]
    weights = [0.0] * len(middles)
    for _ in range(ROUNDS):
        step = _step(scaled, weights)
        weights = [weight - by for weight, by in zip(weights, step, strict=True)]
        if max(map(abs, step)) < ENOUGH:
            break
    return Fitted(tuple(weights), middles, spreads)


def area_under_curve(scored: Sequence[tuple[float, bool]]) -> float | None:
    """How often what came about has the higher score of two, ties counted half; None where all or
    nothing came about."""
    happened = sum(1 for _, yes in scored if yes)
    others = len(scored) - happened
    if not happened or not others:
        return None
    below = won = 0.0
    for _, group in groupby(sorted(scored), key=lambda each: each[0]):
        outcomes = [yes for _, yes in group]
        hits = sum(outcomes)
        won += hits * (below + (len(outcomes) - hits) / 2)
        below += len(outcomes) - hits
    return won / (happened * others)


def _scale(cases: Sequence[Observed]) -> tuple[Row, Row]:
    """Mean and deviation of each feature; the intercept stays as it is."""
    total = sum(case.weight for case in cases)
    columns = list(zip(*(case.row for case in cases), strict=True))
    counts = [case.weight for case in cases]
    middles, spreads = [0.0], [1.0]
    for column in columns[1:]:
        middle = sum(v * n for v, n in zip(column, counts, strict=True)) / total
        square = sum(n * (v - middle) ** 2 for v, n in zip(column, counts, strict=True)) / total
        middles.append(middle)
        spreads.append(math.sqrt(square) or 1.0)
    return tuple(middles), tuple(spreads)


def _scaled(row: Row, middles: Row, spreads: Row) -> Row:
    return tuple((v - m) / s for v, m, s in zip(row, middles, spreads, strict=True))


def _chance(weights: Sequence[float], row: Row) -> float:
    odds = sum(w * v for w, v in zip(weights, row, strict=True))
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, odds))))


def _step(cases: Sequence[Observed], weights: list[float]) -> list[float]:
    """What Newton's method takes off the weights."""
    size = len(weights)
    slopes = [PENALTY * weight if place else 0.0 for place, weight in enumerate(weights)]
    curves = [[PENALTY if a == b else 0.0 for b in range(size)] for a in range(size)]
    curves[0][0] = 1e-6
    for case in cases:
        chance = _chance(weights, case.row)
        off, bend = case.weight * (chance - case.happened), case.weight * chance * (1 - chance)
        for a, value in enumerate(case.row):
            slopes[a] += off * value
            bent, line = bend * value, curves[a]
            for b in range(a + 1):
                line[b] += bent * case.row[b]
    for a in range(size):
        for b in range(a):
            curves[b][a] = curves[a][b]
    return _solved(curves, slopes)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """By elimination, with the largest pivot first."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for place in range(len(rows)):
        pivot = max(range(place, len(rows)), key=lambda index: abs(rows[index][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        first = rows[place][place]
        rows[place] = [value / first for value in rows[place]]
        for index, line in enumerate(rows):
            if index != place and line[place]:
                by = line[place]
                rows[index] = [v - by * p for v, p in zip(line, rows[place], strict=True)]
    return [line[-1] for line in rows]
