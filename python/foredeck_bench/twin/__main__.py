"""Run the twin by hand: `python -m foredeck_bench.twin --help`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, cast, get_args

from foredeck_bench.twin.billing import ModelRecord
from foredeck_bench.twin.report import TwinReport
from foredeck_bench.twin.script import (
    Api,
    Failure,
    ModelRequest,
    Reply,
    StepResult,
    Text,
    Thinking,
    ToolCall,
)
from foredeck_bench.twin.server import ScriptedModel

HELP = """\
A provider on loopback that refuses, caches, drops reasoning and charges as the real one documents.

Point a client at the address that is printed: Anthropic Messages at URL/v1/messages (message
threads and count_tokens too), OpenAI at URL/v1/responses and URL/v1/chat/completions, Google at
URL/v1beta/models/NAME:streamGenerateContent. Any key will do.

  python -m foredeck_bench.twin
      answers "ok" to everything, until Ctrl-C, then prints the report
  python -m foredeck_bench.twin --record opus.json --api anthropic-messages --script steps.json
      prices, tiers, cache and binding of that model of Pi's; answers from the script

A record is one of Pi's: an entry of `providers/data/*.json` of pi-ai, or of a models.json. A script
is a JSON list, one step per request; a step is text, {"fail": 429}, or a list of blocks:
text, {"think": "text"} or {"call": "read", "arguments": {"path": "a.py"}}. After the last step
every answer is "ok".

While it runs:
  curl URL/twin/report                           what was refused, dropped, read, written, charged
  curl URL/twin/clock -d '{"advance_s": 400}'    let caches and threads grow old
"""


class AdjustedTime:
    """The clock of caches and threads: real time and what was added."""

    def __init__(self) -> None:
        self.added_s = 0.0

    def __call__(self) -> float:
        """Seconds now."""
        return time.monotonic() + self.added_s


class Twin(ScriptedModel):
    """A server that also answers questions about itself."""

    clock: AdjustedTime

    def other(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if path == "/twin/report":
            return TwinReport.of(self).as_json()
        if path == "/twin/clock":
            self.clock.added_s += float(body.get("advance_s", 0))
            return {"added_s": self.clock.added_s}
        return super().other(path, body)


def step_of(given: Any) -> StepResult:
    """A script's step in JSON; raises ValueError."""
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and "fail" in given:
        return Failure(int(given["fail"]), "api_error", str(given.get("message", "scripted")))
    blocks = given if isinstance(given, list) else [given]
    return Reply(tuple(_block(block) for block in blocks))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m foredeck_bench.twin",
        description=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", type=Path, help="a model's record of Pi's, a JSON file")
    parser.add_argument(
        "--api", choices=get_args(Api), default="anthropic-messages", help="of that model"
    )
    parser.add_argument("--script", type=Path, help="the steps, a JSON file")
    parser.add_argument("--window", type=int, help="refuse longer prompts, in tokens")
    parser.add_argument("--port", type=int, default=0, help="a free one if not given")
    options = parser.parse_args(arguments)
    record = None
    if options.record:
        fields = json.loads(options.record.read_text(encoding="utf-8"))
        record = ModelRecord.of_pi(cast(Api, options.api), fields)
    steps = json.loads(options.script.read_text(encoding="utf-8")) if options.script else []
    queue = [step_of(step) for step in steps]
    clock = AdjustedTime()

    def script(_: ModelRequest) -> StepResult:
        return queue.pop(0) if queue else "ok"

    twin = Twin(script, record=record, window=options.window, clock=clock, port=options.port)
    twin.clock = clock
    with twin:
        print(twin.url, flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass
        print(TwinReport.of(twin).text())
        for violation in twin.violations:
            print(f"request {violation.request}: {violation.rule}: {violation.message}")
    return 1 if twin.violations else 0


def _block(given: Any) -> Text | Thinking | ToolCall:
    if isinstance(given, str):
        return Text(given)
    if "think" in given:
        return Thinking(str(given["think"]))
    if "call" in given:
        return ToolCall(str(given["call"]), given.get("arguments") or {})
    raise ValueError(f"no step: {json.dumps(given)}")


if __name__ == "__main__":
    raise SystemExit(main())
