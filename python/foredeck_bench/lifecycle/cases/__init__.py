"""The cases, a module for each group of them."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case
from foredeck_bench.lifecycle.cases import (
    agents,
    branches,
    compaction,
    crashes,
    files,
    forgetting,
    models,
    neighbours,
    security,
)

TITLES = {
    "1": "branches and copies",
    "2": "compaction",
    "3": "models and providers",
    "4": "crashes",
    "5": "several at once",
    "6": "living with others",
    "7": "watching files",
    "8": "security of the seam",
    "9": "growth and forgetting",
}

CASES: tuple[Case, ...] = (
    *branches.CASES,
    *compaction.CASES,
    *models.CASES,
    *crashes.CASES,
    *agents.CASES,
    *neighbours.CASES,
    *files.CASES,
    *security.CASES,
    *forgetting.CASES,
)
