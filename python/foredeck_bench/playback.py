"""Play recorded sessions through the real Pi on the providers' twin, and hold foredeck's figures to
the twin's bill.

    python -m foredeck_bench.playback --as MODEL PATH...

Each session is played twice, by plain Pi and with foredeck: recorded answers, recorded times, tools
that return what they returned. What plain Pi has recorded of that is then replayed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.cli.output import table
from foredeck.config import load_config
from foredeck.lookup.sessions import newest_call
from foredeck.model.calls import CallRecord, in_order
from foredeck.store.place import open_store
from foredeck_agents.histories.recordings import find_recordings, load_recording
from foredeck_agents.histories.records import Transcript
from foredeck_bench.scripted.pi_process import (
    PATIENT,
    VERSIONS,
    PiInstall,
    PiWorkspace,
    checkout_pi,
    write_agent_dir,
)
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.billing import ModelRecord
from foredeck_bench.twin.report import TwinReport
from foredeck_bench.twin.script import (
    Api,
    Block,
    ModelRequest,
    Reply,
    StepResult,
    Text,
    Thinking,
    ToolCall,
)
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel
from foredeck_lab.replay.options import ReplayOptions, replayed_model
from foredeck_lab.replay_command import replay

Json = dict[str, Any]

_UNSENT = ("error", "aborted")


@dataclass(slots=True)
class RecordedPrompt:
    """What the user said before an answer."""

    texts: list[str] = field(default_factory=list)
    images: list[Json] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n\n".join(self.texts) or "Go on."


@dataclass(slots=True)
class RecordedAnswer:
    """One answer, when it was asked for, and what the user said before, if anything."""

    reply: Reply
    time_ms: int
    prompt: RecordedPrompt | None = None

    @property
    def calls(self) -> bool:
        """Whether tools run after it."""
        return self.reply.stop_reason == "tool_use"


@dataclass(slots=True)
class RecordedPlay:
    """A session's newest branch, without failed and stopped calls."""

    answers: list[RecordedAnswer] = field(default_factory=list)
    results: dict[str, Json] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, transcript: Transcript, most: int | None = None) -> RecordedPlay:
        """A recording, or so many calls of it; raises ValueError."""
        play = cls()
        play._take(transcript)
        if not play.answers:
            raise ValueError(f"{transcript.path.name}: no answer to play")
        play.answers = play.answers[:most]
        last = play.answers[-1]
        if last.calls:
            # Their results are asked about once more, and the recording ends there.
            play.answers.append(RecordedAnswer(Reply((Text("Done."),)), last.time_ms))
        return play

    def _take(self, transcript: Transcript) -> None:
        messages = [recorded.message for recorded in transcript.messages]
        times = {call.seen: call.time_ms for call in transcript.calls}
        results = _results(messages)
        waiting: RecordedPrompt | None = None
        for index, message in enumerate(messages):
            role = message.get("role")
            if role not in ("assistant", "toolResult", "compactionSummary"):
                waiting = waiting or RecordedPrompt()
                _say(waiting, message)
            if role != "assistant" or message.get("stopReason") in _UNSENT:
                continue
            blocks = tuple(self._blocks(message, results))
            if not blocks:
                continue
            if not self.answers or (waiting is None and not self.answers[-1].calls):
                waiting = waiting or RecordedPrompt()
            before = self.answers[-1].time_ms if self.answers else 1
            time_ms = max(times.get(index, 0), before)
            self.answers.append(RecordedAnswer(Reply(blocks), time_ms, waiting))
            waiting = None

    def _blocks(self, message: Json, results: dict[str, Json]) -> Iterator[Block]:
        content = message.get("content")
        blocks: list[Json] = content if isinstance(content, list) else [{"type": "text"}]
        for block in blocks:
            text = str(block.get("thinking") or block.get("text") or "")
            if block.get("type") == "thinking" and text.strip():
                yield Thinking(text)
            elif block.get("type") == "text" and text.strip():
                yield Text(text)
            elif block.get("type") == "toolCall" and str(block.get("id")) in results:
                # Ids of another wire do not pass everywhere.
                id = f"call_{len(self.results) + 1:06d}"
                self.results[id] = results.pop(str(block["id"]))
                self.tools.add(str(block["name"]))
                yield ToolCall(str(block["name"]), block.get("arguments") or {}, id)


def _results(messages: list[Json]) -> dict[str, Json]:
    return {
        str(message["toolCallId"]): {
            "content": message.get("content") or [{"type": "text", "text": ""}],
            "isError": bool(message.get("isError")),
        }
        for message in messages
        if message.get("role") == "toolResult"
    }


def _say(prompt: RecordedPrompt, message: Json) -> None:
    content = message.get("content") or message.get("output") or message.get("summary") or ""
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if block.get("type") == "image":
            prompt.images.append(block)
        elif str(block.get("text") or "").strip():
            prompt.texts.append(str(block["text"]))


TOOLS = Path(__file__).with_name("playback.js")
CHECKOUT = Path(__file__).resolve().parents[2]

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
        figure = session_figure(store, session, newest_call(store, session))
        return figure, in_order(head.fields for head in store.query("call"))
    finally:
        store.close()


_HEAD = ("session", "calls", "side", "twin's bill", "cost", "replay", "all in all", "Pi's own")
_NOTE = """
twin's bill: of the prompts, in dollars; cost: `foredeck cost`, in per cent of that; replay:
`foredeck replay --as`; all in all: the bill with the answers; Pi's own: what its status line says,
in per cent of that."""


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(
        prog="python -m foredeck_bench.playback",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--as", dest="model", default="claude-opus-5-5", help="who answers")
    parser.add_argument("--window", type=int, default=200_000, help="of that model, in tokens")
    parser.add_argument("--calls", type=int, help="play so many of each session")
    parser.add_argument(
        "--report", action="store_true", help="print the twin's report of each, rebases and sizes"
    )
    options = parser.parse_args(arguments)
    install = checkout_pi(CHECKOUT, VERSIONS[0])
    if install is None:
        print(f"Pi {VERSIONS[0]} is not installed: run scripts/setup.", file=sys.stderr)
        return 1
    rows: list[tuple[str, ...]] = [_HEAD]
    for path in find_recordings(options.paths):
        with tempfile.TemporaryDirectory(prefix="foredeck-playback-") as name:
            recorded = RecordedPlay.of(load_recording(path), options.calls)
            plain, ours = play_both(recorded, install, Path(name), options.model, options.window)
            figures = replayed(plain.session_file, options.model, options.window)
            rows += rows_of(path.stem, plain, ours, figures)
            if options.report:
                print(f"{path.stem}\nplain Pi: {TwinReport.of(plain.model).text()}")
                print(f"with foredeck: {TwinReport.of(ours.model).text()}")
                print("\n".join(ours.curve()), end="\n\n", flush=True)
    print(table(rows))
    print(_NOTE)
    return 0


def play_both(
    recorded: RecordedPlay, install: PiInstall, folder: Path, model: str, window: int
) -> tuple[PlayResult, PlayResult]:
    """A session played by plain Pi, and with foredeck."""
    api, record = pi_record(model)
    record = {**record, "contextWindow": window}

    def played(name: str, *, foredeck: bool) -> PlayResult:
        workspace = PiWorkspace(folder / name)
        try:
            return play(recorded, install, workspace, api=api, record=record, foredeck=foredeck)
        finally:
            workspace.end_leftovers()

    return played("plain", foredeck=False), played("foredeck", foredeck=True)


def replayed(session_file: Path, model: str, window: int) -> dict[str, Any]:
    record = replayed_model(model)
    options = ReplayOptions(window=window, cache=record.cache, ttl_s=record.ttl_s, as_model=record)
    (costs,) = replay([session_file], options)["costs"]
    return dict(costs)


def rows_of(
    name: str, plain: PlayResult, ours: PlayResult, figures: dict[str, Any]
) -> list[tuple[str, ...]]:
    assert ours.figure is not None
    sides = (
        ("plain Pi", plain, ours.figure.plain, figures["plain_pi"]),
        ("foredeck", ours, ours.figure.ours, figures["foredeck"]),
    )
    return [
        (
            name[:24],
            str(len(side.calls)),
            label,
            f"{side.dollars:.4f}",
            _share(cost, side.dollars),
            _share(replay_cost, side.dollars),
            f"{side.total:.4f}",
            _share(side.host, side.total),
        )
        for label, side, cost, replay_cost in sides
    ]


def _share(value: float, of: float) -> str:
    return f"{100 * value / of:.1f}%" if of else "-"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
