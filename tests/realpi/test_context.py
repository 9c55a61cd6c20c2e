"""What reaches the provider when foredeck runs inside the real Pi (issue sections 4 and 5)."""

from __future__ import annotations

import re

from harness import Pi

from foredeck.bench.scripted import Reply, call
from foredeck.bench.scripted.request import Request
from foredeck.config import Config
from foredeck.hosts.pi.prompts import prompt_at
from foredeck.store.protocol import Head, Store
from foredeck.stores import open_store

LONG = "\n".join(f"line {n}: the quick brown fox jumps over the lazy dog" for n in range(120))


def opened(pi: Pi) -> Store:
    """The store that the engine of this run has written."""
    return open_store(Config(home=pi.workspace.foredeck_home))


def calls_of(store: Store) -> list[Head]:
    """All call records, in order."""
    return sorted(store.query("call"), key=lambda head: head.fields["ordinal"])


def test_results_carry_handles_and_rereads_collapse(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve(
        [
            [call("read", path="a.txt")],
            [call("read", path="a.txt")],
            [call("read", path="a.txt", offset=10, limit=20)],
            "done",
        ]
    )
    run = pi.print("look", foredeck=True)
    assert (run.code, model.violations) == (0, [])
    results = list(model.requests[-1].request.results.values())
    assert results[0].endswith(LONG)
    assert re.match(r"@\d+\n", results[0])
    handle = results[0].split("\n", 1)[0]
    assert results[1] == f"Unchanged: the same as {handle} above."
    assert results[2] == f"Unchanged: these lines stand in {handle} above."
    assert run.stdout.strip() == "done"


def test_every_prompt_can_be_shown_again(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve(
        [[call("read", path="a.txt")], [call("bash", command="seq 300")], "done", "ok"]
    )
    assert pi.print("look", "again", foredeck=True).code == 0
    store = opened(pi)
    calls = calls_of(store)
    assert len(calls) == len(model.requests) == 4
    session = calls[0].fields["session"]
    for number, recorded in enumerate(model.requests, start=1):
        shown = prompt_at(store, session, number)
        sent = [m for m in recorded.request.messages if m["role"] != "system"]
        assert texts_of_shown(shown.messages) == texts_of_sent(sent)
        assert shown.system
        assert {tool["name"] for tool in shown.tools} >= {"read", "activate", "pin"}
    store.close()


def test_old_output_comes_back_by_its_handle(pi: Pi) -> None:
    """The window is small, so that the high-water mark makes older output go."""

    def bring_back(request: Request) -> Reply:
        handle = request.find(r'toolcall_ref id=(@\d+) tool=bash status=ok args="seq 1 901"')
        return Reply((call("activate", id=handle),))

    steps = [
        [call("bash", command=f"seq {start} {start + 900}")] for start in (1, 2000, 4000, 6000)
    ]
    model = pi.serve([*steps, bring_back, "done"], context_window=6000)
    run = pi.print("count", foredeck=True)
    assert (run.code, run.stdout.strip(), model.violations) == (0, "done", [])
    folded = model.requests[4].request
    assert re.search(r"toolcall_ref id=@\d+ tool=bash status=ok args=\"seq 1 901\"", folded.text)
    brought = list(model.requests[5].request.results.values())[-1]
    assert brought.split("\n")[1:4] == ["1", "2", "3"]


def test_nothing_is_left_running(pi: Pi) -> None:
    model = pi.serve(["hello"])
    assert pi.print("hi", foredeck=True).stdout.strip() == "hello"
    assert model.violations == []
    assert pi.workspace.leftovers() == []


def texts_of_shown(messages: list[dict[str, object]]) -> list[str]:
    """Texts of user messages and results, in order, as the store has them."""
    texts: list[str] = []
    for message in messages:
        if message["role"] not in ("user", "toolResult"):
            continue
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        texts.append("\n".join(str(b.get("text") or "") for b in blocks))  # type: ignore[union-attr]
    return texts


def texts_of_sent(messages: list[dict[str, object]]) -> list[str]:
    """The same of what the provider received, one entry for each result."""
    texts: list[str] = []
    for message in messages:
        if message["role"] != "user":
            continue
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
            continue
        plain = [b["text"] for b in content if b["type"] == "text"]  # type: ignore[union-attr]
        for block in content:  # type: ignore[union-attr]
            if block["type"] == "tool_result":
                inner = block["content"]
                texts.append(
                    inner if isinstance(inner, str) else "\n".join(b["text"] for b in inner)
                )
        if plain:
            texts.append("\n".join(plain))
    return texts
