"""What searching is compared with: SQLite's FTS5 and BM25, with nothing added.

Both look for any word of a query and give the numbers of the texts that hold one, the best first.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from foredeck.model.names import WORD

PlainOrder = Callable[[str], list[int]]

_K1, _B = 1.2, 0.75


def plain_fts5(texts: Sequence[str], tokenizer: str = "unicode61") -> PlainOrder:
    """One column, ordered by FTS5's own rank."""
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = '{tokenizer}')")
    encodable = ((n, text.encode("utf-8", "replace").decode()) for n, text in enumerate(texts))
    db.executemany("INSERT INTO plain (rowid, text) VALUES (?, ?)", encodable)

    def order(query: str) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query)))
        rows = db.execute("SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank", (match,))
        return [id for (id,) in rows]

    return order


def plain_bm25(texts: Sequence[str]) -> PlainOrder:
    """Words as they are written, in lower case."""
    counts = [Counter(WORD.findall(text.lower())) for text in texts]
    lengths = [count.total() for count in counts]
    mean = max(1.0, sum(lengths) / max(1, len(lengths)))
    holders: dict[str, list[int]] = defaultdict(list)
    for number, count in enumerate(counts):
        for word in count:
            holders[word].append(number)

    def order(query: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(WORD.findall(query.lower())):
            held = holders.get(word, [])
            rarity = math.log(1 + (len(texts) - len(held) + 0.5) / (len(held) + 0.5))
            for number in held:
                often = counts[number][word]
                length = _K1 * (1 - _B + _B * lengths[number] / mean)
                scores[number] += rarity * often * (_K1 + 1) / (often + length)
        return sorted(scores, key=lambda number: (-scores[number], number))

    return order
