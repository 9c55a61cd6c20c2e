"""The joined session, and what is found of its facts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from foredeck.context.messages.shape import find_faults
from foredeck.histories.pi import load_transcript
from foredeck_bench.facts import facts_svg, run_facts, summary_before
from foredeck_bench.long_session import SPEAKERS, join_sessions, make_facts, write_session
from replay.recordings import Recording, text


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two sessions of 40 and 20 calls."""
    made = []
    for name, turns in (("a", 20), ("b", 10)):
        recording = Recording(id=name)
        for number in range(turns):
            recording.user(f"{name}: do part {number}.")
            recording.run(f"t{number}", "bash", f"made {number}", command=f"make {name}{number}")
            recording.assistant(text(f"Part {number} of {name} is made. " * 120))
        made.append(recording.write(tmp_path / f"{name}.jsonl"))
    return made


def test_sessions_follow_each_other_until_there_are_enough_calls(paths: list[Path]) -> None:
    joined = join_sessions(paths, 100, [])
    assert len(joined.calls) == 100
    messages = [recorded.message for recorded in joined.messages]
    times = [message["timestamp"] for message in messages]
    assert times == sorted(times)
    assert not find_faults(messages[: joined.calls[-1].seen])
    assert len({recorded.entry for recorded in joined.messages}) == len(messages)


def test_facts_stand_in_early_messages_once(paths: list[Path], tmp_path: Path) -> None:
    facts = make_facts(12)
    assert len({fact.value for fact in facts}) == 12
    assert {fact.speaker for fact in facts} == {*SPEAKERS}
    joined = join_sessions(paths, 100, facts)
    texts = [str(recorded.message) for recorded in joined.messages]
    for fact in facts:
        (place,) = [n for n, said in enumerate(texts) if fact.value in said]
        assert place < 0.7 * len(texts)
    file = tmp_path / "joined.jsonl"
    write_session(joined, file)
    read = load_transcript(file)
    assert [r.message for r in read.messages] == [r.message for r in joined.messages]
    assert [c.seen for c in read.calls] == [c.seen for c in joined.calls]


def test_what_is_observed_is_found_and_plain_compaction_loses_it(paths: list[Path]) -> None:
    made = run_facts(paths, 240, 12, 80_000, eager=True)
    observed, _, plain = made["rows"]
    assert [row["invalid_prompts"] for row in made["rows"]] == [0, 0, 0]
    assert observed["questions"] > 0
    assert 0 < observed["asked"] <= 0.08 * observed["cost"]
    assert observed["found"] >= observed["in_prompt"]
    assert observed["found"] > plain["found"] == plain["in_prompt"]
    picture = ET.fromstring(facts_svg(made["rows"], "A <title>"))
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 6


def test_the_summary_of_plain_compaction_names_commits(tmp_path: Path) -> None:
    recording = Recording(id="c")
    recording.user("Commit it.")
    recording.run("t", "bash", "[main 1a2b3c4] Keep the queue", command="git commit -m 'Keep it'")
    recording.assistant(text("Done."))
    joined = join_sessions([recording.write(tmp_path / "c.jsonl")], 2, [])
    assert 'committed "Keep the queue"' in summary_before(joined, len(joined.messages))
