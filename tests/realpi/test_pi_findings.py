"""Findings through the real Pi: proposed by the model or by a data tool, confirmed by the user."""

from __future__ import annotations

from typing import Any

from extracting import entries
from foredeck.memory.keeping import Memory
from foredeck.memory.trust import load_user
from foredeck_bench.twin.script import call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi
from observed import notified, stored

DATA_TOOL = """
export default function (pi) {
  pi.registerTool({
    name: "load-data", label: "Load", description: "Loads a table.",
    parameters: { type: "object", properties: {} },
    async execute() {
      const found = { content: "Osaka sold 1850 units on one day", severity: "high", tags: ["q1"] };
      const findings = [found, { content: "" }, 7, "Tokyo sold 130 units in each week"];
      return { content: [{ type: "text", text: "3 rows" }], details: { findings } };
    },
  });
}
"""
WITH_TOOL = {"FOREDECK_TOOLS__FINDINGS": "on"}
PROMOTED = "Returns doubled in March, from 40 to 81"
promote = call("promote-finding", content=PROMOTED, severity="critical", tags="q1, returns")


def told(model: ScriptedModel) -> list[str]:
    """What the model has read of its tools."""
    return list(model.requests[-1].request.results.values())


def test_the_model_proposes_and_the_user_confirms(pi: Pi) -> None:
    # What a session declares the one before has left.
    pi.serve(["hello"])
    pi.print("go", foredeck=True, environment=WITH_TOOL)
    again = call("promote-finding", content="Returns doubled in March, from 40 to 81.")
    model = pi.serve([promote, call("load-data"), promote, again, "done"])
    rpc = pi.rpc(foredeck=True, extensions=[DATA_TOOL], environment=WITH_TOOL)
    shown: list[str] = []

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        shown.append(asked["message"])
        return {"confirmed": True}

    rpc.dialogs = answer
    rpc.prompt("Look at the data.")
    refused, loaded, kept, twice = told(model)
    assert refused == "No data is loaded in this session: load or query some first."
    assert loaded == "3 rows"
    assert kept == "Kept: the user has confirmed it."
    assert twice == "That finding is there already, or the user did not want it."
    assert shown[0].startswith(f"{PROMOTED}\nfinding; from a tool's output")
    assert sorted(entries(pi)) == [
        ("findings", "kept", PROMOTED),
        ("findings", "proposed", "Osaka sold 1850 units on one day"),
        ("findings", "proposed", "Tokyo sold 130 units in each week"),
    ]
    assert "2 findings wait for your word: /memory" in notified(rpc)
    rpc.command("/memory findings critical")
    assert f"{PROMOTED} #critical #q1 #returns  (learned " in notified(rpc)[-1]
    with stored(pi) as store:
        [finding] = Memory(store, load_user(pi.config().home)).all("findings", "kept")
        assert finding.trust == "derived", "the user has confirmed it, and not said it"


def test_without_a_user_it_waits_and_the_next_session_has_the_tool(pi: Pi) -> None:
    model = pi.serve([call("load-data"), "done"])
    pi.print("Look at the data.", foredeck=True, extensions=[DATA_TOOL])
    first = {tool["name"] for tool in model.requests[-1].request.body["tools"]}
    model = pi.serve([call("load-data"), promote, "done"])
    pi.print("Look again.", foredeck=True, extensions=[DATA_TOOL])
    tools = {tool["name"] for tool in model.requests[0].request.body["tools"]}
    assert tools - first == {"promote-finding"}
    assert told(model)[-1] == "Proposed. The user decides whether it is kept; go on meanwhile."
    assert ("findings", "proposed", PROMOTED) in entries(pi)
