"""Replaying recorded sessions: what is driven, counted and written, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import closing
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import pytest

from foredeck.errors import CommandRefused
from foredeck.model.calls import CallRecord
from foredeck.store.store import open_sqlite
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.recordings import find_recordings
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from replay.recordings import Recording, everything, text


def prompts_in(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): json.loads(path.read_bytes().decode(errors="surrogatepass"))
        for path in sorted(folder.rglob("*.json"))
    }


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return everything().write(tmp_path / "recorded" / "one.jsonl")


def test_a_call_is_every_answer_on_the_last_branch(session: Path) -> None:
    result = replay([session], ReplayOptions())["sessions"][0]
    assert result["error"] is None
    assert result["invalid_prompts"] == 0
    transcript = load_transcript(session)
    roles = [recorded.message["role"] for recorded in transcript.messages]
    assert result["calls"] == roles.count("assistant") == len(transcript.calls)
    assert result["tool_calls"] == roles.count("toolResult")
    assert "only on the branch that was left" not in json.dumps(
        [recorded.message for recorded in transcript.messages]
    )


@pytest.mark.parametrize("layout", ["anchored", "pools"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_prompts_are_the_same_twice_and_with_restarts(
    tmp_path: Path, layout: str, with_ids: bool
) -> None:
    session = everything(with_ids).write(tmp_path / "one.jsonl")
    told = []
    for number, every in enumerate([None, None, 1, 3]):
        folder = tmp_path / str(number)
        result = replay(
            [session], ReplayOptions(layout=layout, restart_every=every, prompts=folder)
        )
        assert (result["total"]["errors"], result["total"]["invalid_prompts"]) == (0, 0)
        told.append({path.name: path.read_bytes() for path in (folder / "one").iterdir()})
    assert len(told[0]) == result["total"]["calls"]
    assert told[0] == told[1] == told[2] == told[3]


def test_a_prompt_file_holds_number_time_model_and_messages(session: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    replay([session], ReplayOptions(prompts=folder))
    prompts = prompts_in(folder)
    assert list(prompts)[:2] == ["one/0001.json", "one/0002.json"]
    first = prompts["one/0001.json"]
    assert set(first) == {"call", "time_ms", "model", "messages"}
    assert (first["call"], first["model"]) == (1, "anthropic/m")
    assert first["messages"][0]["content"] == "Look at \ud83d the source, please."
    recorded = load_transcript(session).calls[0]
    assert first["time_ms"] == recorded.time_ms


def test_prompts_of_an_earlier_replay_go(session: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "one"
    folder.mkdir(parents=True)
    (folder / "9999.json").write_text("{}")
    (folder / "notes.json").write_text("{}")
    replay([session], ReplayOptions(prompts=tmp_path / "prompts"))
    assert not (folder / "9999.json").exists()
    assert (folder / "notes.json").exists()


def test_decisions_tell_of_rebases_and_of_what_is_folded(session: Path) -> None:
    # So short a session folds more than once only where a pause takes more of its patience.
    result = replay([session], ReplayOptions(settings=("adaptive.cold_factor=0.3",)))
    told = result["sessions"][0]
    assert told["decisions"]["cold"] == 1
    assert told["rebases"] == 1
    assert told["folded"] >= 2
    assert sum(told["decisions"].values()) == told["calls"]
    assert told["chars_foredeck"] < told["chars_plain"]
    assert result["total"]["decisions"] == told["decisions"]
    kept = replay([session], ReplayOptions(policy="keep-all"))["sessions"][0]
    assert (kept["folded"], kept["rebases"]) == (0, 0)


def test_settings_reach_the_engine_and_the_users_configuration_does_not(
    session: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ReplayOptions(policy="seed-window")
    narrow = replay([session], with_(options, settings=("seed_window.per_turn=1",)))
    wide = replay([session], options)["sessions"][0]
    assert narrow["sessions"][0]["folded"] > wide["folded"]
    monkeypatch.setenv("FOREDECK_SEED_WINDOW__PER_TURN", "1")
    home = tmp_path / "home"
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    assert replay([session], options)["sessions"][0] == wide
    assert not home.exists()


def test_a_store_that_is_kept_is_private_and_never_overwritten(
    session: Path, tmp_path: Path
) -> None:
    keep = tmp_path / "keep"
    replay([session], ReplayOptions(), keep=keep)
    home = keep / "one"
    assert (home / "foredeck.db").is_file()
    assert home.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandRefused, match="is there already"):
        replay([session], ReplayOptions(), keep=keep)


def test_one_file_is_replayed_once_however_it_is_named(session: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(session)
    assert find_recordings([session, session.parent, tmp_path / "link.jsonl"]) == [session]


def test_two_files_of_one_name_are_replayed_but_never_into_one_folder(
    session: Path, tmp_path: Path
) -> None:
    other = everything().write(tmp_path / "other" / "one.jsonl")
    assert replay([session, other], ReplayOptions())["total"]["sessions"] == 2
    for options, keep in (
        (ReplayOptions(prompts=tmp_path / "prompts"), None),
        (ReplayOptions(), tmp_path / "keep"),
    ):
        with pytest.raises(CommandRefused, match="have the same name"):
            replay([session, other], options, keep=keep)
    assert not (tmp_path / "prompts").exists()


def test_a_packed_file_is_replayed_as_the_plain_one_is(session: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed" / f"{session.name}.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(session.read_bytes()))
    plain, other = (replay([path], ReplayOptions())["total"] for path in (session, packed))
    assert other == plain


def test_a_file_that_is_cut_off_is_replayed_as_far_as_it_goes(session: Path) -> None:
    whole = replay([session], ReplayOptions())["sessions"][0]
    session.write_bytes(session.read_bytes()[:-200])
    cut = replay([session], ReplayOptions())["sessions"][0]
    assert (cut["error"], cut["skipped_lines"]) == (None, 1)
    assert cut["lost_lines"] == {"cut off": [len(session.read_bytes().splitlines())]}
    assert 0 < cut["calls"] < whole["calls"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no session"),
        (b"not json\n", "holds no session"),
        (b'{"type": "session", "id": "s"}\n{"type": "message", "message": 5}\n', None),
        (b'{"type": "session", "id": "s"}\n', None),
        (b"\xff\xfe\x00", "holds no session"),
    ],
)
def test_a_file_that_is_no_session_is_an_error_of_its_own(
    tmp_path: Path, content: bytes, told: str | None
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    result = replay([bad, everything().write(tmp_path / "good.jsonl")], ReplayOptions())
    first, second = result["sessions"]
    assert (told is None and first["error"] is None) or told in first["error"]
    assert first["calls"] == 0
    assert second["error"] is None
    assert result["total"]["errors"] == (told is not None)


def test_messages_that_make_no_sense_never_end_the_replay_of_the_others(tmp_path: Path) -> None:
    odd = Recording()
    odd.user(None)
    odd.message("assistant", content=7)
    odd.message("toolResult", content=[None, 5], toolCallId=4)
    odd.message("assistant", content=[{"type": "toolCall", "id": None, "arguments": "x"}])
    odd.assistant(text_of_nothing := {"type": "text"}, text_of_nothing)
    bad = odd.write(tmp_path / "odd.jsonl")
    good = everything().write(tmp_path / "one.jsonl")
    _, second = replay([bad, good], ReplayOptions())["sessions"]
    assert second["error"] is None


def test_recorded_usage_is_not_of_our_prompts(tmp_path: Path) -> None:
    recording = Recording()
    for number in range(6):
        recording.user(f"{number} " * 2000)
        recording.assistant(text("Yes."), usage={"input": 2000 * (number + 1), "output": 5})
    replay([recording.write(tmp_path / "one.jsonl")], ReplayOptions(), keep=tmp_path / "kept")
    with closing(open_sqlite(tmp_path / "kept" / "one" / "foredeck.db")) as store:
        assert store.query("calibration") == []
        assert {CallRecord(head.fields).stats.reports for head in store.query("call")} == {0}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_that_cannot_be_read_is_an_error_of_its_own(session: Path) -> None:
    session.chmod(0)
    assert "cannot be read" in replay([session], ReplayOptions())["sessions"][0]["error"]
