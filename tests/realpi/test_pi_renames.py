"""Files that get another name while Pi runs: by a person, and by the agent's own command."""

from __future__ import annotations

import subprocess
import sys

from foredeck_bench.twin.script import ModelRequest, ToolCall, call
from harness import Pi
from observed import answered, assert_stable, command_text, handle, results

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(40))


def announced(pi: Pi, old: str, new: str) -> str:
    """The notice of a rename."""
    names = [f"{pi.repo}/{name}" for name in (old, new)]
    before, after = (handle(pi, name) for name in names)
    return f"[foredeck] {before} moved to {names[1]}, which is {after}."


def test_a_persons_rename_between_two_calls_is_announced_as_one(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([call("read", path="a.txt"), "read", call("pin", id="b.txt"), "pinned", "ok"])
    rpc = pi.rpc("read it", foredeck=True)
    (pi.repo / "a.txt").rename(pi.repo / "b.txt")
    rpc.prompt("go on")
    rpc.prompt("and on")
    notice = announced(pi, "a.txt", "b.txt")
    told = model.requests[2].request.newest
    assert [block["text"] for block in told["content"]] == ["go on", notice]
    assert model.requests[-1].request.text.count("[foredeck]") == 1
    assert results(model.requests[3])[-1] == f"{handle(pi, '/b.txt')} is above, and pinned."
    assert_stable(answered(model))
    assert "a.txt" in history(pi, "b.txt")
    assert "b.txt" in history(pi, "a.txt")


def history(pi: Pi, name: str) -> str:
    command = [sys.executable, "-m", "foredeck.cli.main", "history", str(pi.repo / name)]
    done = subprocess.run(
        [*command, "--home", str(pi.workspace.foredeck_home)], capture_output=True, check=True
    )
    return done.stdout.decode()


def test_a_rename_while_pi_is_closed_is_one_when_it_is_opened_again(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    (pi.repo / "notes").mkdir()
    (pi.repo / "notes" / "n.md").write_text("[[a.txt]] is the plan.\n")

    def pinned(_: ModelRequest) -> ToolCall:
        return call("pin", id=handle(pi, "/a.txt"))

    model = pi.serve(
        [
            [call("read", path="a.txt"), call("read", path="notes/n.md")],
            pinned,
            "pinned",
            call("activate", id="spec"),
            "done",
        ]
    )
    rpc = pi.rpc("read it", foredeck=True)
    rpc.command(f"/foredeck name {handle(pi, '/a.txt')} spec")
    assert rpc.shutdown() == 0
    (pi.repo / "lib").mkdir()
    (pi.repo / "a.txt").rename(pi.repo / "lib" / "b.txt")
    again = pi.rpc("go on", foredeck=True, arguments=["--continue"])
    assert announced(pi, "a.txt", "lib/b.txt") in model.requests[-1].request.text
    new = handle(pi, "/lib/b.txt")
    assert results(model.requests[-1])[-1] == f"{new} is above."
    assert "lib/b.txt" in command_text(again, "/foredeck")
    assert "a.txt" in history(pi, "lib/b.txt")
    assert "lib/b.txt" in history(pi, "a.txt")
    assert_stable(answered(model))
