"""What foredeck does not work on goes through as it came, whatever it is."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from foredeck_agents.proxy import app
from foredeck_agents.proxy.conversations import ClientChat
from foredeck_agents.proxy.relays import encoded
from foredeck_bench.twin.script import Failure, Reply, Text
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import APIS, agent, prompts, proxied
from proxy.proxied import RunningProxy
from proxy.raw_upstream import RawUpstream

KEY = {"x-api-key": "sk-secret", "authorization": "Bearer sk-secret"}
HTML = b"<html>bad gateway</html>"


@pytest.fixture
def upstream() -> Iterator[RawUpstream]:
    with RawUpstream() as made:
        yield made


@pytest.fixture
def proxy(upstream: RawUpstream, tmp_path: Path) -> Iterator[RunningProxy]:
    with RunningProxy(upstream.url, tmp_path / "home", tmp_path) as running:
        yield running


def _messages(**changed: Any) -> dict[str, Any]:
    tool = {"name": "read", "input_schema": {}}
    return {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool], **changed}


BODIES: dict[str, bytes] = {
    "no JSON": b"{not json",
    "no object": b"[1, 2]",
    "nothing": b"",
    "no UTF-8": b"\xff\xfe{}",
    "no messages": b'{"tools": [{"name": "x"}]}',
    "messages of another shape": json.dumps(_messages(messages=["x", 3])).encode(),
    "an unknown role": json.dumps(_messages(messages=[{"role": "oracle"}])).encode(),
    "blocks of another shape": json.dumps(
        _messages(messages=[{"role": "user", "content": 3}])
    ).encode(),
    "nested deep": b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a side call": json.dumps(_messages(tools=[])).encode(),
    "tools of another shape": json.dumps(_messages(tools=["read", 7])).encode(),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["anthropic/v1/messages", "openai/responses"])
def test_a_body_that_cannot_be_worked_on_goes_through(
    proxy: RunningProxy, upstream: RawUpstream, name: str, path: str
) -> None:
    headers = {**KEY, "content-type": "application/json", "x-odd": "1"}
    answer = httpx.post(
        f"{proxy.url}/{path}?beta=true", content=BODIES[name], headers=headers, timeout=60
    )
    assert (answer.status_code, answer.content) == (200, b"hello")
    ((method, where, got, body),) = upstream.got
    prefix = "/v1" if path.startswith("openai") else ""
    assert (method, where) == ("POST", f"{prefix}/{path.partition('/')[2]}?beta=true")
    assert body == BODIES[name]
    assert {name: got[name] for name in headers} == headers
    assert got["host"] == upstream.url.removeprefix("http://")


def test_a_compressed_body_and_its_compressed_answer_go_through(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    packed = gzip.compress(json.dumps(_messages()).encode())
    upstream.headers = {"content-type": "application/json", "content-encoding": "gzip"}
    upstream.body = gzip.compress(b'{"a": 1}')
    headers = {"content-encoding": "gzip"}
    answer = httpx.post(f"{proxy.url}/anthropic/v1/messages", content=packed, headers=headers)
    assert answer.json() == {"a": 1}
    assert upstream.got[0][3] == packed


def test_a_body_that_is_too_large_goes_through(
    proxy: RunningProxy, upstream: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_BODY", 1000)
    body = json.dumps(_messages(padding="x" * 300_000)).encode()
    assert httpx.post(f"{proxy.url}/anthropic/v1/messages", content=body).content == b"hello"
    assert upstream.got[0][3] == body
    assert proxy.told == ["A request over 64 MiB went out as it came."]


PICTURE = "data:image/png;base64,iVBORw0KGgo="
BY_OTHERS: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
    {"type": "mcp_call", "id": "mcp_1", "name": "look", "arguments": "{}", "output": "seen"},
    {"type": "tool_search_call", "call_id": "ts", "execution": "client", "arguments": {"q": "x"}},
    {"type": "tool_search_output", "call_id": "ts", "execution": "client", "tools": []},
    {"type": "shell_call", "call_id": "sh", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "sh", "output": [{"stdout": "a" * 2000}]},
    {"type": "computer_call", "call_id": "cc", "action": {"type": "screenshot"}},
    {
        "type": "computer_call_output",
        "call_id": "cc",
        "output": {"type": "computer_screenshot", "image_url": PICTURE},
    },
]
"""Calls whose answers are items of another kind than a text, or none, as the provider ran them."""


def _items(*items: dict[str, Any]) -> dict[str, Any]:
    asked = {"type": "message", "role": "user", "content": "Look."}
    tool = {"type": "function", "name": "read", "parameters": {}}
    return {"model": "m", "input": [asked, *items], "tools": [tool]}


def test_calls_that_the_client_does_not_answer_with_text_go_out_as_they_came(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    call = {"type": "function_call", "call_id": "f", "name": "read", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "f", "output": "short"}
    said = {"type": "message", "role": "user", "content": "And now?"}
    body = _items(*BY_OTHERS, call, output, said)
    httpx.post(f"{proxy.url}/openai/responses", json=body, headers=KEY)
    sent = json.loads(upstream.got[0][3])
    assert sent["input"] == body["input"]
    assert len(sent["tools"]) > 1, "it was worked on"


def test_parts_of_a_result_that_are_no_text_keep_their_members(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    call = {"type": "function_call", "call_id": "f", "name": "read", "arguments": "{}"}
    parts = [
        {"type": "input_text", "text": "line\n" * 400},
        {"type": "input_file", "file_id": "file_1"},
        {"type": "input_image", "image_url": PICTURE, "detail": "high"},
    ]
    output = {"type": "function_call_output", "call_id": "f", "output": parts}
    httpx.post(f"{proxy.url}/openai/responses", json=_items(call, output), headers=KEY)
    sent = json.loads(upstream.got[0][3])["input"][-1]["output"]
    handle = [part for part in sent if part not in parts]
    assert [part["text"] for part in handle] == ["@3"]
    assert [part for part in sent if part in parts[1:]] == parts[1:]


def test_a_picture_keeps_its_detail_where_the_message_changes(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    picture = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    parts = [{"type": "text", "text": "line\n" * 400}, picture]
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": parts},
    ]
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    body = {"model": "m", "messages": messages, "tools": [tool]}
    httpx.post(f"{proxy.url}/openai/chat/completions", json=body, headers=KEY)
    sent = json.loads(upstream.got[0][3])["messages"][-1]["content"]
    assert "@3" in str(sent)
    assert picture in sent


@pytest.mark.parametrize("path", ["anthropic/v1/messages", "openai/responses"])
def test_half_a_character_goes_out_as_it_came(
    proxy: RunningProxy, upstream: RawUpstream, path: str
) -> None:
    halved = {"role": "user", "content": "cut here: \ud83d"}
    body = _messages(messages=[halved]) | _items(halved)
    if path.startswith("anthropic"):
        body["tools"] = _messages()["tools"]
    httpx.post(f"{proxy.url}/{path}", content=json.dumps(body).encode(), headers=KEY)
    sent = upstream.got[0][3]
    assert json.loads(sent)["messages"] == [halved]
    assert b'"activate"' in sent
    assert proxy.told == []


def test_half_a_character_of_an_answer_is_sent_on() -> None:
    assert encoded("", {"delta": "\ud83d"}) == b'data: {"delta":"\\ud83d"}\n\n'


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (429, "application/json", b'{"error": {"type": "rate_limit_error"}}'),
        (529, "application/json", b'{"error": {"type": "overloaded_error"}}'),
        (502, "text/html", HTML),
        (200, "text/html", HTML),
        (200, "application/json", b"{cut off"),
        (200, "application/json", b'{"another": "shape"}'),
        (200, "text/event-stream", b"event: odd\ndata: 3\n\ndata: {\n\nrest"),
        (200, "text/event-stream", b'data: {"type": "content_block_stop", "index": 7}\n\n'),
    ],
)
def test_whatever_the_upstream_answers_comes_back(
    proxy: RunningProxy, upstream: RawUpstream, status: int, kind: str, body: bytes
) -> None:
    upstream.status, upstream.body = status, body
    upstream.headers = {"content-type": kind, "retry-after": "7", "x-request-id": "r1"}
    answer = httpx.post(f"{proxy.url}/anthropic/v1/messages", json=_messages(), headers=KEY)
    assert (answer.status_code, answer.content) == (status, body)
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-request-id"] == "r1"


def test_what_an_answer_lacks_is_said(proxy: RunningProxy, upstream: RawUpstream) -> None:
    upstream.headers, upstream.body = {"content-type": "application/json"}, b'{"another": "shape"}'
    httpx.post(f"{proxy.url}/anthropic/v1/messages", json=_messages(), headers=KEY)
    assert proxy.told == ["An answer went on as it came: it lacks 'content'"]


def test_an_upstream_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    with RunningProxy(nowhere, tmp_path / "home", tmp_path) as proxy:
        answer = httpx.post(f"{proxy.url}/anthropic/v1/messages", json=_messages())
        assert f"{nowhere.removeprefix('http://')} cannot be reached" in proxy.told[0]
    assert answer.status_code == 502
    assert "--upstream" in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", [_messages(), _messages(tools=[])], ids=["managed", "passed"])
def test_a_client_that_leaves_while_the_upstream_stalls(
    proxy: RunningProxy, upstream: RawUpstream, body: dict[str, Any]
) -> None:
    upstream.stalls.set()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{proxy.url}/anthropic/v1/messages", json=body, timeout=httpx.Timeout(2, read=1)
        )
    assert upstream.left.wait(20)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_cut_is_cut_for_the_client_and_can_be_asked_again(
    tmp_path: Path, api: str
) -> None:
    script = [Reply((Text("x" * 5000),), cut=True), "Whole."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        one = agent(proxy, api, tmp_path / "w")
        one.say("Go.")
        with pytest.raises(httpx.RemoteProtocolError):
            one.ask()
        one.ask()
    first, second = prompts(model)
    assert first == second


@pytest.mark.parametrize("api", APIS)
def test_where_foredeck_fails_the_request_goes_out_as_it_came_and_the_next_is_worked_on(
    tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, failing = ClientChat.ready, [True]

    def fails(*arguments: Any) -> Any:
        if failing.pop() if failing else False:
            raise RuntimeError("the store is on fire")
        return ready(*arguments)

    monkeypatch.setattr(ClientChat, "ready", fails)
    with (
        ScriptedModel(["One.", "Two."]) as model,
        proxied(model, tmp_path / "h", tmp_path / "w") as proxy,
    ):
        one = agent(proxy, api, tmp_path / "w")
        one.run("Go.")
        one.run("On.")
    assert [len(recorded.request.tools) for recorded in model.requests] == [2, 4]
    assert proxy.told == ["A request went out without foredeck: the store is on fire"]


@pytest.mark.parametrize("api", APIS)
def test_what_a_provider_refuses_goes_out_again_as_it_came(tmp_path: Path, api: str) -> None:
    script = [Failure(400, "invalid_request_error", "no"), "One.", "Two."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        one = agent(proxy, api, tmp_path / "w")
        one.run("Go.")
        one.run("On.")
    assert [len(recorded.request.tools) for recorded in model.requests] == [4, 2, 4]
    assert len(proxy.told) == 1


def test_only_those_with_the_token_are_served(proxy: RunningProxy, upstream: RawUpstream) -> None:
    port = proxy.address.rpartition(":")[2]
    path = f"/{proxy.proxy.token}/anthropic/v1/messages"
    assert httpx.post(f"{proxy.address}/wrong/anthropic/v1/messages").status_code == 404
    assert httpx.post(f"{proxy.address}/anthropic/v1/messages").status_code == 404
    assert httpx.post(f"{proxy.address}{path}", headers={"host": f"evil:{port}"}).status_code == 421
    page = {"origin": "http://evil"}
    assert httpx.post(f"{proxy.address}{path}", headers=page).status_code == 421
    assert not upstream.got
    header = {"x-foredeck-token": proxy.proxy.token}
    assert httpx.post(f"{proxy.address}/anthropic/v1/messages", headers=header).content == b"hello"
    assert "x-foredeck-token" not in upstream.got[0][2]


@pytest.mark.parametrize("body", [_messages(), _messages(tools=[])], ids=["managed", "passed"])
def test_a_token_in_the_place_of_a_project_goes_no_further(
    proxy: RunningProxy, upstream: RawUpstream, body: dict[str, Any]
) -> None:
    address, token = f"{proxy.address}/anthropic/v1/messages", proxy.proxy.token
    for own in (None, "mine"):
        proxy.proxy._project = own
        assert httpx.post(address, json=body, headers={"openai-project": token}).is_success
    assert httpx.post(f"{proxy.url}/anthropic/v1/messages", headers={"openai-project": "other"})
    assert [got.get("openai-project") for _, _, got, _ in upstream.got] == [None, "mine", "other"]
    assert httpx.post(address, json=body, headers={"openai-project": "other"}).status_code == 404


def test_keys_are_in_no_file(proxy: RunningProxy, upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.headers = {"content-type": "text/event-stream"}
    upstream.body = b'event: message_stop\ndata: {"type": "message_stop"}\n\n'
    httpx.post(f"{proxy.url}/anthropic/v1/messages", json=_messages(), headers=KEY)
    files = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if b"sk-secret" in file.read_bytes()]
    assert "sk-secret" not in httpx.get(f"{proxy.url}/").text
