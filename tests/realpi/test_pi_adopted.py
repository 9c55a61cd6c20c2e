"""Session files from elsewhere: begun without foredeck, cut off, moved, of an older Pi."""

from __future__ import annotations

import json
from pathlib import Path

from foredeck.model.documents import ToolcallDocument
from foredeck_bench.twin.script import Step, call
from foredeck_bench.work_session import WorkSession, transcript_line
from harness import TEXT, Pi
from observed import answered, assert_stable, calls_of, messages, notified, results, stored

WORK: list[Step] = [
    [call("read", path="a.txt"), call("bash", command="seq 300")],
    call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
    "worked",
]


def plain_session(pi: Pi) -> Path:
    """The file of a session that knew nothing of foredeck."""
    (pi.repo / "a.txt").write_text(TEXT)
    assert pi.print("work", foredeck=False).code == 0
    return pi.workspace.session_files()[-1]


def elsewhere(pi: Pi, lines: list[str]) -> Path:
    """Another file with these lines, in another folder."""
    path = pi.workspace.root / "brought" / "old session.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines))
    return path


def test_a_history_is_taken_in_with_a_word_and_sent_as_it_was(pi: Pi) -> None:
    model = pi.serve([*WORK, "on", "and on"])
    plain_session(pi)
    rpc = pi.rpc("Go on.", "And on.", foredeck=True, arguments=["--continue"])
    (told,) = notified(rpc)
    assert told.startswith("foredeck has taken in 7 messages and 3 tool results from before")
    before, after = answered(model)[2], answered(model)[3]
    assert messages(after)[: len(messages(before))] == messages(before)
    assert_stable(answered(model)[3:])


def long_session(pi: Pi, messages: int) -> Path:
    """The file of a session of so many messages that knew nothing of foredeck."""
    work = WorkSession(pi.repo / "long", id="0000-long-session", scale=0.5)
    stamp = "2026-02-01T00:00:00.000Z"
    header = {"type": "session", "version": 3, "id": work.id, "timestamp": stamp}
    lines = [json.dumps({**header, "cwd": str(pi.repo)})]
    while len(lines) <= messages:
        for step in work.steps(50):
            for message in step.messages:
                line = json.loads(transcript_line(message, len(lines)))
                line["parentId"] = None if len(lines) == 1 else line["parentId"]
                lines.append(json.dumps(line))
    return elsewhere(pi, lines)


def test_a_long_history_goes_out_as_ours_at_the_first_call(pi: Pi) -> None:
    """It is sent ahead, so that the call brings only what is new."""
    model = pi.serve(["on", "and on"], context_window=1_000_000)
    rpc = pi.rpc("Go on.", foredeck=True, arguments=["--session", str(long_session(pi, 1200))])
    rpc.prompt("And on.")
    (told,) = [text for text in notified(rpc) if "before it was on" in text]
    assert told.startswith("foredeck has taken in 1,2")
    first, second = answered(model)
    assert " folded: " in first.request.text  # a pause of months: what is old has folded
    assert_stable([first, second])
    with stored(pi) as store:
        kinds = [record.is_host for record in calls_of(store)]
    assert kinds == [True, False, False]


def test_a_file_that_is_cut_off_goes_on_with_what_is_left(pi: Pi) -> None:
    model = pi.serve([*WORK, "on", "more"])
    lines = plain_session(pi).read_text().split("\n")
    results = [n for n, line in enumerate(lines) if '"role":"toolResult"' in line]
    # The first of two results is there, the second is cut in the middle of its line.
    path = elsewhere(pi, [*lines[: results[1]], lines[results[1]][:80]])
    rpc = pi.rpc("Go on.", foredeck=True, arguments=["--session", str(path)])
    assert rpc.shutdown() == 0
    lost, told = notified(rpc)
    assert lost == "1 line of the session file was cut off or damaged: what it held is lost."
    assert told.startswith("foredeck has taken in 3 messages and 1 tool result from before")
    assert told.endswith("1 tool call had no result in the session file.")
    again = pi.rpc("More.", foredeck=True, arguments=["--session", str(path)])
    assert notified(again) == []
    assert "No result: the call was interrupted." in answered(model)[-1].request.text
    assert_stable(answered(model)[3:])
    with stored(pi) as store:
        assert {c.fields["tool"] for c in store.query("toolcall")} == {"read"}


def test_a_file_of_another_machine_is_taken_in(pi: Pi) -> None:
    """Paths of there mean nothing here: content comes from the history."""
    (pi.repo / "a.txt").write_text(TEXT)
    there = "/home/somebody/project"
    model = pi.serve(
        [
            call("read", path=str(pi.repo / "a.txt")),
            "worked",
            "on",
            call("bash", command="pwd"),
            "end",
        ]
    )
    assert pi.print("work", foredeck=False).code == 0
    lines = pi.workspace.session_files()[-1].read_text().replace(str(pi.repo), there).split("\n")
    header = json.loads(lines[0])
    lines[0] = json.dumps({**header, "id": "0000-other-machine", "cwd": str(pi.repo)})
    (pi.repo / "a.txt").write_text("another file of that name")
    rpc = pi.rpc("Go on.", foredeck=True, arguments=["--session", str(elsewhere(pi, lines))])
    rpc.prompt("Where are we?")
    assert_stable(answered(model)[2:])
    sent = answered(model)[-1]
    (told,) = notified(rpc)
    assert told.startswith("foredeck has taken in 4 messages and 1 tool result from before")
    assert results(sent)[0] == TEXT
    assert "changed on disk" not in sent.request.text
    with stored(pi) as store:
        assert store.query("file") == []
        (read,) = store.query("toolcall", {"tool": "read"})
        assert store.get(read.id, ToolcallDocument).content == TEXT
