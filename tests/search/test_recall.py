"""The benchmark of questions to conversations, on two short ones and on real ones, and of size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.recall import NoCorpus, measure_recall, read_corpus
from foredeck_bench.recall_scale import measure_scale

LOCOMO = Path(__file__).parents[3] / "shared" / "locomo"
SAID = {
    "c1": ["where did you see the heron", "by the lake", "what else was there"],
    "c2": ["where did you see the otter", "in the river", "and what did it do"],
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
def corpus(tmp_path: Path) -> Path:
    conversations, questions = [], []
    for name, texts in SAID.items():
        session = f"{name}000000-0000-4000-8000-000000000001"
        lines = [
            line(session, n, "assistant" if n % 2 else "user", text) | {"cwd": f"/repo/{name}"}
            for n, text in enumerate(texts)
        ]
        (tmp_path / "histories" / name).mkdir(parents=True)
        stored = "".join(f"{json.dumps(one)}\n" for one in lines)
        (tmp_path / "histories" / name / f"{session}.jsonl").write_text(stored)
        first_ms = 1_769_505_530_000
        messages: list[dict[str, Any]] = [
            {"key": f"{name}/{n}", "text": text, "time_ms": first_ms + n * 1000}
            for n, text in enumerate(texts)
        ]
        sessions = [{"id": session, "messages": messages}]
        conversations.append({"id": name, "cwd": f"/repo/{name}", "sessions": sessions})
        asked = {"conversation": name, "category": "where", "evidence": [f"{name}/1"]}
        questions.append(asked | {"text": f"Where was the {texts[0].split()[-1]} seen at noon?"})
    stored = json.dumps({"conversations": conversations, "questions": questions})
    (tmp_path / "corpus.json").write_text(stored)
    return tmp_path


def test_the_answering_messages_are_looked_for_in_their_conversations(corpus: Path) -> None:
    found = measure_recall(corpus)
    assert (found["questions"], found["messages"]) == (2, 6)
    assert set(found) >= {"all", "odd", "even", "where"}
    # A reply holds no word of its question: it is found by what it answers.
    assert found["all"]["foredeck"]["hit@5"] == 100.0
    assert found["odd"]["questions"] == 1
    assert found["all"]["foredeck"]["session_hit@1"] == 100.0


def test_without_a_corpus_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NoCorpus, match=r"corpus\.json cannot be read"):
        read_corpus(tmp_path)
    (tmp_path / "corpus.json").write_text("[]")
    with pytest.raises(NoCorpus, match="is no corpus of questions"):
        read_corpus(tmp_path)


@pytest.mark.skipif(not LOCOMO.is_dir(), reason="the conversations are not there")
def test_real_conversations_are_found_better_than_by_fts5() -> None:
    found = measure_recall(LOCOMO)
    unseen = found["even"]
    assert unseen["foredeck"]["hit@10"] >= 75
    assert unseen["foredeck"]["mrr"] >= 47
    assert unseen["foredeck"]["session_hit@1"] >= 68
    assert unseen["ahead_of_fts5_hit@10"][1] > 10
    assert found["exact"]["hit@1"] >= 95


def test_the_index_of_made_up_messages_keeps_to_its_size() -> None:
    found = measure_scale(2_000)
    assert found["messages"] == 2_000
    assert found["index_share_of_text"] < 1.2
