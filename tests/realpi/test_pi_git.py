"""A file as of a commit in the real Pi: activated by its name, read through git."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from foredeck_bench.twin.script import call
from harness import Pi
from observed import answered, errors, results, stored

OLD = "\n".join(f"old line {n} of what was there" for n in range(20))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_file_is_activated_as_of_a_commit(pi: Pi) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "init", "-q"], cwd=pi.repo, check=True)
    for text in (OLD, "new"):
        (pi.repo / "a.txt").write_text(text)
        for arguments in (("add", "."), ("commit", "-qm", "as it was")):
            subprocess.run(["git", *identity, *arguments], cwd=pi.repo, check=True)
    script = [
        call("activate", id="git:HEAD~1:a.txt"),
        call("activate", id="git:HEAD~9:a.txt"),
        call("activate", id="https://example.com/page"),
        "done",
    ]
    model = pi.serve(script)
    assert pi.print("What was it like before?", foredeck=True).code == 0
    last = answered(model)[-1]
    before, refused, page = results(last)
    assert before.partition("\n")[2] == OLD
    assert refused in errors(last)
    assert "git knows no 'HEAD~9'" in refused
    assert "nothing is fetched" in page
    with stored(pi) as store:
        (head,) = store.query("file")
        assert head.fields["source"]["type"] == "git"
        assert [h.fields["locator"] for h in store.query("pointer")] == ["https://example.com/page"]
