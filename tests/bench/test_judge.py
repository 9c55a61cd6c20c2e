"""The judge: costs by the ideal cache, evidence, and what misses cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foredeck.model.own_tools import Facility
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.records import Transcript
from foredeck_bench.judging.comparison import Way, compare
from foredeck_bench.judging.evidence import answers_of, needs_of
from foredeck_bench.judging.judge import Judge, SessionFacts
from foredeck_bench.judging.yardsticks import PLAIN, WITHOUT, compactions_at
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.pi import ASSUMED_REASONING, Calibration, calibrate, plain_prompts
from replay.recordings import Recording, call, everything, text


def recorded(tmp_path: Path, recording: Recording) -> Transcript:
    return load_transcript(recording.write(tmp_path / "one.jsonl"))


def small() -> Recording:
    recording = Recording()
    recording.user("x" * 400)
    recording.assistant(text("y" * 40))
    recording.user("z" * 40)
    recording.assistant(text("w" * 40))
    recording.user("v" * 40, wait_ms=400_000)
    recording.assistant(text("u" * 40))
    return recording


def facts_of(transcript: Transcript) -> SessionFacts:
    return SessionFacts(needs_of(transcript), [10.0] * 99, Calibration(4.0), answers_of(transcript))


def judged(transcript: Transcript, prompts: list[Any] | None = None, **more: Any) -> Judge:
    judge = Judge(facts_of(transcript), **more)
    given = prompts or list(plain_prompts(transcript, []))
    for recorded_call, prompt in zip(transcript.calls, given, strict=True):
        judge.see(recorded_call, prompt)
    return judge


def test_what_was_sent_is_read_from_the_cache_until_it_expires(tmp_path: Path) -> None:
    told = judged(recorded(tmp_path, small())).judgement
    assert told.read == pytest.approx(100)
    assert told.cost == pytest.approx(100 * 0.1 + 260 * 1.25)
    assert (told.peak, told.summed) == (140, 100 + 120 + 140)


def test_what_stands_before_the_messages_is_counted_and_cached(tmp_path: Path) -> None:
    told = judged(recorded(tmp_path, small()), more_tokens=50).judgement
    assert told.read == pytest.approx(150)
    assert told.peak == 190


def test_behind_a_summary_of_the_apis_own_reasoning_stays_and_the_summary_is_paid_for(
    tmp_path: Path,
) -> None:
    transcript = recorded(tmp_path, small())
    prompts = list(plain_prompts(transcript, []))
    prompts[2] = [{"role": "compactionSummary", "summary": "s"}, *prompts[2][3:]]
    plain, own = (judged(transcript, prompts, keeps_behind=keeps) for keeps in (False, True))
    shares = [each.judgement.reasoning.all for each in (plain, own)]
    accepted = [share.accepted / share.produced for share in shares]
    assert accepted == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    before = own.judgement.cost
    own.sum_up(10)
    assert own.judgement.cost > before + 10


def evidence_session() -> Recording:
    recording = Recording()
    recording.user("Fix it.")
    recording.run("r1", "read", "def parse_range(text):\n    return text\n# end\n", path="a/b_c.py")
    edit = {"oldText": "def parse_range(text):\n  return text", "newText": "pass"}
    recording.assistant(call("e1", "edit", path="a/b_c.py", edits=[edit]), stop="toolUse")
    recording.result("e1", "edit", text("ok"))
    recording.assistant(text("I changed parse_range."))
    return recording


def test_evidence_is_what_was_in_view_of_what_was_used(tmp_path: Path) -> None:
    told = judged(recorded(tmp_path, evidence_session())).judgement
    assert (told.edits, told.edits_seen) == (1, 1)
    assert told.names_seen == told.names == 1
    assert told.returned == 0


def test_own_words_are_what_only_earlier_answers_held(tmp_path: Path) -> None:
    recording = Recording()
    recording.user("Look at load_orders.")
    recording.assistant(text("The culprit is stale_cache, as load_orders shows; so is half_open."))
    recording.user("And now?")
    recording.run("r1", "bash", "half_open seen", command="grep half_open")
    recording.assistant(text("As I said: stale_cache, in load_orders, with half_open."))
    recording.user("Fix it.")
    recording.run("r2", "bash", "ok", command="touch stale_cache")
    recording.assistant(text("Removed stale_cache."))
    transcript = recorded(tmp_path, recording)
    needs = needs_of(transcript)
    # What a call or a result has held since is not only said any more.
    assert [sorted(each.own_words) for each in needs] == [
        [],
        ["half_open"],
        ["stale_cache"],
        ["stale_cache"],
        [],
    ]
    told = judged(transcript).judgement
    assert (told.own_words, told.own_words_seen) == (3, 3)
    silent = [
        [m for m in prompt if m["role"] != "assistant"] for prompt in plain_prompts(transcript, [])
    ]
    assert judged(transcript, silent).judgement.own_words_seen == 0


def test_a_miss_costs_a_call_and_what_comes_back_stays(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, evidence_session())
    hidden = [
        [{**m, "content": [text("gone")]} if m["role"] == "toolResult" else m for m in prompt]
        for prompt in plain_prompts(transcript, [])
    ]
    told = judged(transcript, hidden).judgement
    assert (told.edits, told.edits_seen) == (1, 0)
    assert (told.names, told.names_seen) == (1, 0)
    prompt = sum(len(t) for t in ("Fix it.", "read", "gone")) / 4
    assert told.returned == pytest.approx(300 + 10 * (1.25 + 0.1 * 2), abs=prompt)
    assert told.all_in == told.cost + told.returned


def test_a_recorded_compaction_is_what_plain_pi_sent(tmp_path: Path) -> None:
    recording = small()
    kept = recording.user("kept question")
    recording.assistant(text("answer"))
    recording.add("compaction", summary="In short: xyz.", firstKeptEntryId=kept, tokensBefore=9)
    recording.user("and now?")
    recording.assistant(text("this"))
    transcript = recorded(tmp_path, recording)
    prompts = list(plain_prompts(transcript, transcript.compactions))
    shown = [message.get("summary") or message["content"] for message in prompts[-1]]
    assert shown == ["In short: xyz.", "kept question", [text("answer")], "and now?"]
    assert len(prompts[-2]) == 7


def test_a_lower_window_cuts_between_turns_of_calls_and_results(tmp_path: Path) -> None:
    recording = Recording()
    recording.user("go")
    for number in range(20):
        recording.run(f"c{number}", "bash", "o" * 20_000, command=f"make {number}")
    recording.assistant(text("done"))
    transcript = recorded(tmp_path, recording)
    compactions = compactions_at(transcript, 50_000)
    assert len(compactions) >= 2
    for compaction in compactions:
        assert transcript.messages[compaction.kept_from].message["role"] != "toolResult"
    for prompt in plain_prompts(transcript, compactions):
        assert sum(len(str(message)) for message in prompt) / 4 < 56_000


def test_sizes_are_calibrated_by_the_usage_that_was_reported(tmp_path: Path) -> None:
    recording = Recording()
    seen = 0
    for _ in range(8):
        recording.user("x" * 300)
        seen += 300
        recording.assistant(
            text("y" * 100), usage={"input": 1000, "cacheRead": seen // 2, "cacheWrite": 0}
        )
        seen += 100
    found = calibrate(recorded(tmp_path, recording))
    assert found.chars_per_token == pytest.approx(2.0)
    assert found.head_tokens == pytest.approx(1000)
    assert calibrate(recorded(tmp_path, small())) == Calibration()


def test_replay_has_a_row_for_the_host_and_for_each_way_to_assemble(tmp_path: Path) -> None:
    session = everything().write(tmp_path / "one.jsonl")
    ways = [
        Way(ReplayOptions()),
        Way(ReplayOptions(layout="pools")),
        Way(ReplayOptions(policy="seed-window")),
        Way(ReplayOptions(policy="keep-all"), "everything"),
    ]
    rows = {row["row"]: row for row in compare([session], ways).table}
    assert {PLAIN, WITHOUT, "anchored, seed-window", "pools, adaptive"} < rows.keys()
    assert rows[PLAIN]["cost_percent"] == 100
    assert rows["everything"]["edit_evidence_percent"] == 100
    assert rows["pools, adaptive"]["cost"] > rows["anchored, seed-window"]["cost"]
    assert rows["anchored, seed-window"]["rebases"] == {"cold": 1}


def test_tools_that_are_declared_are_paid_for_and_the_others_are_not(tmp_path: Path) -> None:
    session = everything().write(tmp_path / "one.jsonl")

    def cost(*tools: Facility) -> float:
        way = Way(ReplayOptions(tools=tools), "ours")
        rows = {row["row"]: row["cost"] for row in compare([session], [way]).table}
        return float(rows["ours"])

    none, two, three = cost(), cost("context", "search"), cost("context", "search", "tasks")
    assert none < two < three
    assert cost("search", "context") == two


def test_reasoning_is_accepted_until_something_before_it_changes(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, small())
    whole = judged(transcript).judgement.reasoning
    assert whole.all.produced == whole.all.accepted == 3 * ASSUMED_REASONING
    prompts = [[*prompt] for prompt in plain_prompts(transcript, [])]
    prompts[2][2] = {**prompts[2][2], "content": "other words"}
    changed = judged(transcript, prompts).judgement.reasoning
    assert changed.all.accepted == 2 * ASSUMED_REASONING, (
        "what stands before the change is accepted"
    )
    assert changed.signed_recent.produced == 0
