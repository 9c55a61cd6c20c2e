"""What the model sees of files: large, odd, and read more than once."""

from __future__ import annotations

import os
import re

import pytest

from foredeck_bench.scripted import call
from harness import Pi, one_version
from observed import answered, assert_stable, errors, handle, messages, results, stored

LONG = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(120))
TOO_LARGE = "it is too large; read it with offset and limit"
HUGE = "".join(f"entry {n}: nothing of note has happened since\n" for n in range(70_000))


@one_version
def test_a_binary_file_is_metadata_only(pi: Pi) -> None:
    (pi.repo / "data.bin").write_bytes(bytes(range(256)) * 40)
    model = pi.serve([call("read", path="data.bin"), "done"])
    assert pi.print("go", foredeck=True).code == 0
    assert model.violations == []
    with stored(pi) as store:
        (file,) = store.query("file")
        (read,) = store.query("toolcall")
    (told,) = results(model.requests[-1])
    assert re.fullmatch(r"@\d+ is not text: [\d,]+ characters .* are left out\. .*", told)
    assert (file.fields["state"], file.fields["text_hash"]) == ("binary", None)
    assert read.fields["file_refs"] == [file.id]


@one_version
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_reading_a_fifo_is_refused_and_the_run_goes_on(pi: Pi) -> None:
    """Plain Pi would wait on it for ever."""
    os.mkfifo(pi.repo / "pipe")
    (pi.repo / "link").symlink_to("pipe")
    model = pi.serve([[call("read", path="pipe"), call("read", path="./link")], "done"])
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stdout.strip(), model.violations) == (0, "done", [])
    refused = errors(model.requests[-1])
    assert len(refused) == 2
    assert all("is a named pipe (FIFO), not a file" in text for text in refused)


@one_version
def test_a_huge_file_is_cut_by_pi_and_kept_out_of_the_store(pi: Pi) -> None:
    (pi.repo / "huge.log").write_text(HUGE)
    model = pi.serve(
        [
            call("read", path="huge.log"),
            call("read", path="huge.log", offset=60000, limit=5),
            call("activate", id="huge.log"),
            "done",
        ]
    )
    assert pi.print("go", foredeck=True).code == 0
    assert model.violations == []
    first, second, third = results(model.requests[-1])
    at = handle(pi, "/huge.log")
    assert re.match(r"@\d+\n", first)
    assert first.partition("\n")[2].startswith(HUGE[:10_000])
    assert not first.startswith(f"{at}\n")
    assert "offset=" in first
    assert second.partition("\n")[2].startswith(f"{HUGE.splitlines()[59_999]}\n")
    assert third == f"{at} has no content to show: {TOO_LARGE}."
    with stored(pi) as store:
        (file,) = store.query("file")
    assert (file.fields["state"], file.fields["text_hash"]) == ("huge", None)


@one_version
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
    assert (ended.code, ended.stderr, model.violations) == (0, "", [])
    assert len(results(model.requests[-1])) == 4


@one_version
def test_a_reread_after_an_edit_is_a_difference(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    edit = call("edit", path="a.txt", edits=[{"oldText": "line 60:", "newText": "line sixty:"}])
    model = pi.serve(
        [
            call("read", path="a.txt"),
            edit,
            call("read", path="a.txt"),
            call("read", path="a.txt"),
            call("read", path="a.txt", offset=1, limit=30),
            "done",
        ]
    )
    assert pi.print("go", foredeck=True).code == 0
    assert model.violations == []
    at = handle(pi, "/a.txt")
    whole, _, changed, again, part = results(model.requests[-1])
    assert whole == f"{at}\n{LONG}"
    assert changed.startswith(f"{at} v2, changed since the copy above:\n")
    assert "-line 60: the quick" in changed
    assert "+line sixty: the quick" in changed
    assert len(changed) < 500
    assert again == f"Unchanged: the same as {at} above."
    assert part == f"Unchanged: these lines are in {at} above."
    assert_stable(answered(model))


@one_version
def test_a_long_text_is_kept_once_however_often_it_is_read(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve([*[call("read", path="a.txt")] * 3, call("bash", command="cat a.txt"), "done"])
    assert pi.print("go", foredeck=True).code == 0
    sent = messages(model.requests[-1])
    assert str(sent).count("line 119: the quick brown fox") == 1
    assert (
        results(model.requests[-1])[-1] == f"Unchanged: the same as {handle(pi, '/a.txt')} above."
    )
