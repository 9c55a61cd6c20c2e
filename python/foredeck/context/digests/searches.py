"""Facts of a search or listing: how much was found, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

_HIT = re.compile(r"^(.+?)[:-]\d+[:-]")
MAX_FILES = 4


def search_facts(arguments: Mapping[str, Any], text: str) -> str:
    """`12 hits in 3 files: a.ts 8, b.ts 3, c.ts 1`, or `40 entries` of a listing."""
    del arguments
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("[")]
    files = Counter(hit[1] for line in lines if (hit := _HIT.match(line)))
    if not files:
        return f"{len(lines)} entries" if len(lines) > 1 else ""
    ranked = sorted(files.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{name} {count}" for name, count in ranked[:MAX_FILES])
    more = ", ..." if len(ranked) > MAX_FILES else ""
    plural = "" if len(files) == 1 else "s"
    return f"{sum(files.values())} hits in {len(files)} file{plural}: {told}{more}"
