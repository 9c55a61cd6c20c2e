"""A real engine process over real pipes, and a host that does everything wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_process import (
    INITIALIZE,
    PATIENCE_SECONDS,
    PROGRAM,
    EngineProcess,
    line,
    notification,
    request,
)
from small_engine import read_journal

from foredeck.rpc.wire import LINE_LIMIT

ASSEMBLE: dict[str, Any] = {
    "session": "s",
    "keep": 0,
    "messages": [{"role": "user", "content": "hi"}],
    "entries": [None],
    "time_ms": 1,
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineProcess]:
    with EngineProcess(tmp_path) as process:
        process.initialize()
        yield process


@pytest.fixture(scope="module")
def one_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """One engine for all that it must survive."""
    with EngineProcess(tmp_path_factory.mktemp("one")) as process:
        process.initialize()
        yield process


def served(engine: EngineProcess) -> bool:
    """Whether a good request works now."""
    return engine.ask(99, "command", {"session": "s", "name": "echo", "args": "yes"}) == {
        "jsonrpc": "2.0",
        "id": 99,
        "result": {"text": "yes"},
    }


def error_of(response: dict[str, Any]) -> tuple[Any, int]:
    return response["id"], response["error"]["code"]


def test_nothing_but_ping_is_served_before_initialize(tmp_path: Path) -> None:
    with EngineProcess(tmp_path) as engine:
        assert engine.ask(1, "ping")["result"] == {}
        assert error_of(engine.ask(2, "context/assemble", ASSEMBLE)) == (2, -32600)
        assert "initialize first" in engine.ask(3, "command", {"name": "x"})["error"]["message"]


def test_a_second_initialize_is_an_error(one_engine: EngineProcess) -> None:
    assert error_of(one_engine.ask(3, "initialize", INITIALIZE)) == (3, -32600)
    assert served(one_engine)


def test_another_protocol_is_refused_with_both_versions(tmp_path: Path) -> None:
    with EngineProcess(tmp_path) as engine:
        response = engine.ask(1, "initialize", {**INITIALIZE, "protocol": 7})
        assert error_of(response) == (1, -32001)
        assert "protocol 7" in response["error"]["message"]


def test_initialize_can_be_repeated_after_it_failed(tmp_path: Path) -> None:
    with EngineProcess(tmp_path) as engine:
        broken = engine.ask(1, "initialize", {**INITIALIZE, "shim": "broken"})
        assert error_of(broken) == (1, -32003)
        assert "result" in engine.ask(2, "initialize", INITIALIZE)
    assert read_journal(tmp_path) == ["close", "initialize", "close"]


def test_a_configuration_error_is_written_for_the_user(tmp_path: Path) -> None:
    with EngineProcess(tmp_path, FOREDECK_SEED_WINDOW__TURN="3") as engine:
        response = engine.ask(1, "initialize", INITIALIZE)
        assert error_of(response) == (1, -32002)
        assert "did you mean 'seed_window.turns'" in response["error"]["message"]


def test_the_projects_file_counts_only_if_trusted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".pi").mkdir(parents=True)
    file = project / ".pi" / "foredeck.toml"
    file.write_text('store = "xtdb"\ndeadline_ms = 30000\nlog_level = "debug"\n')
    for trusted in (False, True):
        with EngineProcess(tmp_path) as engine:
            params = {**INITIALIZE, "cwd": str(project), "trusted": trusted}
            answer = engine.ask(1, "initialize", params)["result"]
        assert (answer["store"], answer["deadline_ms"]) == ("sqlite", 3000)
        assert ("'store' cannot be set by a project" in str(answer["warnings"])) is trusted


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"{not json\n", -32700),
        (b"\n", -32700),
        (b"\xff\xfe\xfd\n", -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', None),
        (b"[]\n", -32600),
        (line([{"jsonrpc": "2.0", "id": 5, "method": "ping"}]), -32600),
        (b"17\n", -32600),
        (b"null\n", -32600),
        (b"{}\n", -32600),
        (line({"jsonrpc": "2.0", "id": [1], "method": "ping"}), -32600),
        (line({"jsonrpc": "2.0", "id": None, "method": "ping"}), -32600),
        (line({"jsonrpc": "2.0", "id": True, "method": "ping"}), -32600),
    ],
)
def test_a_bad_line_gets_an_error_and_the_next_good_one_works(
    one_engine: EngineProcess, bad: bytes, code: int | None
) -> None:
    if code is None:  # a torn line swallows the next one, as framing by newlines means
        one_engine.send(bad)
        code, bad = -32700, request(4, "ping")
    one_engine.send(bad)
    assert error_of(one_engine.receive()) == (None, code)
    assert served(one_engine)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 5, "method": "ping"}, -32600),
        ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": 7}, -32600),
        ({"jsonrpc": "2.0", "id": 5}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "nothing/here"}, -32601),
        ({"jsonrpc": "2.0", "id": 5, "method": "__init__"}, -32601),
        ({"jsonrpc": "2.0", "id": 5, "method": "$/cancel", "params": {"id": 5}}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "command", "params": {"session": "s"}}, -32602),
        ({"jsonrpc": "2.0", "id": 5, "method": "context/assemble", "params": {"self": 1}}, -32602),
    ],
)
def test_a_bad_request_is_answered_under_its_id(
    one_engine: EngineProcess, message: dict[str, Any], code: int
) -> None:
    one_engine.send(line(message))
    assert error_of(one_engine.receive()) == (5, code)
    assert served(one_engine)


def test_unicode_line_separators_are_ordinary_characters(one_engine: EngineProcess) -> None:
    text = "a\u2028b\u2029c\x85d\x0b\x0ce\r"
    raw = '{"jsonrpc":"2.0","id":7,"method":"command","params":{"session":"s","name":"echo","args":'
    one_engine.send(raw.encode() + b'"a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d\\u000b\\u000ce\\r"}}\n')
    assert one_engine.receive() == {"jsonrpc": "2.0", "id": 7, "result": {"text": text}}


def test_a_lone_surrogate_comes_back_as_it_was(one_engine: EngineProcess) -> None:
    params = {"session": "s", "name": "echo", "args": "\ud83d"}
    assert one_engine.ask(7, "command", params)["result"] == {"text": "\ud83d"}


def test_an_oversize_line_is_answered_and_skipped(one_engine: EngineProcess) -> None:
    filler = "x" * LINE_LIMIT
    one_engine.send(request(5, "command", {"session": "s", "name": "echo", "args": filler}))
    assert error_of(one_engine.receive()) == (5, -32600)
    one_engine.send(b'{"params":{"args":"' + filler.encode() + b'"},"id":6}\n')
    assert error_of(one_engine.receive()) == (None, -32600)
    assert served(one_engine)


def test_a_line_of_many_megabytes_within_the_limit_is_served(one_engine: EngineProcess) -> None:
    text = "é" * 6_000_000
    params = {"session": "s", "name": "echo", "args": text}
    assert one_engine.ask(5, "command", params)["result"]["text"] == text


def test_a_line_may_arrive_in_pieces_and_several_at_once(one_engine: EngineProcess) -> None:
    for byte in request(5, "ping"):
        one_engine.send(bytes([byte]))
    assert one_engine.receive()["id"] == 5
    one_engine.send(
        b"".join(
            request(number, "command", {"session": "s", "name": "echo"}) for number in range(10, 20)
        )
    )
    assert [one_engine.receive()["id"] for _ in range(10)] == list(range(10, 20))


def test_state_changes_keep_their_order(engine: EngineProcess, tmp_path: Path) -> None:
    lines = []
    for number in range(100, 130):
        seen = {"session": "s", "id": f"c{number}", "tool": "bash"}
        lines.append(notification("tool/observed", seen))
        lines.append(request(number, "context/assemble", ASSEMBLE))
    engine.send(b"".join(lines))
    answers = [engine.receive() for _ in range(30)]
    assert [answer["id"] for answer in answers] == list(range(100, 130))
    expected = [
        f"{what}" for n in range(30) for what in (f"observe c{n + 100}", f"assemble {n + 1}")
    ]
    assert read_journal(tmp_path)[2:] == expected


def test_errors_of_the_engine_cross_with_their_code_and_text(one_engine: EngineProcess) -> None:
    stale = one_engine.ask(5, "context/assemble", {**ASSEMBLE, "keep": 9})
    assert stale["error"] == {"code": -32010, "message": "send everything"}
    tool = {"session": "s", "id": "t", "tool": "bake", "input": {}}
    assert one_engine.ask(6, "tool/call", tool)["error"]["code"] == -32020
    other = {"session": "gone", "name": "echo", "args": ""}
    closed = one_engine.ask(7, "session/close", {**other, "reason": "quit"})
    assert closed["error"]["code"] == -32011


def test_a_bug_in_the_engine_is_an_error_and_a_log_entry(engine: EngineProcess) -> None:
    assert engine.ask(5, "command", {"session": "s", "name": "crash"})["error"] == {
        "code": -32603,
        "message": "internal error: ZeroDivisionError: a bug",
    }
    assert error_of(engine.ask(6, "command", {"session": "s", "name": "not json"})) == (6, -32603)
    assert served(engine)
    assert engine.end() == 0
    assert "Traceback" in engine.log


def test_a_duplicate_id_does_not_disturb_the_first(one_engine: EngineProcess) -> None:
    first = request(5, "command", {"session": "s", "name": "sleep", "args": "0.2"})
    second = request(5, "command", {"session": "s", "name": "echo", "args": "x"})
    third = request(5, "command", {"session": "s", "name": "echo", "args": "later"})
    one_engine.send(first + second)
    answers = [one_engine.receive(), one_engine.receive()]
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[None]["error"]["code"] == -32600
    assert by_id[5]["result"] == {"text": ""}
    one_engine.send(third)
    assert one_engine.receive()["result"] == {"text": "later"}


def test_responses_that_nothing_waits_for_are_logged(engine: EngineProcess) -> None:
    engine.send(line({"jsonrpc": "2.0", "id": "e1", "result": {}}))
    engine.send(line({"jsonrpc": "2.0", "id": {"a": 1}, "error": {"code": 1, "message": "m"}}))
    engine.send(line({"jsonrpc": "2.0", "id": 3, "result": None}))
    assert served(engine)
    assert engine.end() == 0
    assert engine.log.count("nothing waits for") == 3


def test_bad_notifications_are_logged_and_never_answered(engine: EngineProcess) -> None:
    engine.send(notification("nothing/here", {}))
    engine.send(notification("context/assemble", ASSEMBLE))
    engine.send(notification("tool/observed", {"session": "s"}))
    engine.send(notification("tool/observed", {"session": "gone", "id": "c", "tool": "bash"}))
    engine.send(notification("$/cancel", {"id": 12345}))
    engine.send(notification("$/cancel", {}))
    assert served(engine)
    assert engine.end() == 0
    assert "nothing/here" in engine.log
    assert "context/assemble" in engine.log
    assert engine.log.count("tool/observed failed") == 2


def test_cancel_of_a_waiting_request_stops_it_before_it_begins(
    engine: EngineProcess, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    engine.send(
        request(5, "command", {"session": "s", "name": "wait for", "args": str(gate)})
        + request(6, "context/assemble", ASSEMBLE)
        + notification("$/cancel", {"id": 6})
        + request(7, "context/assemble", ASSEMBLE)
        # More than the pipe holds: once it is written, what stands before it was read.
        + notification("$/cancel", {"id": 8, "padding": "x" * 2**20})
    )
    gate.touch()
    answers = {answer["id"]: answer for answer in (engine.receive() for _ in range(3))}
    assert answers[6]["error"] == {"code": -32800, "message": "cancelled"}
    assert answers[7]["result"]["call"] == 1
    assert read_journal(tmp_path)[2:] == ["wait begins", "wait ends", "assemble 1"]


def test_cancel_during_a_commit_lets_it_finish(engine: EngineProcess, tmp_path: Path) -> None:
    engine.send(request(5, "command", {"session": "s", "name": "sleep", "args": "0.3"}))
    while "sleep begins" not in read_journal(tmp_path):
        time.sleep(0.01)
    engine.send(notification("$/cancel", {"id": 5}))
    assert engine.receive() == {"jsonrpc": "2.0", "id": 5, "result": {"text": ""}}
    assert served(engine)


def test_stray_prints_never_reach_the_host(engine: EngineProcess) -> None:
    answer = engine.ask(5, "command", {"session": "s", "name": "print", "args": "stray words"})
    assert answer["result"] == {"text": ""}
    assert engine.end() == 0
    assert "stray words" in engine.log


def test_the_engine_can_speak_to_the_user(engine: EngineProcess) -> None:
    assert engine.ask(5, "command", {"session": "s", "name": "tell", "args": "look"}) == {
        "jsonrpc": "2.0",
        "method": "host/notify",
        "params": {"level": "info", "text": "look"},
    }


def test_end_of_input_serves_what_has_arrived_then_closes(tmp_path: Path) -> None:
    with EngineProcess(tmp_path) as engine:
        engine.initialize()
        engine.send(request(5, "command", {"session": "s", "name": "sleep", "args": "0.1"}))
        engine.send(request(6, "context/assemble", ASSEMBLE) + b'{"jsonrpc":"2.0","id":7,"meth')
        assert engine.end() == 0
        assert [answer["id"] for answer in engine.rest()] == [5, 6]
        assert "ended within a line" in engine.log
    assert read_journal(tmp_path)[-2:] == ["assemble 1", "close"]


def test_shutdown_answers_closes_and_ends(engine: EngineProcess, tmp_path: Path) -> None:
    assert engine.ask(5, "shutdown")["result"] == {}
    assert engine.wait() == 0
    assert read_journal(tmp_path)[-1] == "close"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_cleanly(engine: EngineProcess, tmp_path: Path, name: str) -> None:
    engine.process.send_signal(getattr(signal, name))
    assert engine.wait() == 0
    assert read_journal(tmp_path)[-1] == "close"


def test_an_interrupt_from_the_keyboard_is_left_to_the_host(engine: EngineProcess) -> None:
    engine.process.send_signal(signal.SIGINT)
    assert served(engine)
    assert engine.end() == 0


def test_a_host_that_stops_reading_ends_it_cleanly(tmp_path: Path) -> None:
    source, sink = os.pipe()
    environ = {**os.environ, "FOREDECK_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=sink, env=environ
    )
    os.close(sink)
    process.stdin.write(request(1, "initialize", INITIALIZE))
    process.stdin.flush()
    assert os.read(source, 1)
    os.close(source)
    process.stdin.write(request(2, "ping"))
    process.stdin.flush()
    assert process.wait(PATIENCE_SECONDS) == 0
    process.stdin.close()
    assert read_journal(tmp_path) == ["initialize", "close"]


def test_it_ends_when_the_host_dies_and_the_pipe_stays_open(tmp_path: Path) -> None:
    """The middle process starts the engine and is killed; we keep the engine's stdin open."""
    source, sink = os.pipe()
    starter = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {str(PROGRAM)!r}], stdin={source})\n"
        "time.sleep(600)\n"
    )
    environ = {**os.environ, "FOREDECK_HOME": str(tmp_path)}
    middle = subprocess.Popen(
        [sys.executable, "-c", starter], pass_fds=[source], stdout=subprocess.PIPE, env=environ
    )
    os.close(source)
    os.write(sink, request(1, "initialize", INITIALIZE))
    assert middle.stdout.readline().startswith(b'{"jsonrpc"')
    middle.kill()
    middle.wait()
    assert middle.stdout.read() == b""  # ends when the engine, which holds the other end, ends
    os.close(sink)
    middle.stdout.close()
    assert read_journal(tmp_path) == ["initialize", "close"]
