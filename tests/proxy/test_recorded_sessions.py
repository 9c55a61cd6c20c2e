"""Recorded sessions of another agent, sent through the proxy call by call: what reaches the model
is what a replay of them says that it would see."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest

from foredeck.embedded import manager
from foredeck.embedded.anthropic_messages import AnthropicMessages
from foredeck.engine.engine import Engine
from foredeck.model.own_tools import DEFAULT_FACILITIES, short_definitions
from foredeck.sources.recorded import recorded_source
from foredeck.store.clock import now_ms
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.records import RecordedMessage, Transcript
from foredeck_bench.twin.anthropic import events
from foredeck_bench.twin.billing import Usage
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from proxy.proxied import RunningProxy
from proxy.raw_upstream import RawUpstream
from replay.recordings import SOURCE, Recording, call

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "transcripts-other"
CHOSEN = os.environ.get("FOREDECK_TEST_RECORDED", "8ecab05f-1 3e110024-0")
"""Parts of the names of those that are sent; `all` for all of them."""

Json = dict[str, Any]
FORMAT = AnthropicMessages()
TOOL: Json = {"name": "read", "input_schema": {}}


def _as_sent(messages: list[Json]) -> list[Json]:
    """Pi's messages as a client of Anthropic's API has them."""
    return [
        FORMAT.from_engine(group, None)
        for _, group in ((k, list(g)) for k, g in groupby(messages, _group(messages)))
    ]


def _group(messages: list[Json]) -> Any:
    numbers = {id(message): number for number, message in enumerate(messages)}

    def key(message: Json) -> Any:
        return "results" if message["role"] == "toolResult" else numbers[id(message)]

    return key


def _flat(messages: list[Json]) -> list[str]:
    """All blocks with their roles: into which messages they are put is the client's affair. The
    head is left out, which knows of other sessions."""
    found = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result" and isinstance(block["content"], str):
                block = {**block, "content": [{"type": "text", "text": block["content"]}]}
            text = json.dumps([message["role"], block], sort_keys=True)
            if "[foredeck] Background" not in text:
                found.append(text)
    return found


def _as_a_client_sends_it(transcript: Transcript) -> Transcript:
    """The session without its pauses, as the proxy takes the time of requests from the clock; and
    with each result under the name of its call's tool, as no API has it in the result. Eight of the
    recordings lack the name in some results, which pass for those of an unknown tool in a replay.
    """
    now = now_ms()
    names = {
        block["id"]: {"toolName": block["name"]}
        for r in transcript.messages
        if r.message["role"] == "assistant"
        for block in r.message["content"]
        if block["type"] == "toolCall"
    }
    messages = [
        RecordedMessage(
            {**r.message, **names.get(r.message.get("toolCallId"), {}), "timestamp": now + n},
            r.entry,
        )
        for n, r in enumerate(transcript.messages)
    ]
    calls = [
        type(c)(c.seen, now + c.seen, "anthropic", c.model, "anthropic-messages")
        for c in transcript.calls
    ]
    return Transcript(transcript.path, transcript.id, "", messages, calls)


def _replayed(transcript: Transcript, home: Path) -> Iterator[list[str]]:
    session = ReplayedSession(home, transcript, ReplayOptions())
    # What the definitions of tools weigh is in what a rebase costs.
    session._host.tools = [FORMAT.to_definition(TOOL), *short_definitions(*DEFAULT_FACILITIES)]
    session._host.system = []
    for each in transcript.calls:
        yield _flat(_as_sent(session.call(each)[0]))
    session.close()


def _through_the_proxy(transcript: Transcript, home: Path, cwd: Path) -> list[list[str]]:
    said, yes = [r.message for r in transcript.messages], {"type": "text", "text": "Yes."}
    stream = "".join(events("m", "m", [yes], "end_turn", Usage(0, 0, 0, 0, 0), []))
    settings = {"rebase.cache": "prefix"}
    with (
        RawUpstream() as model,
        RunningProxy(model.url, home, cwd, settings=settings) as proxy,
        httpx.Client() as client,
    ):
        model.headers = {"content-type": "text/event-stream"}
        model.body = stream.replace('"usage"', '"used"').encode()
        for each in transcript.calls:
            body = {"model": each.model, "stream": True, "tools": [TOOL]}
            answer = client.post(
                f"{proxy.url}/anthropic/v1/messages",
                json={**body, "messages": _as_sent(said[: each.seen])},
                headers={"x-session-id": transcript.id},
                timeout=60,
            )
            assert answer.status_code == 200
        assert proxy.told == []
    return [_flat(json.loads(body)["messages"]) for *_, body in model.got]


def _sessions() -> list[Path]:
    files = sorted(RECORDED.glob("*.jsonl")) if RECORDED.is_dir() else []
    return [f for f in files if CHOSEN == "all" or any(n in f.name for n in CHOSEN.split())]


def _made(path: Path) -> Path:
    """A session that needs no data from elsewhere: files that are read, changed, and not used."""
    recording = Recording()

    def step(tool: str, shown: str, **arguments: Any) -> None:
        id = f"call_{len(recording.entries)}"
        recording.assistant(call(id, tool, **arguments), stop="toolUse")
        content = [{"type": "text", "text": shown}]
        recording.message(
            "toolResult", toolCallId=id, toolName=tool, content=content, isError=False
        )

    recording.user("Read all of it")
    for number in range(22):
        step("read", SOURCE.replace("value", f"v{number}_") * 2, path=f"/src/part_{number}.ts")
    recording.assistant({"type": "text", "text": "I have read it."})
    recording.user("Now change some of it")
    for number in range(8):
        step("bash", "nothing found", command=f"grep -n NOTHING part_{number}.ts")
        edit = {"oldText": f"v{number}_1 = 1;", "newText": f"v{number}_1 = 2;"}
        step("edit", "Edited.", path=f"/src/part_{number}.ts", **edit)
        step("bash", "79", command=f"wc -l part_{number}.ts")
    recording.assistant({"type": "text", "text": "It is changed."})
    return recording.write(path)


@pytest.mark.timeout(1200)  # the longest has 512 calls
@pytest.mark.parametrize("file", [None, *_sessions()], ids=lambda f: f.stem if f else "made")
def test_a_recorded_session_folds_as_in_a_replay(
    file: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_TEST_CONSTANTS", "1")
    monkeypatch.setattr(manager, "Engine", partial(Engine, recorded=recorded_source))
    transcript = _as_a_client_sends_it(load_transcript(file or _made(tmp_path / "made.jsonl")))
    sent = _through_the_proxy(transcript, tmp_path / "proxy", tmp_path)
    differing = [
        number
        for number, (one, other) in enumerate(
            zip(_replayed(transcript, tmp_path / "replay"), sent, strict=True)
        )
        if one != other
    ]
    assert differing == [], f"{len(differing)} of {len(sent)} calls"
    assert file is not None or "folded" in str(sent)
