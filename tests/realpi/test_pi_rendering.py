"""What the model sees of every kind of message and file."""

from __future__ import annotations

import base64
import re
from threading import Event

from foredeck.context.state.stored_chat import chat_fields
from foredeck.model.quoting import is_reference
from foredeck_bench.twin.script import ModelRequest, Reply, Text, ToolCall, call
from harness import PATIENCE_S, Pi, both_versions
from observed import (
    answered,
    assert_recorded,
    assert_stable,
    errors,
    handle,
    last_result,
    notified,
    results,
    session_of,
    stored,
)
from pictures import png

LONG = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(120))
NO_COMPACTION = {"compaction": {"enabled": False}}
"""Pi's own compaction would come first in a window as small as these tests need."""


@both_versions
def test_results_carry_handles_and_rereads_collapse(pi: Pi) -> None:
    for name in "abc":
        (pi.repo / f"{name}.txt").write_text(LONG.replace("line", f"{name}-line"))
    model = pi.serve(
        [
            [
                Text("all at once"),
                *(call("read", path=f"{name}.txt") for name in "abc"),
                call("read", path="a.txt"),
                call("bash", command="exit 1"),
                call("read", path="missing.txt"),
            ],
            call("read", path="a.txt", offset=10, limit=20),
            "done",
        ]
    )
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stdout.strip()) == (0, "done")
    a, b, c, again, *failed, part = results(model.requests[-1])
    for name, text in zip("abc", (a, b, c), strict=True):
        expected = LONG.replace("line", f"{name}-line")
        assert text == f"{handle(pi, f'/{name}.txt')}\n{expected}"
    at = handle(pi, "/a.txt")
    assert again == f"Unchanged: the same as {at} above."
    assert part == f"Unchanged: these lines are in {at} above."
    assert errors(model.requests[-1]) == failed
    assert len(failed) == 2
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)


def test_an_image_passes_as_it_is(pi: Pi) -> None:
    (pi.repo / "red.png").write_bytes(png())
    model = pi.serve([call("read", path="red.png"), call("read", path="red.png"), "done"])
    assert pi.print("look", foredeck=True).code == 0
    data = base64.b64encode(png()).decode()
    sent = [str(message) for message in model.requests[-1].request.messages]
    assert sum(data in text for text in sent) == 2
    with stored(pi) as store:
        (first, second) = store.query("toolcall", {"tool": "read"})
        (image,) = first.fields["images"]
        assert second.fields["images"] == [image]
        assert store.blob(image) == png()


def test_empty_results_and_errors_pass_valid(pi: Pi) -> None:
    (pi.repo / "empty.txt").write_text("")
    model = pi.serve(
        [
            [call("read", path="empty.txt"), call("bash", command="true")],
            [call("bash", command="false"), call("nonsense", x=1), call("read")],
            "done",
        ],
        api="openai-completions",
    )
    assert pi.print("go", foredeck=True).stdout.strip() == "done"
    assert len(results(model.requests[-1])) == 5


@both_versions
def test_an_aborted_run_goes_on(pi: Pi) -> None:
    """Esc while a tool runs, and while the model answers; then the user goes on."""
    asked, released = Event(), Event()

    def slow(_: ModelRequest) -> str:
        asked.set()
        released.wait(PATIENCE_S)
        return "too late"

    model = pi.serve(
        [
            call("bash", command="echo begun; sleep 60"),
            slow,
            call("bash", command="echo hi"),
            "done",
        ]
    )
    rpc = pi.rpc(foredeck=True)
    start = len(rpc.events)
    rpc.send("prompt", message="start")
    rpc.wait_event(lambda event: event["type"] == "tool_execution_start", start)
    rpc.abort()
    rpc.wait_idle(start)
    start = len(rpc.events)
    rpc.send("prompt", message="again")
    assert asked.wait(PATIENCE_S)
    rpc.abort()
    rpc.wait_idle(start)
    released.set()
    rpc.prompt("go on")
    last = model.requests[-1].request
    assert [text for text in ("start", "again", "go on") if text not in last.text] == []
    assert last_result(model.requests[-1]) == "hi\n"
    # Behind a request without an answer Pi moves the marker of the effort.
    assert_stable([sent for sent in model.requests if sent is not model.requests[1]])
    assert notified(rpc) == []


CUSTOM = """
export default function (pi) {
  pi.on("before_agent_start", () => ({
    message: {
      customType: "note",
      content: "A note of another extension.",
      display: true,
      details: { written: "by hand" },
    },
  }));
}
"""


def test_custom_messages_of_another_extension_pass_and_are_kept_whole(pi: Pi) -> None:
    model = pi.serve([call("bash", command="seq 300"), "done", "fine"])
    assert pi.print("go", "and on", foredeck=True, extensions=[CUSTOM]).code == 0
    assert model.requests[-1].request.text.count("A note of another extension.") == 2
    assert_stable(answered(model))
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)
        turns = chat_fields(store, session_of(store), 3)["turns"]
    notes = [message for turn in turns for message in turn["others"]]
    assert [note["details"] for note in notes] == [{"written": "by hand"}] * 2
    assert all(turn["assistant_meta"]["responseId"] for turn in turns)


@both_versions
def test_what_the_user_ran_is_in_the_prompt(pi: Pi) -> None:
    """`!command` reaches the model, `!!command` does not."""
    model = pi.serve(["one", call("bash", command="seq 300"), "two"])
    rpc = pi.rpc("hello", foredeck=True)
    rpc.send("bash", command="echo seen by the model")
    rpc.send("bash", command="echo kept from the model", excludeFromContext=True)
    rpc.prompt("go on")
    text = model.requests[-1].request.text
    assert "seen by the model" in text
    assert "kept from the model" not in text
    assert_stable(answered(model))


def test_a_reply_cut_off_by_the_network_is_tried_again(pi: Pi) -> None:
    def last(request: ModelRequest) -> Reply:
        assert re.search(r"@\d+\n1\n2\n", request.text)
        return Reply((Text("done"),))

    model = pi.serve(
        [call("bash", command="seq 300"), Reply((Text("x" * 4000),), cut=True), last, "more"]
    )
    ended = pi.print("go", "on", foredeck=True)
    assert (ended.code, ended.stdout.strip()) == (0, "more")
    assert '"type":"context_edit"' in pi.workspace.session_files()[-1].read_text()
    assert_stable([r for r in answered(model) if r.complete])


def test_what_the_user_says_meanwhile_passes(pi: Pi) -> None:
    """Images in a prompt, a word in mid-run, a word for afterwards."""
    asked, released = Event(), Event()

    def wait(_: ModelRequest) -> ToolCall:
        asked.set()
        assert released.wait(PATIENCE_S)
        return call("bash", command="seq 300")

    model = pi.serve([wait, call("bash", command="seq 400"), "done", "and that too"])
    rpc = pi.rpc(foredeck=True)
    start = len(rpc.events)
    image = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    rpc.send("prompt", message="look at this", images=[image])
    assert asked.wait(PATIENCE_S)
    rpc.send("steer", message="and mind that")
    rpc.send("follow_up", message="afterwards this")
    released.set()
    rpc.wait_idle(start)
    assert model.steps_left == 0
    text = model.requests[-1].request.text
    assert text.index("look at this") < text.index("and mind that") < text.index("afterwards this")
    assert str(model.requests[-1].request.messages).count(image["data"]) == 1
    assert_stable(answered(model))
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)


def test_layout_pools_sends_valid_prompts(pi: Pi) -> None:
    """Metadata, chat, content: stateless, so that nothing but validity is promised."""
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve(
        [
            [call("read", path="a.txt"), call("bash", command="seq 300")],
            [call("read", path="a.txt"), call("activate", id="a.txt")],
            "done",
            call("bash", command="seq 400"),
            "end",
        ]
    )
    ended = pi.print("work", "go on", foredeck=True, environment={"FOREDECK_LAYOUT": "pools"})
    assert (ended.code, ended.stderr) == (0, "")
    assert model.requests[-1].request.text.count("line 119: the quick brown fox") == 1
    assert is_reference(results(model.requests[-1])[0])
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)
