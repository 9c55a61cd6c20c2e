"""Rebases that pay, over a long warm session: recorded with their reason, and stable."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.hosts.protocol import ToolCallParams
from foredeck.model.call_values import Decision
from foredeck.model.calls import in_order
from foredeck.store.place import open_store
from foredeck_agents.histories.pi import load_transcript
from foredeck_bench.judging.comparison import Way, compare
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from foredeck_lab.replay_command import replay
from replay.recordings import Recording, call, text

SETTINGS = ("seed_window.per_turn=2", "rebase.guard=0.5")


def long_session() -> Recording:
    recording = Recording()
    recording.user("Work.")
    for number in range(30):
        size = 20_000 if number < 6 else 300
        recording.run(f"r{number}", "bash", f"{number} " * (size // 3), command=f"make {number}")
    recording.user("More.")
    for number in range(60):
        if number % 10 == 0:
            old = {"oldText": f"line {number}\n" * 40, "newText": "new\n" * 50}
            recording.assistant(
                {"type": "thinking", "thinking": "Hm. " * 100},
                call(f"e{number}", "edit", path="a.py", edits=[old]),
                stop="toolUse",
            )
            recording.result(f"e{number}", "edit", text("ok"))
        recording.run(f"s{number}", "bash", f"{number}\n" * 40, command=f"test {number}")
    recording.user("Again.", wait_ms=3_600_000)
    recording.assistant(text("Done."))
    return recording


def decisions(home: Path, options: ReplayOptions) -> list[Decision]:
    with closing(open_store(options.config(home))) as store:
        records = in_order(head.fields for head in store.query("call"))
    return [record.decision for record in records]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return long_session().write(tmp_path / "long.jsonl")


def test_a_rebase_that_pays_says_what_it_weighed(session: Path, tmp_path: Path) -> None:
    options = ReplayOptions(policy="seed-window", settings=SETTINGS)
    told = replay([session], options, keep=tmp_path / "keep")
    paid = [d for d in decisions(tmp_path / "keep" / "long", options) if d.reason == "pays"]
    assert paid
    weighed = [decision.weighed for decision in paid]
    assert all(w["carrying_cost"] >= w["rewrite_cost"] - 1 for w in weighed)
    assert told["total"]["decisions"]["pays"] == len(paid)
    rows = {row["row"]: row for row in compare([session], [Way(options)]).table}
    never = compare([session], [Way(ReplayOptions(policy="keep-all"))]).table
    assert rows["anchored, seed-window"]["cost"] < next(
        row["cost"] for row in never if row["row"] == "anchored, keep-all"
    )


def test_the_guard_forbids_what_would_put_the_session_behind(session: Path) -> None:
    settings = (*SETTINGS[:1], "rebase.guard=0", "rebase.carrying_factor=0")
    options = ReplayOptions(policy="seed-window", settings=settings)
    rows = compare([session], [Way(options)]).table
    without = next(row["cost"] for row in rows if row["row"] == "plain Pi, no compaction")
    ours = next(row["cost"] for row in rows if row["row"] == "anchored, seed-window")
    assert ours <= without * 1.02


@pytest.mark.long
@pytest.mark.parametrize("policy", ["seed-window", "adaptive"])
def test_prompts_around_rebases_survive_restarts(
    session: Path, tmp_path: Path, policy: str
) -> None:
    told = []
    for number, every in enumerate([None, 1, 7]):
        folder = tmp_path / str(number)
        options = ReplayOptions(
            policy=policy, settings=SETTINGS, restart_every=every, prompts=folder
        )
        result = replay([session], options)
        assert (result["total"]["errors"], result["total"]["invalid_prompts"]) == (0, 0)
        assert result["total"]["rebases"] > 0
        told.append({path.name: path.read_bytes() for path in (folder / "long").iterdir()})
    assert told[0] == told[1] == told[2]


def test_folded_arguments_are_valid_and_name_a_handle(session: Path, tmp_path: Path) -> None:
    settings = (*SETTINGS, "adaptive.fold_runs_after=0")
    options = ReplayOptions(policy="adaptive", settings=settings, prompts=tmp_path / "prompts")
    assert replay([session], options)["total"]["invalid_prompts"] == 0
    last = max((tmp_path / "prompts" / "long").iterdir())
    edits = [
        block["arguments"]["edits"][0]
        for message in json.loads(last.read_text())["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
        if block.get("name") == "edit"
    ]
    assert len(edits) == 6
    folded = [e for e in edits if e["oldText"].startswith("<activate @")]
    assert folded
    assert all("chars folded>" in e["oldText"] and "new" in e["newText"] for e in folded)
    thoughts = "Hm. Hm."
    assert thoughts in session.read_text()
    assert last.read_text().count(thoughts) < 6 * 50


def test_a_folded_argument_is_brought_back_whole(session: Path, tmp_path: Path) -> None:
    settings = (*SETTINGS, "adaptive.fold_runs_after=0")
    options = ReplayOptions(policy="adaptive", settings=settings)
    transcript = load_transcript(session)
    with closing(ReplayedSession(tmp_path / "home", transcript, options)) as host:
        shown = json.dumps([host.call(call)[0] for call in transcript.calls][-1])
        handle = shown[shown.index("<activate @") + 10 :].partition(":")[0]
        assert "line 0\\nline 0" not in shown
        answer = host.engine.tool_call(
            ToolCallParams(session=transcript.id, tool="activate", input={"id": handle}, id="t")
        )
    assert "line 0\\nline 0" in answer["text"]
    assert answer["text"].endswith("result:\nok")
    assert answer["details"]["foredeck"]["form"] == "full"
