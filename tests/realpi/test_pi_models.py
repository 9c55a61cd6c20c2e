"""Another model in the middle of a session: a smaller window, another wire, no images."""

from __future__ import annotations

import json
from typing import Any

from foredeck_bench.scripted.pi_process import MODEL, PROVIDER
from foredeck_bench.twin.prompts import prompt_tokens
from foredeck_bench.twin.script import Step, Thinking, call
from foredeck_bench.twin.server import RecordedRequest
from harness import Pi, questions
from observed import answered, calls_of, stored
from pictures import png

SIDE = 1061
"""Pixels: a square of that side takes what the scripted model counts for any image."""
SMALL, PLAIN = "scripted-small", "scripted-plain"
WINDOW = 12_000


def add_models(pi: Pi, url: str) -> None:
    """Beside the usual model: one with a small window, and one of another wire without images."""
    path = pi.workspace.agent_dir / "models.json"
    config: dict[str, Any] = json.loads(path.read_text())
    provider = config["providers"][PROVIDER]
    usual = provider["models"][0]
    provider["models"].append({**usual, "id": SMALL, "contextWindow": WINDOW})
    plain = {**usual, "id": PLAIN, "input": ["text"], "contextWindow": 32_000, "reasoning": False}
    config["providers"]["other"] = {
        **provider,
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "models": [plain],
    }
    path.write_text(json.dumps(config))


def tokens(recorded: RecordedRequest) -> int:
    return prompt_tokens(recorded.request)


def test_every_prompt_fits_the_model_that_gets_it(pi: Pi) -> None:
    (pi.repo / "dot.png").write_bytes(png(SIDE))
    script: list[Step] = []
    for number in range(4):
        script += [
            [Thinking("I think."), call("bash", command=f"seq {number}0000 {number}1500")],
            [Thinking("Once more."), call("read", path="dot.png")],
            f"Answer {number}. {'and so on ' * 500}",
        ]
    script += ["small", call("bash", command="seq 70000 72000"), "smaller", "plain", "big again"]
    model = pi.serve(script, reasoning=True)
    add_models(pi, model.url)
    rpc = pi.rpc(*questions(4), foredeck=True)
    assert tokens(answered(model)[-1]) > WINDOW
    rpc.send("set_model", provider=PROVIDER, modelId=SMALL)
    rpc.prompt("With the small one.")
    rpc.prompt("And a tool.")
    small = answered(model)[-3:]
    assert [r.request.body["model"] for r in small] == [SMALL] * 3
    assert all(tokens(r) < WINDOW for r in small)
    assert "With the small one." in small[0].request.text
    rpc.send("set_model", provider="other", modelId=PLAIN)
    rpc.prompt("With the plain one.")
    plain = answered(model)[-1]
    assert (plain.request.api, plain.request.body["model"]) == ("openai-completions", PLAIN)
    assert tokens(plain) < 32_000
    assert "image_url" not in json.dumps(plain.request.body)
    rpc.send("set_model", provider=PROVIDER, modelId=MODEL)
    rpc.prompt("And back.")
    assert "And back." in answered(model)[-1].request.text
    with stored(pi) as store:
        reasons = [c.decision.reason for c in calls_of(store)]
    assert {"model", "window"} & set(reasons[-5:])
