"""A virtual model picks a model for each request: whose price, wire and window count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foredeck.model.calls import CallRecord
from foredeck_bench.scripted.pi_process import MODEL, PROVIDER
from foredeck_bench.twin.script import call
from harness import Asked, Pi
from observed import calls_of, command_text, notified, session_of, stored
from test_pi_models import SMALL, WINDOW, add_models

ROUTER = """
export default function (pi) {
  pi.registerVirtualModel({
    provider: "router",
    id: "auto",
    route(request, ctx) {
      const later = request.messages.filter(({ role }) => role === "assistant").length >= 4;
      const model = ctx.modelRegistry.find("%s", later ? "%s" : "%s");
      return { model, thinkingLevel: "off" };
    },
  });
}
"""
"""Routes to the usual model, and from the fifth request on to the small one."""


def routed(tmp_path: Path) -> dict[str, Any]:
    """What starts Pi with this model selected."""
    extension = tmp_path / "router.mjs"
    extension.write_text(ROUTER % (PROVIDER, SMALL, MODEL))
    return {"extensions": [extension], "arguments": ["--model", "router/auto"]}


def known(record: CallRecord) -> tuple[str, int | None, float]:
    model = record.model
    return model.name, model.window, model.input_price


def test_what_counts_is_the_model_that_has_answered_last(
    pi: Pi, tmp_path: Path, asked: Asked
) -> None:
    steps = [call("bash", command=f"seq {number}000 {number}400") for number in range(1, 7)]
    model = pi.serve([*steps, "done"])
    add_models(pi, model.url)
    rpc = pi.rpc("go", foredeck=True, **routed(tmp_path))
    assert [each.request.body["model"] for each in model.requests] == [MODEL] * 4 + [SMALL] * 3
    assert [text for text in notified(rpc) if "No prices" in text] == []
    with stored(pi) as store:
        calls, session = calls_of(store), session_of(store)
    usual, small = f"{PROVIDER}/{MODEL}", f"{PROVIDER}/{SMALL}"
    unknown, big = ("", None, 0.0), (usual, 200_000, 3.0)
    # The call that goes to another model is known for one only by its answer.
    assert [*map(known, calls)] == [unknown, *[big] * 4, *[(small, WINDOW, 3.0)] * 2]
    assert {each.model.api for each in calls[1:]} == {"anthropic-messages"}
    assert {each.cache.rule for each in calls[1:]} == {"markers"}
    assert [each.decision.reason for each in calls] == [None] * 7, "no call is taken for a switch"
    account = json.loads(asked("cost", session, "--json"))
    assert [line["model"] for line in account["calls"]] == [usual] * 4 + [small] * 3
    assert account["total"]["lost_tokens"].keys() == {"model switch"}
    assert account["figure"]["unit"] == "dollars"
    assert "with plain Pi, over 7 calls" in command_text(rpc, "/foredeck cost")
