"""A file system that goes away between two runs of Pi, and comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from foredeck.model.documents import FileDocument
from foredeck_bench.twin.script import call
from harness import Pi
from observed import handle, messages, object_id, stored

TEXT = "".join(f"line {n} of a file on a stick\n" for n in range(30))
ALONE = "FOREDECK_TEST_MOUNTS"
QUIETLY = ("-q", "-p", "no:cacheprovider")


@pytest.mark.skipif(sys.platform != "linux", reason="needs mounts of Linux")
@pytest.mark.skipif(ALONE in os.environ, reason="runs the test below, in a namespace of its own")
def test_a_file_system_goes_and_comes_back_in_a_namespace() -> None:
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    probe = [*alone, "mount", "-t", "tmpfs", "x", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False).returncode != 0:
        pytest.skip("this machine lets no process mount anything in a namespace of its own")
    done = subprocess.run(
        [*alone, sys.executable, "-m", "pytest", *QUIETLY, f"{__file__}::test_gone_is_not_deleted"],
        env={**os.environ, ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(ALONE not in os.environ, reason="run by the test above, which can mount")
def test_gone_is_not_deleted(pi: Pi) -> None:
    stick = pi.repo / "stick"

    def mount() -> None:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", stick], check=True)
        (stick / "deep").mkdir()
        for name in ("a.txt", "deep/b.txt"):
            (stick / name).write_text(f"{name}\n{TEXT}")

    stick.mkdir()
    mount()
    script = [
        call("read", path="stick/a.txt"),
        call("read", path="stick/deep/b.txt"),
        lambda _: call("pin", id=handle(pi, "/a.txt")),
        *("read", "away", "back", "gone"),
    ]
    model = pi.serve(script)
    assert pi.print("read them", foredeck=True).code == 0
    subprocess.run(["umount", stick], check=True)
    (pi.repo / "other.txt").write_text(f"a.txt\n{TEXT}")
    assert pi.print("go on", "--continue", foredeck=True).code == 0
    ids = [object_id(pi, name) for name in ("/a.txt", "/b.txt")]
    assert [states(pi, id) for id in ids] == [["text"], ["text"]]
    mount()
    assert pi.print("and on", "--continue", foredeck=True).code == 0
    assert [states(pi, id) for id in ids] == [["text"], ["text"]]
    for recorded in model.requests:
        assert "on disk" not in recorded.request.text
        assert "moved to" not in recorded.request.text
    assert any(TEXT in str(message) or "line 29" in str(message) for message in messages(recorded))


def states(pi: Pi, id: str) -> list[str]:
    """Of the versions of a file."""
    with stored(pi) as store:
        found = (store.get(id, FileDocument, head.token) for head in store.history(id))
        return [document.state for document in found if document]
