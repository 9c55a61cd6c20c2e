"""The stale-edit guard in the real Pi: what something else has changed is not written over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from foredeck_bench.twin.script import ModelRequest, StepResult, call
from harness import Pi
from observed import answered, assert_stable, handle, results
from test_pi_disk import wait_for_versions

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(40))
CHANGED = TEXT.replace("line 7:", "line seven:")

SAVES_BEFORE_A_WRITE = """
import { existsSync, writeFileSync } from "node:fs";
export default function (pi) {
  pi.on("tool_call", async ({ toolName, input }) => {
    if (toolName !== "write") return;
    writeFileSync(input.path, "theirs\\n");
    while (!existsSync(`${input.path}.go`)) await new Promise((done) => setTimeout(done, 20));
  });
}
"""

Change = Callable[[], object]


def after(change: Change, step: StepResult) -> Callable[[ModelRequest], StepResult]:
    """A step before which somebody else does something."""

    def do(_: ModelRequest) -> StepResult:
        change()
        return step

    return do


def edit(line: int, new: str) -> StepResult:
    """An edit of the beginning of that line."""
    return call("edit", path="a.txt", edits=[{"oldText": f"line {line}:", "newText": new}])


def save(pi: Pi, text: str) -> Change:
    """A person's editor saves the file in place."""
    return lambda: (pi.repo / "a.txt").write_text(text)


def test_a_persons_change_between_read_and_edit_is_shown_before_it_is_lost(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    again = edit(7, "line VII:")
    model = pi.serve(
        [
            call("read", path="a.txt"),
            after(save(pi, CHANGED), again),
            call("edit", path="a.txt", edits=[{"oldText": "line seven:", "newText": "line 7!"}]),
            "done",
        ]
    )
    assert pi.print("go", foredeck=True).code == 0
    _, blocked, edited = results(model.requests[-1])
    name = f"{handle(pi, '/a.txt')} {pi.repo / 'a.txt'}"
    assert f"Nothing was written: {name} was changed by something else" in blocked
    assert "-line 7: the quick brown fox jumps over the lazy dog\n +line seven:" in blocked
    assert "The same edit again goes through." in blocked
    assert "Successfully replaced" in edited
    assert (pi.repo / "a.txt").read_text() == TEXT.replace("line 7:", "line 7!")
    assert_stable(answered(model))


def test_a_command_that_the_user_runs_is_not_the_agents(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    write = call("write", path="a.txt", content="mine\n")
    model = pi.serve([call("read", path="a.txt"), "read", write, write, "done"])
    rpc = pi.rpc("read it", foredeck=True)
    rpc.send("bash", command="sed -i 's/line 7:/line seven:/' a.txt")
    rpc.prompt("write it")
    blocked, written = results(model.requests[-1])[-2:]
    assert "+line seven:" in blocked
    assert "Successfully wrote" in written


def test_a_save_between_check_and_write_is_named_where_the_watcher_saw_it(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    path = str(pi.repo / "a.txt")
    model = pi.serve(
        [
            call("read", path="a.txt"),
            call("write", path=path, content="mine\n"),
            lambda _: call("activate", id=f"{handle(pi, '/a.txt')} v2"),
            "done",
        ]
    )
    rpc = pi.rpc(foredeck=True, extensions=[SAVES_BEFORE_A_WRITE])
    start = len(rpc.events)
    rpc.send("prompt", message="go")
    while (pi.repo / "a.txt").read_text() == TEXT:
        time.sleep(0.05)
    wait_for_versions(pi, "/a.txt", 2)  # the watcher has seen it
    Path(f"{path}.go").touch()
    rpc.wait_idle(start)
    _, written, shown = results(model.requests[-1])
    assert "Something else saved @" in written
    assert "theirs" in shown
    assert (pi.repo / "a.txt").read_text() == "mine\n"
    assert_stable(answered(model))
