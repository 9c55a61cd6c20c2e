"""Full-text search over everything that is stored: a derived layer, and the questions to it."""

from __future__ import annotations

from typing import Literal, get_args

SearchedType = Literal[
    "message", "toolcall", "file", "task", "compaction", "observation", "reflection", "memory"
]

SEARCHED_TYPES: tuple[SearchedType, ...] = get_args(SearchedType)
