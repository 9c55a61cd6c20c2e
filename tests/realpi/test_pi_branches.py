"""Branches that were left can be listed and shown."""

from __future__ import annotations

import json
from pathlib import Path

from foredeck_bench.scripted import call
from harness import Asked, Pi
from observed import messages, session_of, stored, texts_of_sent, texts_of_shown
from test_pi_sessions import GOTO, answer_of, leaf

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))


def test_an_abandoned_branch_is_listed_and_shown(pi: Pi, tmp_path: Path, asked: Asked) -> None:
    extension = tmp_path / "goto.ts"
    extension.write_text(GOTO)
    (pi.repo / "a.txt").write_text(TEXT)
    left_edit = {"path": "a.txt", "edits": [{"oldText": "line 7:", "newText": "left seven:"}]}
    right_edit = {"path": "a.txt", "edits": [{"oldText": "line 8:", "newText": "right eight:"}]}
    model = pi.serve(
        [
            call("read", path="a.txt"),
            "worked",
            call("edit", **left_edit),
            "left",
            call("edit", **right_edit),
            "right",
            "left again",
        ]
    )
    rpc = pi.rpc(foredeck=True, extensions=[extension])
    rpc.prompt("work")
    rpc.prompt("go left")
    left = leaf(rpc.entries())
    rpc.command(f"/goto {answer_of(rpc.entries(), 'worked')}")
    rpc.prompt("go right")
    rpc.command(f"/goto {left}")
    rpc.prompt("left once more")
    assert rpc.shutdown() == 0
    assert model.violations == []
    with stored(pi) as store:
        session = session_of(store)

    listed = json.loads(asked("show", session, "--branches", "--json"))["branches"]
    assert [(b["number"], b["calls"], b["asked"], b["current"]) for b in listed] == [
        (1, [1, 2, 3, 4, 7], "work", True),
        (2, [5, 6], "go right", False),
    ]
    assert "1-4, 7" in asked("show", session, "--branches")
    shown = json.loads(asked("show", session, "--call", "6", "--json"))
    assert texts_of_shown(shown["messages"]) == texts_of_sent(messages(model.requests[5]))
    assert "call 6 of 7, branch 2" in asked("show", session, "--call", "6")
    file = ("history", str(pi.repo / "a.txt"), "--session", session)
    versions = json.loads(asked(*file, "--json"))["versions"]
    assert [version["branch"] for version in versions] == [1, 1, 2]
    assert "branch" in asked(*file)
