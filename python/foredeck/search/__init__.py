"""Full-text search over the store."""

from __future__ import annotations

from typing import Literal, get_args

SearchedType = Literal[
    "message", "toolcall", "file", "task", "compaction", "observation", "reflection", "memory"
]

SEARCHED_TYPES: tuple[SearchedType, ...] = get_args(SearchedType)
