"""The scripted model and the harness themselves: plain Pi, without foredeck."""

from __future__ import annotations

import subprocess
import sys

import pytest

from foredeck_bench.scripted import (
    Reply,
    Text,
    Thinking,
    call,
    overflow,
    rate_limited,
    server_error,
)
from foredeck_bench.scripted.pi_process import MARK
from foredeck_bench.twin.request import Api
from harness import Pi, on_either


@on_either("api", "anthropic-messages", "openai-completions")
def test_print_mode_follows_the_script(pi: Pi, api: Api) -> None:
    (pi.repo / "a.txt").write_text("first file\n")
    model = pi.serve(
        [
            [Thinking("look at both"), call("read", path="a.txt"), call("bash", command="echo hi")],
            [Thinking("change it"), call("write", path="b.txt", content="second file\n")],
            "all done",
            "yes",
        ],
        api=api,
        reasoning=True,
    )
    run = pi.print("look around", "are you done?")
    assert (run.code, run.stderr, model.violations) == (0, "", [])
    assert run.stdout.strip() == "yes"
    assert (pi.repo / "b.txt").read_text() == "second file\n"
    assert list(model.requests[1].request.results.values()) == ["first file\n", "hi\n"]
    assert len(model.requests) == 4


def test_rpc_mode_forks_and_compacts(pi: Pi) -> None:
    model = pi.serve(["one " + "x" * 90_000, "two", "three", "four"])
    rpc = pi.rpc()
    rpc.prompt("first")
    rpc.prompt("second")
    before = rpc.state()["sessionId"]
    assert rpc.fork(1)["text"] == "second"
    assert rpc.state()["sessionId"] != before
    rpc.prompt("another second")
    rpc.prompt("third")
    assert "## Goal" in rpc.compact()["summary"]
    assert [r.side for r in model.requests].count(True) == 1
    assert model.violations == []
    assert rpc.shutdown() == 0


def test_pi_retries_what_may_pass(pi: Pi) -> None:
    model = pi.serve([rate_limited(), server_error(), Reply((Text("x" * 4000),), cut=True), "ok"])
    run = pi.print("go")
    assert (run.code, run.stdout.strip()) == (0, "ok")
    assert [recorded.status for recorded in model.requests] == [429, 500, 200, 200]
    assert model.violations == []


def test_pi_compacts_when_the_provider_says_overflow(pi: Pi) -> None:
    model = pi.serve(["one " + "x" * 90_000, overflow(300_000, 200_000), "after the summary"])
    rpc = pi.rpc()
    rpc.prompt("first")
    events = rpc.prompt("second")
    assert "compaction_end" in [event["type"] for event in events]
    assert "Continue the work." in model.requests[-1].request.text
    assert model.violations == []


def test_the_harness_sees_processes_that_outlive_their_run(pi: Pi) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    environment = pi.workspace.environment()
    orphan = subprocess.Popen(["sleep", "60"], env=environment)
    assert environment[MARK] == pi.workspace.mark
    assert [p.pid for p in pi.workspace.leftovers(timeout_s=0)] == [orphan.pid]
    orphan.kill()
    orphan.wait()
    assert pi.workspace.leftovers(timeout_s=0) == []
