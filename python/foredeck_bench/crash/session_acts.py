"""Acts of one session, which goes on after a kill: its calls, and observing it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.config.sections import SourcesSection
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import AssembleResult, ToolObservedParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.observations.chunks import (
    Chunk,
    ChunkRules,
    Position,
    SourceCall,
    SourceMessage,
    WallTime,
    next_chunk,
)
from foredeck.observations.keeping import ObservationKeeper
from foredeck.observations.lease import ObservingLease
from foredeck.observations.observers import AskedQuestion, ModelObserver, ModelReply
from foredeck.observations.reading import stored_notes
from foredeck.observations.rules import ModeChoice, TimingRules
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


def _nothing_sent(scene: Scene) -> None:
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


def _calls_outcome(scene: Scene) -> tuple[list[str], list[str]]:
    """Every prompt, and what is lost, doubled or half written."""
    sent, tally = _sent(scene), Tally()
    with scene.opened(lazy=True) as store:
        check_answered(store, scene.session, [(e["call"], e["prompt"]) for e in sent], tally)
        check_records(store, scene.session, tally)
        check_results(store, scene.session, sent[-1]["results"] if sent else {}, tally)
    prompts = [json.dumps(each["prompt"]).replace(scene.session, NAME) for each in sent]
    return prompts, tally.examples


ENGINE = Act(_nothing_sent, _call, _calls_outcome, races=False, atomic=False)
NODE = Act(_nothing_sent, _call, _calls_outcome, races=False, atomic=False, victims=("node",))


# Observing

CHUNKS = 4
START_MS = 1_777_800_000_000
RULES = TimingRules(
    reflection=60, raw_count=2, raw_ms=10**13, chunk=ChunkRules(least=1000, most=4000)
)
"""So small that a few messages are observed and condensed."""
MODE = ModeChoice("default", "guess", "a bench")
ASKED = "asked"
_CALL = re.compile(r"calls read (\S+)")
_NOTE = re.compile(r"^- .*", re.MULTILINE)


def chat(chunks: int) -> list[SourceMessage]:
    """A chat of so many chunks: questions, each with two reads and an answer."""
    messages: list[SourceMessage] = []
    for number in range(chunks):
        messages.append(_message(number, "user", f"Please read part {number} of the code."))
        for n in (1, 2):
            path = f"src/part_{number}_{n}.py"
            call = SourceCall(f"call-{number}-{n}", "read", path, {"path": path})
            details = {"call_id": call.id, "tool": "read", "shown": path}
            text = f"def load_{number}_{n}(): ...\n" * 60
            messages.append(_message(number, "assistant", f"I read file {n}.", calls=(call,)))
            messages.append(_message(number, "result", text, **details))
        messages.append(_message(number, "assistant", f"Part {number} defines two functions."))
    return messages


def _message(number: int, kind: Any, text: str, **fields: Any) -> SourceMessage:
    return SourceMessage(
        address=f"{number}:{kind}:{fields.get('call_id', '')}:{text[:40]}",
        kind=kind,
        text=text,
        tokens=max(1, len(text) // 2),
        time_ms=START_MS + number * 60_000,
        turn=number + 1,
        **fields,
    )


def _pick(messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
    return next_chunk(messages, position, RULES.chunk)


def _answer_to(question: str) -> str:
    """A note per file read; of notes the last of every three."""
    if "<notes>" in question:
        lines = _NOTE.findall(question)[2::3]
    else:
        lines = [f"- 09:20 medium change: Agent read {path}" for path in _CALL.findall(question)]
    return "<observations>\n2026-05-03\n" + "\n".join(lines) + "\n</observations>"


def _nothing(_scene: Scene) -> None:
    """A session begins with its first observation."""


def _observe(scene: Scene, reach: Reach, _number: int) -> None:
    async def asked(question: AskedQuestion) -> ModelReply:
        await asyncio.sleep(0)
        reach(ASKED)
        return ModelReply(_answer_to(question.text), model="scripted/observer")

    observer = ModelObserver(asked, lambda text: len(text) // 4, WallTime(UTC), RULES.chunk)
    with scene.opened() as store:
        lease = ObservingLease(store, scene.session)
        keeper = ObservationKeeper(lease, scene.session, rules=RULES, step=reach)
        patiently(keeper.lease.clear_stale)
        for number in range(1, CHUNKS + 1):
            messages = chat(number)
            patiently(partial(_next, keeper, messages, observer))
            patiently(partial(_reflect, keeper, messages, observer))


def _next(
    keeper: ObservationKeeper, messages: Sequence[SourceMessage], observer: ModelObserver
) -> object:
    return asyncio.run(keeper.observe(messages, _pick, observer, MODE))


def _reflect(
    keeper: ObservationKeeper, messages: Sequence[SourceMessage], observer: ModelObserver
) -> object:
    return asyncio.run(keeper.reflect(messages, observer))


def _observed(scene: Scene) -> tuple[object, ...]:
    messages = chat(CHUNKS + 1)
    with scene.opened(lazy=True) as store:
        keeper = ObservationKeeper(ObservingLease(store, scene.session), scene.session, rules=RULES)
        branch = keeper.read([message.address for message in messages])
        stored = stored_notes(store, [scene.session])
        ids = [note.id for note in stored.observations]
        ids += [note.id for note in stored.reflections]
        versions = [len(store.history(id)) for id in ids]
    covered = sorted(a for note in stored.observations for a in note.document.covers)
    rest = [message.text for message in messages[branch.position.messages :]]
    return ([note.text for note in branch.notes] + rest, covered, sorted(versions))


OBSERVE = Act(_nothing, _observe, _observed, victims=("process", "node"))
