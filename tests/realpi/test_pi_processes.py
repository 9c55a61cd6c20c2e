"""The engine's process: killed, hung, replaced, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from faults import ASSEMBLE, WORK, complaints, count_of, hostile, sent_records, wait_for_count
from foredeck_bench.scripted.pi_process import MARK
from foredeck_bench.twin.script import ModelRequest, ToolCall, call
from harness import PATIENCE_S, TEXT, Pi, both_versions
from observed import answered, assert_stable, calls_of, last_result, notified, results, stored


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_no_engine_outlives_a_pi_that_is_killed(pi: Pi) -> None:
    killed = Event()

    def die(_: ModelRequest) -> ToolCall:
        assert len(rpc.engines()) == 1
        os.kill(rpc.pid, signal.SIGKILL)
        killed.set()
        return call("bash", command="true")

    pi.serve([call("bash", command="seq 300"), die])
    rpc = pi.rpc(foredeck=True)
    rpc.send("prompt", message="go")
    assert killed.wait(PATIENCE_S)
    assert rpc.shutdown() == -signal.SIGKILL
    assert pi.workspace.leftovers() == []
    with stored(pi) as store:
        assert len(calls_of(store)) == 2
        assert len(store.query("toolcall")) == 1


def test_no_engine_outlives_a_pi_that_is_terminated(pi: Pi) -> None:
    pi.serve(["hello"])
    rpc = pi.rpc("hi", foredeck=True)
    os.kill(rpc.pid, signal.SIGTERM)
    rpc.shutdown()
    assert pi.workspace.leftovers() == []


def test_an_engine_killed_between_prompts_comes_back(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([*WORK, call("read", path="a.txt"), "more", "end"])
    rpc = pi.rpc("work", foredeck=True)
    assert rpc.kill_engine()
    rpc.prompt("more")
    rpc.prompt("end")
    assert_stable(answered(model))
    assert len(rpc.engines()) == 1
    with stored(pi) as store:
        assert len(sent_records(store)) == len(model.requests)


@both_versions
def test_esc_does_not_wait_for_an_engine_that_hangs(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> ToolCall | str:
        if "three" not in request.text:
            return "first"
        return "third" if request.results else call("bash", command="seq 300")

    model = pi.serve(answer)
    environment = hostile(checkout, tmp_path, (ASSEMBLE, 2, "ignore"))
    rpc = pi.rpc("one", foredeck=True, environment=environment)
    start = len(rpc.events)
    rpc.send("prompt", message="two")
    wait_for_count(tmp_path, ASSEMBLE, 2)
    rpc.abort()
    rpc.wait_idle(start)
    rpc.prompt("three")
    assert results(model.requests[-1])[-1].startswith("@")
    assert notified(rpc) == []


@pytest.mark.long
def test_many_deaths_never_lose_a_result(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    """The engine dies at every second request; five times it is started again."""
    faults = [(ASSEMBLE, n, "die-committed") for n in range(2, 40, 2)]
    count = 14
    model = pi.serve([*(call("bash", command=f"seq {n}00 {n}99") for n in range(1, count)), "end"])
    run = pi.print("work", foredeck=True, environment=hostile(checkout, tmp_path, *faults))
    assert (run.code, run.stdout.strip()) == (0, "end")
    for n, text in enumerate(results(model.requests[-1]), start=1):
        assert f"{n}00\n{n}01\n" in text
    assert_stable(answered(model))
    assert 1 <= len(complaints(run)) <= 2


@pytest.mark.long
def test_an_engine_that_hangs_for_good_is_replaced(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    """It is given up after a few calls; its successor knows everything."""

    def answer(request: ModelRequest) -> ToolCall | str:
        asked = request.text.count("go on")
        ran = len(request.results)
        command = f"seq {asked}000 {asked}900"
        return f"answer {asked}" if ran == asked else call("bash", command=command)

    def opened() -> int:
        return count_of(tmp_path, "session/open")

    model = pi.serve(answer)
    environment = hostile(checkout, tmp_path, (ASSEMBLE, 2, "hang"), deadline_ms=4000)
    rpc = pi.rpc(foredeck=True, environment=environment)
    wait_for_count(tmp_path, "session/open", 1)
    rpc.prompt("go on")
    # Until its successor has answered in time, however busy the machine is.
    while not (opened() >= 2 and last_result(model.requests[-1]).startswith("@")):
        rpc.prompt("go on")
    assert len(notified(rpc)) == 1
    assert_stable(answered(model))
    with stored(pi) as store:
        kinds = [record.decision.kind for record in sent_records(store)]
        assert len(kinds) == len(model.requests)
        assert kinds.count("host") >= 3
        assert kinds[-1] == "append"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_harness_sees_processes_that_outlive_their_run(pi: Pi) -> None:
    environment = pi.workspace.environment()
    orphan = subprocess.Popen(["sleep", "60"], env=environment)
    assert environment[MARK] == pi.workspace.mark
    assert [p.pid for p in pi.workspace.leftovers(timeout_s=0)] == [orphan.pid]
    orphan.kill()
    orphan.wait()
    assert pi.workspace.leftovers(timeout_s=0) == []
