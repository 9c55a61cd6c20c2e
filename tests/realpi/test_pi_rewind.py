"""Rewinding in the real Pi: files as they were at a call, and back."""

from __future__ import annotations

from foredeck_bench.twin.script import call
from harness import Pi
from observed import command_text, notified


def test_files_go_back_to_a_call_and_forward_again(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text("one\n")
    pi.serve(
        [
            call("read", path="a.txt"),
            call("edit", path="a.txt", edits=[{"oldText": "one", "newText": "two"}]),
            call("write", path="b.txt", content="b\n"),
            call("bash", command="mkdir sub; mv a.txt sub/a.txt; rm b.txt; printf x > new"),
            "done",
        ]
    )
    rpc = pi.rpc("go", foredeck=True)
    preview = command_text(rpc, "/foredeck rewind 4")
    for line in ("bring back   a.txt", "bring back   b.txt", "delete       new"):
        assert line in preview
    rpc.command("/foredeck rewind 4 yes")
    assert (pi.repo / "a.txt").read_text() == "two\n"
    assert (pi.repo / "b.txt").read_text() == "b\n"
    assert not (pi.repo / "sub/a.txt").exists()
    assert not (pi.repo / "new").exists()
    rpc.command("/foredeck rewind 2 yes")
    assert (pi.repo / "a.txt").read_text() == "one\n"
    assert not (pi.repo / "b.txt").exists()
    rpc.command("/foredeck rewind 6 yes")
    assert (pi.repo / "sub/a.txt").read_text() == "two\n"
    assert (pi.repo / "new").read_text() == "x"


def test_a_fork_at_an_earlier_place_is_told_of_the_files(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text("one\n")
    pi.serve(
        [
            call("read", path="a.txt"),
            "read",
            call("edit", path="a.txt", edits=[{"oldText": "one", "newText": "two"}]),
            "edited",
            "hm",
        ]
    )
    rpc = pi.rpc("read it", "edit it", foredeck=True)
    rpc.fork(1)
    rpc.prompt("what now")
    told = [text for text in notified(rpc) if "The chat has gone back" in text]
    assert len(told) == 1
    assert "/foredeck rewind 1 shows what would change." in told[0]
    rpc.command("/foredeck rewind 1 yes")
    assert (pi.repo / "a.txt").read_text() == "one\n"
