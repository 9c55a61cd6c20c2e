"""One play of a recorded session, with foredeck or without."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.config import load_config
from foredeck.lookup.sessions import newest_calls
from foredeck.model.calls import CallRecord, in_order
from foredeck.store.kind import open_store
from foredeck_bench.playback.recorded import RecordedPlay
from foredeck_bench.scripted.pi_process import PATIENT, PiInstall, PiWorkspace, write_agent_dir
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.billing import ModelRecord
from foredeck_bench.twin.request import Api, ModelRequest
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel
from foredeck_bench.twin.steps import StepResult

Json = dict[str, Any]

TOOLS = Path(__file__).with_name("tools.js")
CHECKOUT = Path(__file__).resolve().parents[3]

_DATA = CHECKOUT / "node_modules/@earendil-works/pi-ai/dist/providers/data"
_PROVIDERS = ("anthropic", "openai", "google")
_FIELDS = (
    *("id", "name", "reasoning", "input", "contextWindow", "maxTokens"),
    *("cost", "promptCache", "compat", "thinkingLevelMap"),
)
"""Fields of Pi's record that a models.json may hold."""


def pi_record(model: str) -> tuple[Api, Json]:
    """Pi's own record of a model, and its API; raises LookupError."""
    for provider in _PROVIDERS:
        path = _DATA / f"{provider}.json"
        records = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        for api, models in records.items():
            for own in (each for each in models.values() if each["id"] == model):
                record = {name: own[name] for name in _FIELDS if name in own}
                if api == "anthropic-messages":
                    # Pi's default at Anthropic's own address.
                    flags = {**record.get("compat", {}), "supportsMessageThreads": True}
                    record["compat"] = flags
                return cast(Api, api), record
    raise LookupError(f"Pi has no record of {model} ({', '.join(_PROVIDERS)})")


@dataclass(frozen=True, slots=True)
class PlayResult:
    """The outcome of a play. `dollars`: the twin's bill of the prompts; `total`: with answers;
    `host`: Pi's count."""

    model: ScriptedModel
    calls: list[RecordedRequest]
    session_file: Path
    dollars: float
    total: float
    host: float
    figure: CostFigure | None
    records: Sequence[CallRecord] = ()
    """Of the calls, as foredeck keeps them."""

    def curve(self) -> Iterator[str]:
        sizes = [each.usage.prompt if each.usage else 0 for each in self.calls]
        for number, record in enumerate(self.records):
            decision = record.decision
            if decision.is_rebase and 0 < number < len(sizes):
                before, after = sizes[number - 1], sizes[number]
                yield f"call {number + 1}, {decision.reason}: {before:,} to {after:,} tokens"
        tenth = (f"{size / 1000:.0f}k" for size in sizes[::10])
        yield f"every tenth prompt: {' '.join(tenth)}"


def play(
    recorded: RecordedPlay,
    install: PiInstall,
    workspace: PiWorkspace,
    *,
    api: Api,
    record: Json,
    foredeck: bool = True,
    environment: Mapping[str, str] | None = None,
) -> PlayResult:
    """Plays a recording in a fresh workspace."""
    scratch = workspace.root / "playback.json"
    figures = {
        "times": [answer.time_ms for answer in recorded.answers],
        "results": recorded.results,
        "tools": sorted(recorded.tools),
    }
    scratch.write_text(json.dumps(figures), encoding="utf-8")
    player = _Player(recorded)
    model_record = ModelRecord.of_pi(api, record)
    with ScriptedModel(player.step, record=model_record, clock=player.now_s) as model:
        write_agent_dir(workspace.agent_dir, model.url, api=api, record=record)
        loaded = [TOOLS, *([CHECKOUT] if foredeck else [])]
        own = {**PATIENT, "PLAYBACK": str(scratch), **(environment or {})}
        with RpcPi(install, workspace, extensions=loaded, environment=own, timeout_s=600) as pi:
            player.run(pi)
            host = float(pi.send("get_session_stats")["cost"])
    answered = [each for each in model.requests if each.usage]
    calls = [each for each in answered if not each.side]
    usages = [each.usage for each in answered if each.usage]
    prompts = [replace(each.usage, output=0) for each in calls if each.usage]
    return PlayResult(
        model,
        calls,
        workspace.session_files()[-1],
        sum(map(model_record.dollars, prompts)),
        sum(map(model_record.dollars, usages)),
        host,
        *(_kept(workspace, environment or {}) if foredeck else (None,)),
    )


class _Player:
    """Asks and answers in turn, as script and clock of the twin."""

    def __init__(self, recorded: RecordedPlay) -> None:
        self._answers = recorded.answers
        self._position = 0
        self._pi: RpcPi | None = None

    def run(self, pi: RpcPi) -> None:
        self._pi = pi
        while self._position < len(self._answers):
            before, prompt = self._position, self._answers[self._position].prompt
            images = {"images": prompt.images} if prompt and prompt.images else {}
            pi.prompt(prompt.text if prompt else "Go on.", **images)
            if self._position == before:
                raise RuntimeError(f"call {before + 1} was never made")

    def step(self, _: ModelRequest) -> StepResult:
        """The recorded answer to the next request."""
        answer = self._answers[self._position]
        self._position += 1
        later = self._answers[self._position : self._position + 1]
        if answer.calls and later and later[0].prompt and self._pi:
            # Said while tools ran.
            prompt = later[0].prompt
            self._pi.send("steer", message=prompt.text, images=prompt.images)
        return answer.reply

    def now_s(self) -> float:
        """The recorded time of the next request."""
        return self._answers[min(self._position, len(self._answers) - 1)].time_ms / 1000


def _kept(
    workspace: PiWorkspace, environment: Mapping[str, str]
) -> tuple[CostFigure, list[CallRecord]]:
    flags = [f"home={workspace.foredeck_home}"]
    config = load_config(flags=flags, environ=environment, user_file=Path("/dev/null")).config
    store = open_store(config, lazy=True)
    try:
        (head,) = store.query("session")
        session = str(head.fields["session_id"])
        figure = session_figure(store, session, newest_calls(store, [session])[session])
        return figure, in_order(head.fields for head in store.query("call"))
    finally:
        store.close()
