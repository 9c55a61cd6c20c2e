"""The model's own tools inside the real Pi: activate, deactivate, pin, unpin."""

from __future__ import annotations

import re
from pathlib import Path

from foredeck.model.quoting import is_reference
from foredeck_bench.twin.script import ModelRequest, Reply, Script, ToolCall, call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi
from observed import answered, assert_stable, calls_of, handle, object_id, results, stored

TOOLS = ["activate", "deactivate", "pin", "unpin"]
DECLARED = [*TOOLS, "memory-search"]


def lines(word: str, count: int = 60) -> str:
    """A text long enough to be worth folding."""
    return "".join(f"{word} {number}\n" for number in range(count))


def run(pi: Pi, script: Script, *prompts: str, window: int = 200_000) -> ScriptedModel:
    """Run a script in print mode with foredeck; it must end well and be refused nothing."""
    model = pi.serve(script, context_window=window)
    ended = pi.print(*(prompts or ("go",)), foredeck=True)
    assert (ended.code, ended.stderr) == (0, "")
    assert model.steps_left == 0
    return model


def sessions(pi: Pi) -> str:
    """Id of the session that is running."""
    with stored(pi) as store:
        return str(store.query("session")[0].fields["session_id"])


def test_a_listed_file_is_read_when_it_is_activated(pi: Pi) -> None:
    """By any path that Pi's own `read` would take, and as far as that would go."""
    listed = {"by-tail": "by-tail.txt", "by-at": "@deep/by-at.txt", "huge": "deep/huge.txt"}
    (pi.repo / "deep").mkdir()
    for name in listed:
        (pi.repo / "deep" / f"{name}.txt").write_text(
            lines(name, 300_000 if name == "huge" else 60)
        )
    at_home = pi.workspace.root / "home" / "notes.txt"
    at_home.write_text(lines("notes"))
    model = run(
        pi,
        [
            [call("bash", command=f"ls deep/*.txt {at_home}")],
            [call("activate", id=name) for name in listed.values()],
            [call("pin", id="~/notes.txt")],
            "done",
        ],
    )
    tail, at, huge, notes = results(model.requests[-1])[-4:]
    assert tail == f"{handle(pi, '/by-tail.txt')}\n{lines('by-tail')}"
    assert at == f"{handle(pi, '/by-at.txt')}\n{lines('by-at')}"
    why = "it is too large; read it with offset and limit"
    assert huge == f"{handle(pi, '/huge.txt')} has no content to show: {why}."
    assert notes == f"{at_home} is outside this project, and no tool has read it: use read."
    assert_stable(answered(model))


def test_objects_of_other_sessions_can_be_activated(pi: Pi) -> None:
    """Chat, result and file of an earlier session, each by a name that the model may be given."""
    (pi.repo / "a.txt").write_text(lines("a"))
    run(pi, [call("read", path="a.txt"), call("bash", command="seq 300"), "found it"], "look here")
    other = sessions(pi)
    with stored(pi) as store:
        (bash,) = [h for h in store.query("toolcall") if h.fields["tool"] == "bash"]
        (member,) = store.query("member", {"object": bash.id})
    output_of = f"{other[:13]}:@{member.fields['ordinal']}"
    names = [f"chat:{other}", object_id(pi, "/a.txt")[:12], output_of]
    model = run(pi, [*([call("activate", id=name)] for name in names), "done"], "and now here")
    chat, file, output = results(model.requests[-1])
    assert "--- user\nlook here\n--- toolcall toolu_000001 tool=read" in chat
    assert chat.endswith("--- assistant\nfound it\n")
    assert file.endswith(lines("a"))
    assert output.endswith("\n299\n300\n")
    assert_stable(answered(model))


def test_a_pin_keeps_content_while_others_fold_and_unpin_lets_it_go(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(lines("pinned", 200))
    fill = [call("bash", command=f"seq {n}000 {n}700") for n in range(1, 10)]
    model = run(
        pi,
        [
            call("read", path="a.txt"),
            call("pin", id="a.txt"),
            *fill[:5],
            call("unpin", id="a.txt"),
            *fill[5:],
            "done",
        ],
        window=6500,
    )
    at = handle(pi, "/a.txt")
    with stored(pi) as store:
        reasons = [c.decision.reason for c in calls_of(store)]
        pinned = {c.ordinal: c.stats.pinned for c in calls_of(store)}
    assert "high-water" in reasons
    before = model.requests[7].request
    assert results(model.requests[7])[0] == f"{at}\n{lines('pinned', 200)}"
    assert is_reference(list(before.results.values())[2])
    assert results(model.requests[7])[1] == f"{at} is above, and pinned."
    assert results(model.requests[-1])[0].startswith(f"{at} folded: ")
    assert (pinned[3], pinned[8], pinned[10]) == (1, 1, 0)


def test_a_model_that_uses_no_tool_of_ours_loses_nothing(pi: Pi) -> None:
    """Every result is what plain Pi gave, under a handle at most, or a line that refers to it."""
    (pi.repo / "mod.py").write_text(lines("value =", 100))
    script: list[ToolCall] = [
        call("read", path="mod.py"),
        call("bash", command="grep -n 'value' mod.py"),
        call("edit", path="mod.py", edits=[{"oldText": "value = 7\n", "newText": "value = 70\n"}]),
        call("read", path="mod.py"),
        call("bash", command="python3 -c 'raise SystemExit(\"boom\")'"),
        call("write", path="new.py", content=lines("x =")),
        call("bash", command="grep -n 'value' mod.py"),
        call("read", path="mod.py", offset=20, limit=30),
    ]
    managed = run(pi, [*script, "all done"])
    original = [m["content"] for m in own_results(pi)]
    assert len(original) == len(script)
    told_shorter = 0
    for text, blocks in zip(results(managed.requests[-1]), original, strict=True):
        own = "\n".join(block["text"] for block in blocks)
        whole = re.sub(r"\A@\d+\n", "", text) == own
        assert whole or re.match(r"(Unchanged: |@\d+ v\d+, changed since)", text)
        told_shorter += not whole
    assert told_shorter == 2
    assert_stable(answered(managed))


def own_results(pi: Pi) -> list[dict[str, list[dict[str, str]]]]:
    """The tool results as Pi keeps them in its session file."""
    found = [e["message"] for e in pi.workspace.session_entries() if e["type"] == "message"]
    return [m for m in found if m["role"] == "toolResult"]


def test_the_user_still_sees_the_full_output(pi: Pi) -> None:
    """What foredeck leaves out of the prompt stays whole in Pi's session and events."""
    (pi.repo / "a.txt").write_text(lines("whole", 80))
    model = pi.serve([call("read", path="a.txt"), call("read", path="a.txt"), "done"])
    events = pi.rpc(foredeck=True).prompt("look twice")
    assert results(model.requests[-1])[1].startswith("Unchanged: ")
    ended = [e["result"] for e in events if e["type"] == "tool_execution_end"]
    shown = [result["content"][0]["text"] for result in ended]
    assert shown == [lines("whole", 80)] * 2
    assert [r["content"][0]["text"] for r in own_results(pi)] == shown


def test_definitions_are_constant(pi: Pi, tmp_path: Path) -> None:
    """From the first request on: with an engine, without one, and switched off."""
    declared = []
    for name, environment in {
        "ready": {},
        "missing": {"FOREDECK_ENGINE": str(tmp_path / "no-such-engine")},
        "off": {"FOREDECK": "off"},
    }.items():
        model = pi.serve([call("bash", command="echo hi"), "done"])
        assert pi.print(name, foredeck=True, environment=environment).code == 0
        declared += [recorded.request.body["tools"] for recorded in model.requests]
    assert len(declared) == 6
    assert all(tools == declared[0] for tools in declared)
    ours = [tool for tool in declared[0] if tool["name"] in DECLARED]
    assert [tool["name"] for tool in ours] == DECLARED


def test_a_folded_form_that_the_model_copies_is_refused_and_no_file_changes(pi: Pi) -> None:
    """Models imitate what they see: our marker must not end up in a file."""
    written = lines("real")

    def copies(request: ModelRequest) -> Reply:
        marker = request.find(r"<activate @\d+: \d+ chars folded>")
        return Reply((call("write", path="a.txt", content=marker),))

    def again(request: ModelRequest) -> Reply:
        marked = "Write the real text in its place"
        assert sum(marked in text for text in request.results.values()) == 1
        assert (pi.repo / "a.txt").read_text() == written
        return Reply((call("write", path="b.txt", content="other text\n"),))

    steps = [call("bash", command=f"echo {number}") for number in range(3)]
    model = pi.serve([call("write", path="a.txt", content=written), *steps, copies, again, "done"])
    short = {
        "FOREDECK_ADAPTIVE__PATIENCE_EDITS": "1",
        "FOREDECK_REBASE__CARRYING_FACTOR": "0",
        "FOREDECK_REBASE__GAP": "0",
        "FOREDECK_REBASE__GUARD": "10",
    }
    ended = pi.print("go", foredeck=True, environment=short)
    assert (ended.code, ended.stderr) == (0, "")
    assert model.steps_left == 0
    assert (pi.repo / "a.txt").read_text() == written
    assert (pi.repo / "b.txt").read_text() == "other text\n"
