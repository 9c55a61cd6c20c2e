"""What the model sees of files: large, odd, and read more than once."""

from __future__ import annotations

import os

import pytest

from foredeck_bench.twin.script import call
from harness import Pi
from observed import errors, results


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_reading_a_fifo_is_refused_and_the_run_goes_on(pi: Pi) -> None:
    """Plain Pi would wait on it for ever."""
    os.mkfifo(pi.repo / "pipe")
    (pi.repo / "link").symlink_to("pipe")
    model = pi.serve([[call("read", path="pipe"), call("read", path="./link")], "done"])
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stdout.strip()) == (0, "done")
    refused = errors(model.requests[-1])
    assert len(refused) == 2
    assert all("is a named pipe (FIFO), not a file" in text for text in refused)


def test_names_that_are_not_utf8_and_loops_do_no_harm(pi: Pi) -> None:
    odd = pi.repo / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "a.txt").write_text("in a folder\n")
    (pi.repo / "loop").symlink_to("loop")
    (pi.repo / "folder").mkdir()
    model = pi.serve(
        [
            [call("bash", command="ls -R; cat caf*/a.txt"), call("read", path="loop")],
            [call("read", path="folder"), call("bash", command="find . -name '*.txt'")],
            "done",
        ]
    )
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stderr) == (0, "")
    assert len(results(model.requests[-1])) == 4
