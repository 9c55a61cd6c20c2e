"""Beside other extensions that change messages: valid prompts, nothing lost."""

from __future__ import annotations

import json

import pytest

from foredeck.model.documents import ToolcallDocument
from foredeck_bench.twin.script import Step, call
from harness import TEXT, Pi, both_versions, on_either
from observed import assert_recorded, calls_of, errors, notified, results, session_of, stored

WORK: list[Step] = [
    [call("read", path="a.txt"), call("bash", command="seq 300")],
    [call("read", path="a.txt"), call("bash", command="seq 400")],
    "worked",
    call("bash", command="seq 500"),
    "end",
]

DROPS_RESULTS = """
export default function (pi) {
  pi.on("context", ({ messages }) => ({
    messages: messages.filter((m) => !(m.role === "toolResult" && m.toolName === "bash")),
  }));
}
"""

DROPS_CALLS = """
export default function (pi) {
  pi.on("context", ({ messages }) => {
    const calls = (m) => m.role === "assistant" && m.content.some((b) => b.type === "toolCall");
    const first = messages.findIndex(calls);
    return { messages: messages.filter((m, i) => i !== first) };
  });
}
"""

NUDGES = """
export default function (pi) {
  let calls = 0;
  pi.on("context", ({ messages }) => {
    calls += 1;
    if (calls % 2 === 0) return undefined;
    const at = messages.findLastIndex((m) => m.role === "user");
    const nudge = { role: "user", content: `nudge ${calls}`, timestamp: 1 };
    return { messages: [...messages.slice(0, at), nudge, ...messages.slice(at)] };
  });
}
"""

SHORTENS = """
export default function (pi) {
  pi.on("context", ({ messages }) => ({
    messages: messages.map((m) => m.role === "toolResult"
      ? { ...m, content: [{ type: "text", text: m.content[0].text.slice(0, 30) }] } : m),
  }));
}
"""

EMPTIES = """
export default function (pi) {
  pi.on("context", ({ messages }) => ({ messages: messages.slice(-1) }));
}
"""

THROWS = """
export default function (pi) {
  pi.on("context", () => { throw new Error("a bug of another extension"); });
  pi.on("tool_result", () => { throw new Error("another bug"); });
}
"""

UNKNOWN_ROLES = """
export default function (pi) {
  pi.on("context", ({ messages }) => ({
    messages: [...messages, { role: "weather", content: "sunny", timestamp: 1 }],
  }));
}
"""

EXTENSIONS = {
    "drops-calls": DROPS_CALLS,
    "empties": EMPTIES,
    "shortens": SHORTENS,
    "throws": THROWS,
    "unknown-roles": UNKNOWN_ROLES,
}


@pytest.mark.parametrize(
    ("name", "first"),
    [
        *((name, False) for name in ("drops-calls", "empties", "shortens", "unknown-roles")),
        ("throws", True),
    ],
)
def test_another_extension_leaves_prompts_valid_and_data_whole(
    pi: Pi, name: str, first: bool
) -> None:
    """Loaded before foredeck or after it."""
    check(pi, EXTENSIONS[name], first=first)


def check(pi: Pi, other: str, *, first: bool) -> None:
    """Two prompts of work beside another extension, and what must be true after them."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    if first:
        rpc = pi.rpc(foredeck=True, before=[other])
    else:
        rpc = pi.rpc(foredeck=True, extensions=[other])
    rpc.prompt("work")
    rpc.prompt("more")
    assert model.steps_left == 0
    assert notified(rpc) == []
    with stored(pi) as store:
        assert len(calls_of(store)) == len(model.requests)
        tools = [store.get(h.id, ToolcallDocument) for h in store.query("toolcall")]
        outputs = {tool.content for tool in tools if tool}
    for count in (300, 400, 500):
        assert "".join(f"{n}\n" for n in range(1, count + 1)) in outputs
    assert TEXT in outputs


def test_a_lost_result_is_said_to_be_lost(pi: Pi) -> None:
    """A provider refuses a call without its result: ours stands in, and says so."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    assert pi.print("work", "more", foredeck=True, extensions=[DROPS_RESULTS]).code == 0
    assert "[foredeck] No result: the call was interrupted." in results(model.requests[-1])
    assert "No result provided" not in json.dumps(model.requests[-1].request.body)
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)
        assert len(store.query("toolcall", {"tool": "bash"})) == 3


def test_a_nudge_that_comes_and_goes_is_recorded_as_it_was_sent(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    assert pi.print("work", "more", foredeck=True, extensions=[NUDGES]).code == 0
    nudged = ["nudge" in recorded.request.text for recorded in model.requests]
    assert nudged == [True, False, True, False, True]
    with stored(pi) as store:
        assert_recorded(store, session_of(store), model.requests)


BLOCKS = """
export default function (pi) {
  pi.on("tool_call", ({ toolName }) => toolName === "bash"
    ? { block: true, reason: "no shell" } : undefined);
  pi.on("tool_result", ({ toolName, content }) => toolName === "read"
    ? { content: [...content, { type: "text", text: "(seen by another extension)" }] } : undefined);
}
"""


@both_versions
def test_blocked_tools_and_changed_results_are_taken_as_they_are(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([[call("read", path="a.txt"), call("bash", command="ls")], "done"])
    assert pi.print("work", foredeck=True, extensions=[BLOCKS]).code == 0
    assert "(seen by another extension)" in results(model.requests[-1])[0]
    (blocked,) = errors(model.requests[-1])
    assert "no shell" in blocked


HAS_THE_SAME_NAMES = """
export default function (pi) {
  pi.registerTool({ name: "pin", label: "pin", description: "Pins a map.",
    parameters: { type: "object", properties: {} },
    async execute() { return { content: [{ type: "text", text: "on the map" }], details: {} }; } });
  pi.registerCommand("tasks", { description: "theirs",
    handler: async (_args, ctx) => ctx.ui.notify("their tasks", "info") });
}
"""


@on_either("first", True, False)
def test_names_that_another_extension_has_stay_its_own(pi: Pi, first: bool) -> None:
    """Pi itself would not start for the tool, and would rename both commands."""
    model = pi.serve([call("pin"), call("bash", command="seq 300"), "done"])
    rpc = (
        pi.rpc(foredeck=True, before=[HAS_THE_SAME_NAMES])
        if first
        else pi.rpc(foredeck=True, extensions=[HAS_THE_SAME_NAMES])
    )
    rpc.prompt("go")
    (first_request, *_, last) = model.requests
    assert first_request.request.tools.count("pin") == 1
    assert "activate" in first_request.request.tools
    pinned, listed = results(last)
    assert pinned == "on the map"
    assert listed.startswith("@")
    rpc.command("/tasks")
    rpc.command("/foredeck tasks")
    told = notified(rpc)
    assert told[0].splitlines() == [
        "/tasks belongs to another extension: type /foredeck tasks.",
        "The tool is another extension's: pin. foredeck goes without it.",
    ]
    assert "their tasks" in told
    assert "This project has no tasks yet." in told
