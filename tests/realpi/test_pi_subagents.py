"""A Pi started by a Pi: a session of its own, linked to that of its parent."""

from __future__ import annotations

import shlex
from pathlib import Path

from foredeck_bench.twin.script import ModelRequest, StepResult, call
from harness import Pi
from observed import answered, stored


def test_a_subagent_is_a_session_of_its_own_linked_to_its_parent(pi: Pi, checkout: Path) -> None:
    (pi.repo / "a.txt").write_text("shared\n")
    command = [*pi.install.command, "-e", str(checkout), "-p", "look as a subagent"]

    def answer(request: ModelRequest) -> StepResult:
        if "look as a subagent" in request.text.split("toolu")[0][:60]:
            return "seen" if request.results else call("read", path="a.txt")
        return "done" if request.results else call("bash", command=shlex.join(command))

    model = pi.serve(answer)
    run = pi.print("start one", foredeck=True)
    assert (run.code, run.stdout.strip()) == (0, "done")
    assert len(answered(model)) == 4
    with stored(pi) as store:
        sessions = {h.fields["session_id"]: h.fields for h in store.query("session")}
        (child,) = [f for f in sessions.values() if f["started_by"]]
        (parent,) = [f for f in sessions.values() if not f["started_by"]]
        assert child["started_by"] == parent["session_id"]
        assert child["parent_session"] is None
        members = store.query("member", {"session": child["session_id"]})
        assert sum(m.fields["label"].endswith("/a.txt") for m in members) == 1
        assert not [
            m
            for m in store.query("member", {"session": parent["session_id"]})
            if m.fields["label"].endswith("/a.txt")
        ]
