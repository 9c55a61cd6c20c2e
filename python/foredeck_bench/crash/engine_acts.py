"""The act of an engine and its host: calls of a session, which goes on after a kill."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.config.sections import SourcesSection
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import AssembleResult, ToolObservedParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.store.place import open_store
from foredeck_bench.crash.acts import Act, Reach, Scene, patiently, reporting
from foredeck_bench.crash.stores import Tally, check_answered, check_records, check_results
from foredeck_bench.work_session import Step, WorkSession, work_host

CALLS = 10
REPLIED, SENT = "replied", "sent"
NAME = "SESSION"
"""In place of the session's own, in prompts that are compared."""


def _sent_file(scene: Scene) -> Path:
    return scene.folder / "sent.jsonl"


def _sent(scene: Scene) -> list[dict[str, Any]]:
    """What went to the provider, call by call."""
    return [json.loads(line) for line in _sent_file(scene).read_text().splitlines()]


def _prepare(scene: Scene) -> None:
    scene.folder.mkdir(parents=True)
    _sent_file(scene).touch()


def _call(scene: Scene, reach: Reach, _number: int) -> None:
    """Makes the calls that were not sent yet."""
    steps = list(WorkSession(scene.folder / "work", scene.session).steps(CALLS))
    done = len(_sent(scene))
    config = Config(**scene.settings, sources=SourcesSection(watch=False))
    store = reporting(open_store(config), reach)
    host = work_host(scene.session, [m for step in steps[:done] for m in step.messages])
    with closing(Engine(config, Host(), store=store)) as engine, _sent_file(scene).open("a") as out:
        for number, step in enumerate(steps[done:]):
            # Of what ran before a kill nothing is reported again.
            answer = _answered(scene, engine, host, step, step.observed if number else [])
            reach(REPLIED)
            host.accept(answer)
            results = {
                m["toolCallId"]: m["content"][0]["text"]
                for m in host.messages
                if m["role"] == "toolResult"
            }
            sent = {"call": answer["call"], "prompt": host.prompt(), "results": results}
            print(json.dumps(sent), file=out, flush=True)
            reach(SENT)


def _answered(
    scene: Scene, engine: Engine, host: SimulatedHost, step: Step, observed: list[dict[str, Any]]
) -> AssembleResult:
    host.add(*step.messages)
    attempts = count()

    def ask() -> AssembleResult:
        attempt = next(attempts)
        if attempt or engine.opened is None:
            engine.open_session(host.opening(str(scene.folder / "work"), "resume"))
            host.replace_engine()
        for event in observed if attempt == 0 else []:
            params = {"session": scene.session, **event}
            engine.tool_observed(ToolObservedParams.model_validate(params))
        return engine.assemble(host.request(step.time_ms + attempt))

    return patiently(ask)


def _outcome(scene: Scene) -> tuple[list[str], list[str]]:
    """Every prompt, and what is lost, doubled or half written."""
    sent, tally = _sent(scene), Tally()
    with scene.opened(lazy=True) as store:
        check_answered(store, scene.session, [(e["call"], e["prompt"]) for e in sent], tally)
        check_records(store, scene.session, tally)
        check_results(store, scene.session, sent[-1]["results"] if sent else {}, tally)
    prompts = [json.dumps(each["prompt"]).replace(scene.session, NAME) for each in sent]
    return prompts, tally.examples


ENGINE = Act(_prepare, _call, _outcome, races=False, atomic=False)
NODE = Act(_prepare, _call, _outcome, races=False, atomic=False, victims=("node",))
