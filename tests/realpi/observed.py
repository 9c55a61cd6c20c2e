"""Looking at what a run left behind: bodies that the provider got, and the engine's store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from foredeck.lookup.prompts import prompt_at
from foredeck.model.calls import CallRecord
from foredeck.store.place import open_store
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel
from harness import PATIENCE_S, Pi

Json = dict[str, Any]


OBSERVED = {
    "FOREDECK_OBSERVATIONS": "on",
    "FOREDECK_OBSERVING__THRESHOLD": "2000",
    "FOREDECK_OBSERVING__BUFFER_TOKENS": "500",
    "FOREDECK_ASKING__SHARE": "10",
    "FOREDECK_ASKING__PER_HOUR": "1000",
    "FOREDECK_ASKING__SINGLE_SLOT": "true",
    "FOREDECK_MEMORY__EXTRACT": "false",
    "FOREDECK_REBASE__CACHE_TTL_S": "0",
}
"""Settings with which a short session is observed. The scripted model is on loopback, and to
foredeck no cache holds anything at a rebase."""

NODE_IS_SLOW = "XTDB does not answer yet"
"""A word to the user that a busy machine can bring about in any run with that store."""


def wait_for_request(model: ScriptedModel, count: int) -> None:
    """Wait until so many prompts have come."""
    until = time.monotonic() + PATIENCE_S
    while len(model.requests) < count:
        assert time.monotonic() < until, f"request {count} does not come"
        time.sleep(0.05)


def notified(rpc: RpcPi) -> list[str]:
    """What was shown to the user so far, but for the word that the node is slow."""
    return [text for text in rpc.notifications() if NODE_IS_SLOW not in text]


def command_text(rpc: RpcPi, text: str) -> str:
    """What the user reads who has typed a command."""
    rpc.command(text)
    return notified(rpc)[-1]


@contextmanager
def stored(pi: Pi) -> Iterator[Store]:
    """The store that the engine of this run writes; may be read while the engine runs."""
    store = open_store(pi.config(), lazy=True)
    try:
        yield store
    finally:
        store.close()


def calls_of(store: Store, session: str | None = None) -> list[CallRecord]:
    """Call records in order, of one session or of all."""
    heads = store.query("call", {"session": session} if session else {})
    records = [(head.time_ms, CallRecord(head.fields)) for head in heads]
    return [record for _, record in sorted(records, key=lambda r: (r[0], r[1].ordinal))]


def session_of(store: Store) -> str:
    """Id of the only session in the store."""
    (head,) = store.query("session")
    return str(head.fields["session_id"])


def member(pi: Pi, label: str) -> Head:
    """The index entry of the object whose label (a path, a call id) ends with `label`."""
    with stored(pi) as store:
        found = [m for m in store.query("member") if m.fields["label"].endswith(label)]
    assert len(found) == 1, f"{label}: {[m.fields['label'] for m in found]}"
    return found[0]


def handle(pi: Pi, label: str) -> str:
    """The handle of that object, such as `@3`."""
    return f"@{member(pi, label).fields['ordinal']}"


def object_id(pi: Pi, label: str) -> str:
    """The full id of that object."""
    return str(member(pi, label).fields["object"])


def answered(model: ScriptedModel) -> list[RecordedRequest]:
    """The requests of the agent's own calls that got an answer, summaries left out."""
    return [r for r in model.requests if r.status == 200 and not r.side]


def messages(recorded: RecordedRequest) -> list[Json]:
    """A request's messages without cache markers: what a provider compares prefixes by."""
    plain: list[Json] = normalized(recorded.request.messages)
    return plain


def assert_stable(requests: Sequence[RecordedRequest]) -> None:
    """Every request repeats the one before it byte for byte and goes on from there."""
    for earlier, later in pairwise(requests):
        before, after = messages(earlier), messages(later)
        assert after[: len(before)] == before, (
            f"request {later.request.index} changes what was sent"
        )
        assert later.request.body.get("tools") == earlier.request.body.get("tools")


def results(recorded: RecordedRequest) -> list[str]:
    """Texts of the tool results in a request, oldest first."""
    return list(recorded.request.results.values())


def last_result(recorded: RecordedRequest) -> str:
    """Text of the newest tool result in a request."""
    return results(recorded)[-1]


def errors(recorded: RecordedRequest) -> list[str]:
    """Texts of the results that say that their tool has failed."""
    return [
        recorded.request.results[block["tool_use_id"]]
        for message in recorded.request.messages
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result" and block["is_error"]
    ]


def assert_recorded(store: Store, session: str, requests: Sequence[RecordedRequest]) -> None:
    """The n-th call record of a session shows exactly what the n-th request held."""
    assert len(calls_of(store, session)) == len(requests)
    for number, recorded in enumerate(requests, start=1):
        assert_shows(store, session, number, recorded)


def assert_shows(store: Store, session: str, call: int, recorded: RecordedRequest) -> None:
    """A call record shows exactly what a request held."""
    shown = prompt_at(store, session, call)
    assert texts_of_shown(shown.messages) == texts_of_sent(recorded.request.messages)
    assert {tool["name"] for tool in shown.tools} == set(recorded.request.tools)
    assert system_text(shown.system) == recorded.request.system


def assert_foreseen(record: CallRecord, sent: RecordedRequest) -> None:
    """The share of a prompt that a record says is read from the cache is what was read."""
    expected, usage = record.cache, sent.usage
    counts = (expected.read, expected.written, expected.fresh)
    read, *others = (count for count in counts if count is not None)
    assert len(others) == 2
    assert read / (read + sum(others)) == pytest.approx(usage.read / usage.prompt, abs=0.05)


def texts_of_shown(shown: list[Json]) -> list[str]:
    """Texts of user messages and results, in order, as the store has them."""
    return [
        _joined(message["content"])
        for message in shown
        if message["role"] in ("user", "toolResult", "custom")
    ]


def texts_of_sent(sent: list[Json]) -> list[str]:
    """The same of what the provider received, one entry for each result."""
    texts: list[str] = []
    for message in sent:
        if message["role"] != "user":
            continue
        content = message["content"]
        blocks = [] if isinstance(content, str) else content
        texts += [_joined(b["content"]) for b in blocks if b["type"] == "tool_result"]
        plain = content if isinstance(content, str) else _joined(blocks)
        if plain:
            texts.append(plain)
    return texts


def _joined(content: Any) -> str:
    """Text of a content, images as a word of their own."""
    if isinstance(content, str):
        return content
    return "\n".join(
        "<image>" if block["type"] == "image" else str(block["text"])
        for block in content
        if block["type"] in ("text", "image")
    )


def system_text(shown: list[Json]) -> str:
    """The system prompt as the store has it."""
    return "\n\n".join(message["content"] for message in shown)
