"""What users ask of a session: was it in view, what did a summary leave out, what was done."""

from __future__ import annotations

import json
import re

from foredeck_bench.twin.script import Step, call
from harness import SMALL, TALK, Asked, Pi, questions
from observed import answered, handle, notified, results, session_of, stored

NAME = "measure_the_tide"


def test_where_a_name_stood_and_what_a_session_did(pi: Pi, asked: Asked) -> None:
    (pi.repo / "tide.py").write_text(f"def {NAME}():\n    return 1\n" + "# filler\n" * 200)
    edit = {"oldText": "return 1", "newText": "return 2"}
    pi.serve(
        [
            "hello",
            call("read", path="tide.py"),
            [call("edit", path="tide.py", edits=[edit]), call("bash", command="exit 3")],
            "done",
        ]
    )
    rpc = pi.rpc("Hello", "Read the file, and make it two.", foredeck=True)
    rpc.command(f"/foredeck trace {NAME}")
    rpc.command("/foredeck trace")
    shown, usage = notified(rpc)
    at = handle(pi, "/tide.py")
    assert "calls 1-2: never seen" in shown
    assert re.search(rf"calls 3-4: in view; message \d+: result of read tide\.py \({at}\)", shown)
    assert usage.startswith("Say what to look for: ")
    assert rpc.shutdown() == 0

    with stored(pi) as store:
        session = session_of(store)
        took = [head.fields.get("took_ms") for head in store.query("toolcall")]
    assert took
    assert None not in took
    value = json.loads(asked("trace", NAME, session, "--json"))
    assert [span["state"] for span in value["spans"]] == ["never seen", "in view"]


def test_what_a_compaction_leaves_out(pi: Pi) -> None:
    def lost(_: object) -> Step:
        with stored(pi) as store:
            members = [m for m in store.query("member") if m.fields["object_type"] == "compaction"]
        return call("activate", id=f"@{members[-1].fields['ordinal']}::lost")

    script: list[Step] = [call("bash", command="echo high_water"), f"It is spring_tide. {TALK}"]
    script += [f"Answer {n}. {TALK}" for n in range(2)]
    script += [lost, "found"]
    model = pi.serve(script, settings=SMALL)
    rpc = pi.rpc(*questions(3), foredeck=True)
    rpc.command("/foredeck compact --preview")
    rpc.command("/foredeck compact")
    assert "## Goal" in rpc.compact()["summary"]
    rpc.command("/foredeck compact")
    preview, none_yet, newest = notified(rpc)
    assert preview.startswith("What foredeck would write:\n[foredeck] Turns 1-2 ")
    assert "\n\nWhat it does not name:\nCommands:\n- turn 1: @" in preview
    assert none_yet.startswith("No chat of this session was compacted while foredeck was on.")
    assert "## Goal" in newest
    assert "bash echo high_water" in newest.partition("What it does not name:")[2]
    rpc.prompt("What was left out?")
    assert "bash echo high_water" in results(answered(model)[-1])[-1]
    assert "spring_tide" in results(answered(model)[-1])[-1]
