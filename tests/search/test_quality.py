"""The benchmark of ranking, on a history of two sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.search.quality import NoQueries, measure_quality, read_queries
from foredeck_bench.search.scale import measure_scale

SESSIONS = {
    "11111111-0000-4000-8000-000000000001": "the parser drops trailing commas",
    "22222222-0000-4000-8000-000000000002": "colours of the status line",
}


def line(session: str, number: int, role: str, text: str) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"{session}-{number}",
        "parentUuid": f"{session}-{number - 1}" if number else None,
        "sessionId": session,
        "timestamp": f"2026-01-27T09:18:5{number % 10}.000Z",
        "cwd": "/repo",
        "version": "2.1.7",
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for session, subject in SESSIONS.items():
        lines = [
            line(session, 0, "user", f"please look at {subject}"),
            line(session, 1, "assistant", "done"),
        ]
        text = "\n".join(map(json.dumps, lines))
        (tmp_path / f"{session}.jsonl").write_text(f"{text}\n")
    rows = [f"c{n}\t{text}\t{session}" for n, (session, text) in enumerate(SESSIONS.items())]
    (tmp_path / "queries.tsv").write_text("\n".join(["commit\tquery\tsessions", *rows]) + "\n")
    return tmp_path


def test_each_session_is_found_first(folder: Path) -> None:
    found = measure_quality(folder)
    assert (found["queries"], found["texts"]) == (2, 4)
    assert found["foredeck"] == {"hit@1": 1.0, "hit@5": 1.0, "hit@10": 1.0, "mrr": 1.0}
    assert found["plain_fts5"]["hit@5"] == 1.0


def test_without_queries_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NoQueries, match=r"queries\.tsv"):
        read_queries(tmp_path / "queries.tsv")


def test_the_index_of_made_up_messages_keeps_to_its_size() -> None:
    found = measure_scale(2_000)
    assert found["messages"] == 2_000
    assert found["index_share_of_text"] < 1.2
