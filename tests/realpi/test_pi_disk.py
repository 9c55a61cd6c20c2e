"""Files that change under the model while Pi runs."""

from __future__ import annotations

import time
from pathlib import Path

from foredeck_bench.twin.script import ModelRequest, ToolCall, call
from harness import Pi
from observed import answered, assert_stable, handle, object_id, results, stored

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(40))


def announced(pi: Pi, path: str) -> str:
    """The notice of a change of that file."""
    name = f"{handle(pi, f'/{path}')} {pi.repo / path}"
    return f"[foredeck] {name} changed on disk: the copy above is old."


def replace(path: Path, text: str) -> None:
    """Write a file as editors do: beside it first, then in its place."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.replace(path)


def wait_for_versions(pi: Pi, path: str, count: int) -> None:
    """Wait until the engine has seen so many versions of a file; the test's timeout ends it."""
    while True:
        with stored(pi) as store:
            if len(store.history(object_id(pi, path))) >= count:
                return
        time.sleep(0.05)


def test_a_change_by_something_else_is_announced_once_at_the_newest_message(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("read", path="a.txt"),
            "read",
            call("bash", command="echo one"),
            "noticed",
            "fine",
            call("activate", id="a.txt"),
            "seen",
        ]
    )
    rpc = pi.rpc("read it", foredeck=True)
    (pi.repo / "a.txt").write_text(TEXT.replace("line 7:", "line seven:"))
    rpc.prompt("go on")
    rpc.prompt("and on")
    rpc.prompt("show me")
    notice = announced(pi, "a.txt")
    first = model.requests[2].request.newest
    assert [block["text"] for block in first["content"]] == ["go on", notice]
    assert model.requests[-1].request.text.count("changed on disk") == 1
    shown = results(model.requests[-1])[-1]
    assert "line seven:" in shown
    assert shown.startswith(f"{handle(pi, '/a.txt')} v2")
    assert_stable(answered(model))
    with stored(pi) as store:
        assert len(store.history(object_id(pi, "/a.txt"))) == 2


def test_a_change_inside_a_turn_is_announced_with_the_next_result(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)

    def change(_: ModelRequest) -> ToolCall:
        replace(pi.repo / "a.txt", TEXT.upper())
        wait_for_versions(pi, "/a.txt", 2)
        return call("bash", command="echo next")

    model = pi.serve([call("read", path="a.txt"), change, call("bash", command="echo b"), "done"])
    assert pi.print("go", foredeck=True).code == 0
    _, first, second = results(model.requests[-1])
    assert first == f"{announced(pi, 'a.txt')}\nnext\n"
    assert second == "b\n"
    assert_stable(answered(model))
