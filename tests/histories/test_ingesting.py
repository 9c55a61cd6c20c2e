"""Histories in a store: what is there after a reading, a second one, a killed one."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_codex import LINES as CODEX_LINES
from test_pi_history import LINES as PI_LINES
from written_histories import (
    SESSION,
    START_MS,
    ClaudeCode,
    Line,
    claude_code_session,
    said,
    state_of,
    use,
    write_lines,
)

from foredeck.context.state.stored_chat import chat_fields, render_chat
from foredeck.store.store import Store, open_sqlite
from foredeck_agents.histories.ingesting import Report, ingest_files


def file_bytes(history: ClaudeCode) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in history.lines).encode()


def ingest(store: Store | None, *files: Path, dry: bool = False) -> Report:
    return ingest_files(store, files, dry=dry)


def test_a_history_becomes_a_session_like_any_other(tmp_path: Path, store: Store) -> None:
    file = write_lines(tmp_path / "h" / "a.jsonl", claude_code_session().lines)
    report = ingest(store, file)
    assert (report.new, report.messages, report.tool_calls) == (1, 5, 3)
    fields = store.head(f"session:{SESSION}").fields
    assert (fields["harness"], fields["cwd"], fields["host_file"]) == (
        "claude-code",
        "/repo",
        str(file),
    )
    assert fields["provenance"]["origin"] == f"claude-code {file}"
    assert fields["ingested"]["first_ms"] == START_MS + 1000
    edit = store.head("toolu_c")
    assert edit.fields["args"]["new_string"] == "2"
    assert (edit.fields["tool"], edit.fields["status"]) == ("Edit", "fail")
    assert edit.fields["turn_ref"] == f"turn:{SESSION}:2"
    assert edit.fields["provenance"] == {
        "origin": f"claude-code {file}",
        "generator": "tool",
        "parent_refs": [],
        "at_ms": START_MS + 10_000,
    }
    assert render_chat(store, SESSION, 3) == (
        "--- user\nHow many lines has src/a.py?\n--- thinking\nCount them, and look.\n"
        "--- assistant\nLet me count.\n"
        '--- toolcall @1 tool=Bash args="wc -l src/a.py" status=ok\n'
        '--- toolcall @2 tool=Read args="src/a.py" status=ok\n'
        "--- user\nChange two to 2.\n"
        '--- toolcall @4 tool=Edit args="src/a.py" status=fail\n'
        "--- assistant\nIt is not there.\n"
    )
    assert [turn["user_turn"] for turn in chat_fields(store, SESSION, 3)["turns"]] == [1, 2, 2]


def test_reading_again_changes_nothing(tmp_path: Path, store: Store) -> None:
    file = write_lines(tmp_path / "a.jsonl", claude_code_session().lines)
    ingest(store, file)
    before = store.latest()
    for _ in range(2):
        report = ingest(store, file)
        assert (report.unchanged, report.messages, report.new) == (1, 0, 0)
        os.utime(file, ns=(time.time_ns(), time.time_ns()))
    assert store.latest() == before
    packed = tmp_path / "elsewhere.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert ingest(store, packed).unchanged == 1
    assert store.latest() == before


@pytest.mark.parametrize("cut", range(1, 13))
def test_a_file_that_has_grown_gives_its_new_part(tmp_path: Path, store: Store, cut: int) -> None:
    """Wherever it was cut, even within an answer, the state is that of one reading."""
    lines = claude_code_session().lines
    file = write_lines(tmp_path / "a.jsonl", lines[:cut])
    first = ingest(store, file)
    write_lines(file, lines)
    second = ingest(store, file)
    assert first.tool_calls + second.tool_calls == 3
    whole = open_sqlite(tmp_path / "whole.db")
    ingest(whole, file)
    assert state_of(store)["turns"] == state_of(whole)["turns"]
    assert state_of(store) == state_of(whole)
    whole.close()


def test_a_result_that_comes_late_finds_its_turn(tmp_path: Path, store: Store) -> None:
    history = ClaudeCode()
    history.user("Run it.")
    history.answer("m1", use("slow", "Bash", command="make"))
    history.user("And hurry.")
    file = write_lines(tmp_path / "a.jsonl", history.lines)
    ingest(store, file)
    history.result("slow", "done")
    history.answer("m2", said("It is done."))
    write_lines(file, history.lines)
    report = ingest(store, file)
    assert (report.grown, report.messages, report.tool_calls) == (1, 1, 1)
    head = store.head("slow")
    assert (head.fields["turn_ref"], head.fields["position"]) == (f"turn:{SESSION}:1", 0)
    assert head.fields["args"] == {"command": "make"}
    assert render_chat(store, SESSION, 2).endswith("And hurry.\n--- assistant\nIt is done.\n")


def test_a_rewritten_file_is_left_alone(tmp_path: Path, store: Store) -> None:
    history = claude_code_session()
    file = write_lines(tmp_path / "a.jsonl", history.lines)
    ingest(store, file)
    before = store.latest()
    history.lines[1]["message"]["content"] = "Something else"
    history.user("More.")
    write_lines(file, history.lines)
    report = ingest(store, file)
    assert f"before, from {file}:" in next(iter(report.skipped.values()))
    write_lines(file, history.lines[:4])
    report = ingest(store, file)
    assert f"before, from {file}:" in next(iter(report.skipped.values()))
    assert (report.unchanged, report.files.total()) == (0, 0)
    assert store.latest() == before


def test_a_dry_run_counts_and_stores_nothing(tmp_path: Path, store: Store) -> None:
    file = write_lines(tmp_path / "a.jsonl", claude_code_session().lines)
    report = ingest(store, file, dry=True)
    assert (report.new, report.messages, report.tool_calls) == (1, 5, 3)
    assert store.latest() is None
    assert ingest(None, file, dry=True) == report
    assert ingest(store, file) == report


def test_hostile_input_is_counted(tmp_path: Path, store: Store) -> None:
    good = json.dumps(claude_code_session().lines[1]).encode()
    deep = b'{"a":' * 150 + b"1" + b"}" * 150
    odd = [
        b"\xef\xbb\xbf" + good,
        b"not json",
        b"[1, 2]",
        b'{"type": "user", "text": "\xff\xfe"}',
        b'{"n": NaN}',
        b'{"n": 1e999}',
        b"[" * 100_000,
        deep,
        b"",
        good.replace(b"How", b"\\ud83d \\u0000 How").replace(b'"u1"', b'"u2"'),
        b'{"type": "user", "sess',
    ]
    file = tmp_path / "odd.jsonl"
    file.write_bytes(b"\n".join(odd))
    report = ingest(store, file)
    assert (report.new, report.messages) == (1, 2)
    assert report.unreadable == {
        "not JSON": 4,
        "not a JSON object": 1,
        "not UTF-8": 1,
        "nested too deep": 1,
        "cut off": 1,
    }


def test_files_that_are_no_histories_are_named(tmp_path: Path, store: Store) -> None:
    whole = gzip.compress(file_bytes(claude_code_session()))
    files = {
        "torn.gz": whole[: len(whole) // 2],
        "empty.jsonl": b"",
        "other.jsonl": b'{"type": "event"}\n',
        "image.png": b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(5000),
        "damaged.gz": b"\x1f\x8b" + bytes(100),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe.jsonl")
    others = ("missing.jsonl", "pipe.jsonl")
    report = ingest(store, *(tmp_path / name for name in (*files, *others)))
    assert {Path(path).name for path in report.skipped} == {*files, *others} - {"torn.gz"}
    assert report.unreadable == {"cut off (gzip)": 1}
    assert report.new == 1


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_read_and_grows(tmp_path: Path, store: Store, encoding: str) -> None:
    lines = claude_code_session().lines
    lines[1]["message"]["content"] = "Größe, 大きさ, 𠮷 \u2028?"
    texts = [json.dumps(line, ensure_ascii=False) + "\r\n" for line in lines]
    file = tmp_path / "wide.jsonl"
    file.write_bytes(("\ufeff" + "".join(texts[:-1])).encode(encoding))
    ingest(store, file)
    with file.open("ab") as out:
        out.write(texts[-1].encode(encoding) + b"x")
    report = ingest(store, file)
    assert (report.new, report.grown, report.skipped) == (0, 1, {})
    assert "大きさ, 𠮷" in render_chat(store, SESSION, 3)


def test_a_long_line_in_utf_16_is_read_whole_or_passed_over(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [json.dumps(line) + "\n" for line in claude_code_session().lines]
    longest = max(map(len, texts))
    monkeypatch.setattr("foredeck_agents.histories.lines.MAX_LINE", longest + 1)
    long = json.dumps({"type": "user", "text": "x" * 3 * longest}) + "\n"
    file = tmp_path / "wide.jsonl"
    file.write_bytes(("\ufeff" + texts[0] + long + "".join(texts[1:])).encode("utf-16-le"))
    report = ingest(store, file)
    assert report.unreadable == {"longer than 0 MiB": 1}
    assert (report.messages, report.tool_calls) == (5, 3)


def test_a_line_of_a_hundred_megabytes_is_passed_over(tmp_path: Path, store: Store) -> None:
    lines = claude_code_session().lines
    file = write_lines(tmp_path / "a.jsonl", lines[:2])
    with file.open("ab") as out:
        out.write(b'{"type": "user", "text": "')
        for _ in range(100):
            out.write(b"x" * 1024 * 1024)
        out.write(b'"}\n')
        out.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines[2:]))
    report = ingest(store, file)
    assert report.unreadable == {"longer than 32 MiB": 1}
    assert (report.messages, report.tool_calls) == (5, 3)


def test_ids_cannot_pass_for_others(tmp_path: Path, store: Store) -> None:
    history = ClaudeCode()
    stolen = ["session:x", "a" * 64, "", "x" * 5000]
    history.answer("m", *(use(id, "Bash", command="true") for id in stolen))
    for id in stolen:
        history.result(id, "ok")
    ingest(store, write_lines(tmp_path / "a.jsonl", history.lines))
    calls = store.query("toolcall", {"chat_ref": f"chat:{SESSION}"})
    assert len(calls) >= 4
    assert all(len(head.id) < 64 and ":" not in head.id for head in calls)


def big_history(path: Path, answers: int) -> Path:
    history = ClaudeCode()
    for number in range(answers):
        history.user(f"Question {number}")
        history.answer(f"m{number}", use(f"call{number}", "Bash", command=f"echo {number}"))
        history.result(f"call{number}", f"{number}\n" * 200)
    return write_lines(path, history.lines)


@pytest.mark.long
def test_a_killed_reading_goes_on(tmp_path: Path) -> None:
    """Killed at any moment, and run again to the end: the state is that of one reading."""
    file = big_history(tmp_path / "big.jsonl", 1500)
    command = [sys.executable, "-m", "foredeck.cli.main", "ingest", str(file)]
    home = tmp_path / "home"
    environment = {**os.environ, "FOREDECK_HOME": str(home)}
    kills = 0
    for wait in (0.5, 0.9, 1.3):
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            running.wait(wait)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.wait()
            kills += 1
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert kills
    killed, whole = open_sqlite(home / "foredeck.db"), open_sqlite(tmp_path / "whole.db")
    ingest(whole, file)
    assert state_of(killed) == state_of(whole)
    killed.close()
    whole.close()


def test_two_readings_at_once_store_everything_once(tmp_path: Path) -> None:
    file = big_history(tmp_path / "big.jsonl", 400)
    home = tmp_path / "home"
    command = [sys.executable, "-m", "foredeck.cli.main", "ingest", str(file)]
    environment = {**os.environ, "FOREDECK_HOME": str(home)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
    for running in both:
        running.wait()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    raced, whole = open_sqlite(home / "foredeck.db"), open_sqlite(tmp_path / "whole.db")
    ingest(whole, file)
    assert state_of(raced) == state_of(whole)
    raced.close()
    whole.close()


ODD: list[Any] = [
    *(None, True, -1, 1e300, 10**30, "", "\ud800", "a\0b", "session:x", "../..", [], {}, [None]),
    *({"type": 5}, {"type": "text", "text": 5}, {"type": "image", "data": 5}, "x" * 5000),
    {"type": "toolCall", "id": 5, "name": [], "arguments": []},
]


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place within a JSON value: what holds it, and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from spots(item)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("lines", [claude_code_session().lines, CODEX_LINES, PI_LINES])
def test_no_odd_value_ends_a_reading(
    store: Store, tmp_path: Path, lines: list[Line], seed: int
) -> None:
    chance = random.Random(seed)
    odd: list[Line] = json.loads(json.dumps(lines))
    for _ in range(chance.choice([1, 2, 5])):
        holder, key = chance.choice(list(spots(odd[chance.randrange(len(odd))])))
        holder[key] = copy.deepcopy(chance.choice(ODD))
    file = write_lines(tmp_path / "a.jsonl", odd[: chance.randrange(1, len(odd))])
    ingest(store, file)
    ingest(store, write_lines(file, odd))
    for head in store.query("session"):
        session = head.fields["session_id"]
        turns = len(store.query("turn", {"session": session}))
        assert head.fields["ingested"]["exchanges"] == turns
        render_chat(store, session, turns)


HISTORY = Path(__file__).parents[3] / "shared" / "history"


@pytest.mark.skipif(not HISTORY.is_dir(), reason="no histories in ../shared/history")
def test_recorded_histories_are_read_without_a_loss(store: Store) -> None:
    files = sorted(HISTORY.glob("*.jsonl.gz"))[:12]
    report = ingest(store, *files)
    assert (report.new, len(report.skipped), report.unreadable) == (12, 0, {})
    results = 0
    for file in files:
        with gzip.open(file) as lines:
            results += sum(b'"tool_result"' in line for line in lines)
    assert report.tool_calls == results
    assert ingest(store, *files).unchanged == 12
