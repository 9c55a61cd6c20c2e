"""Rate, size and latency of the index with many messages, made from the words of these sources."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import foredeck
from foredeck.derived.follower import BATCH
from foredeck.derived.layer import open_layer_file
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.layer import LAYER
from foredeck.search.searching import ranked_entries
from foredeck.search.texts import SearchedText
from foredeck.search.writing import SearchWriter, Vocabulary
from foredeck.store.sqlite.connection import immediate
from foredeck_bench.figures import peak_mb_of, quantile

CHARS = 1200
QUERIES = 200
_NAME = re.compile(r"\w+(?:[./]\w+)*")


def measure_scale(messages: int, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Indexes messages of 1.2 KB and asks two hundred queries."""
    lines = _lines()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="foredeck-search-") as scratch:
        path = Path(scratch) / "search.sqlite"
        with closing(open_layer_file(path)) as db:
            with immediate(db):
                LAYER.create(db)
            seconds, cpu_s, size = _write(db, messages, lines, chance, advance)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            times, cpu_times = _ask(SearchIndex(db), lines, chance)
            return {
                "messages": messages,
                "text_bytes": size,
                "messages_per_s": round(messages / seconds),
                "messages_per_cpu_s": round(messages / cpu_s),
                "index_share_of_text": round(path.stat().st_size / size, 2),
                "latency_ms": quantiles(times),
                "latency_cpu_ms": quantiles(cpu_times),
                "peak_mb": round(peak_mb_of(os.getpid()) or 0),
            }


def quantiles(times: list[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {name: round(quantile(times, share), 1) for name, share in (("p50", 0.5), ("p95", 0.95))}


def _lines() -> list[str]:
    root = Path(foredeck.__file__).parent
    texts = (path.read_text() for path in sorted(root.rglob("*.py")))
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


def _messages(count: int, lines: list[str], chance: random.Random) -> Iterator[SearchedText]:
    for number in range(count):
        parts: list[str] = []
        length = 0
        while length < CHARS:
            line = chance.choice(lines)
            # Every text names something of its own, as real ones do.
            parts.append(line if chance.random() < 0.98 else f"{line} made_up_{chance.random()}")
            length += len(parts[-1]) + 1
        text = "\n".join(parts)
        input_text, output = (text, "") if number % 2 else ("", text)
        yield SearchedText(
            document=f"turn:session-{number // 200}:{number % 200}",
            token=f"bench-{number}",
            part="",
            digest=str(number),
            type="message" if number % 2 else "toolcall",
            role="assistant" if number % 2 else "bash",
            object="",
            time_ms=1_770_000_000_000 + number * 1000,
            session=f"session-{number // 200}",
            said=input_text,
            output=output,
        )


def _write(
    db: sqlite3.Connection,
    messages: int,
    lines: list[str],
    chance: random.Random,
    advance: Callable[[], None],
) -> tuple[float, float, int]:
    vocabulary = Vocabulary()
    rows_made = _messages(messages, lines, chance)
    seconds, cpu_s, size = 0.0, 0.0, 0
    for first in range(0, messages, BATCH):
        batch = [
            text for text, _ in zip(rows_made, range(min(BATCH, messages - first)), strict=False)
        ]
        size += sum(len(text.said) + len(text.output) for text in batch)
        start, cpu_start = time.perf_counter(), time.process_time()
        with immediate(db):
            writer = SearchWriter(db, vocabulary)
            writer.add(batch)
            writer.finish()
        seconds += time.perf_counter() - start
        cpu_s += time.process_time() - cpu_start
        advance()
    return seconds, cpu_s, size


def _ask(
    index: SearchIndex, lines: list[str], chance: random.Random
) -> tuple[list[float], list[float]]:
    times, cpu_times = [], []
    for _ in range(QUERIES):
        words = [word for word in _NAME.findall(chance.choice(lines)) if len(word) > 3]
        query = " ".join(chance.sample(words, min(len(words), chance.randint(2, 4))))
        start, cpu_start = time.perf_counter(), time.process_time()
        ranked_entries(index, query, Filters(), 10)
        times.append(1000 * (time.perf_counter() - start))
        cpu_times.append(1000 * (time.process_time() - cpu_start))
    return times, cpu_times
