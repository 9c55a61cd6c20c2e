"""Every kind of content that the providers' APIs take goes out as it came, alone and in a message
of which something else is changed; what cannot be read is named with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

import pytest
from openai.types.chat import (
    ChatCompletionContentPartParam,
    ChatCompletionMessageToolCallUnionParam,
)
from openai.types.responses import ResponseInputContentParam
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from typing_extensions import is_typeddict

from foredeck import ContextManager, ModelInfo
from foredeck.embedded.anthropic_messages import AnthropicMessages
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import MessageFormat
from foredeck.embedded.responses import Responses, gathered, taken_apart
from foredeck.errors import ForedeckError

MODEL = ModelInfo("test/model", 200_000)
CACHE = {"cache_control": {"type": "ephemeral"}}
Message = dict[str, Any]


def prepared(tmp_path: Path, format: Any, messages: list[Message]) -> list[Message]:
    with ContextManager(
        "s", model=MODEL, format=format, home=tmp_path / "home", cwd=tmp_path
    ) as context:
        return context.prepare(messages)


def same(one: Any, other: Any) -> bool:
    """Byte for byte, with the members in their order."""
    return json.dumps(one) == json.dumps(other)


def with_a_line(format: MessageFormat, message: Message, names: Mapping[str, str]) -> Message:
    """The message as it goes out when a text of foredeck's joins it."""
    *others, last = format.to_engine(message, names)
    text = {"type": "text", "text": "[@1]"}
    return format.from_engine([*others, {**last, "content": [text, *last["content"]]}], message)


# What the types of an SDK say of what may be sent


def sample(hint: Any) -> Any:
    """A value of a type, with all members that it may have."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired):
        return sample(arguments[0])
    if origin is Literal:
        return arguments[0]
    if is_typeddict(hint):
        return {name: sample(inner) for name, inner in get_type_hints(hint).items()}
    if arguments and str(origin).endswith(("list'>", "Iterable'>", "Sequence'>")):
        return [sample(arguments[0])]
    if origin is dict:
        return {"name": sample(arguments[1])}
    if arguments:
        return sample(next(each for each in arguments if each is not type(None)))
    values: dict[Any, Any] = {str: "text", int: 7, float: 0.5, bool: True, object: {"a": [1]}}
    return values.get(hint, "text")


def variants(union: Any) -> list[Any]:
    return [sample(kind) for kind in get_args(union)]


def test_every_part_of_chat_completions_goes_out_as_it_came(tmp_path: Path) -> None:
    parts = [
        *variants(ChatCompletionContentPartParam),
        {"type": "image_url", "image_url": "https://example.org/a.png"},
        {"type": "image_url", "image_url": {"url": "data:;base64,QQ==", "detail": "low"}},
        {"type": "image_url", "image_url": "data:image/png;base64,QQ=="},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "text", "text": "marked", **CACHE},
        {"type": "text", "text": ""},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}, **CACHE},
        {"type": "thinking", "thinking": 7},
        {"type": "of_tomorrow", "text": None, "nested": {"type": "image"}},
    ]
    messages = [{"role": "user", "content": [part]} for part in parts]
    messages.append({"role": "user", "content": parts})
    assert same(prepared(tmp_path, "chat", messages), messages)
    for message in messages:
        changed = with_a_line(ChatCompletions(), message, {})
        if not isinstance(changed["content"], str):
            assert same(changed["content"][1:], message["content"])


def test_every_call_of_chat_completions_goes_out_as_it_came(tmp_path: Path) -> None:
    calls = variants(ChatCompletionMessageToolCallUnionParam)
    calls += [
        {"id": "j", "type": "function", "function": {"name": "f", "arguments": "no JSON"}},
        {"id": "l", "type": "function", "function": {"name": "f", "arguments": "[1]"}},
        {"id": "e", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"id": "o", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
    ]
    for number, call in enumerate(calls):
        call["id"] = f"{call['id']}{number}"
    extras = {"refusal": None, "audio": {"id": "a"}, "reasoning_content": "r", "name": "n"}
    answer = {"role": "assistant", "content": "", **extras, "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    messages = [{"role": "user", "content": "go"}, answer, *results]
    assert same(prepared(tmp_path, "chat", messages), messages)
    format = ChatCompletions()
    (engine,) = format.to_engine(answer, {})
    assert same(format.from_engine([engine], answer), answer)
    (folded,) = format.to_engine(answer, {})
    for block in folded["content"]:
        block["arguments"] = {"input": "…"} if "input" in block["arguments"] else {"a": "…"}
    changed = format.from_engine([folded], answer)["tool_calls"]
    assert [call["id"] for call in changed] == [call["id"] for call in calls]
    assert changed[1]["custom"]["input"] == "…"


ANTHROPIC_SDK = Path("node_modules/@anthropic-ai/sdk/resources/messages/messages.d.ts")
SOURCES = [
    {"type": "base64", "media_type": "image/png", "data": "QQ=="},
    {"type": "base64", "data": "QQ=="},
    {"type": "url", "url": "https://example.org/a.png"},
    {"type": "file", "file_id": "file_1"},
    {"type": "of_tomorrow"},
]
CITED = [{"type": "char_location", "cited_text": "a", "document_index": 0, "file_id": None}]
SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_result",
)
USER_BLOCKS: list[Message] = [
    {"type": "text", "text": "plain"},
    {"type": "text", "text": "cited", "citations": CITED},
    *({"type": "image", "source": source} for source in SOURCES),
    {"type": "document", "source": {"type": "text", "data": "a"}, "title": "t", "context": None},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    {"type": "search_result", "source": "s", "title": "t", "content": [], "citations": {}},
    {"type": "container_upload", "file_id": "file_1"},
    {"type": "of_tomorrow", "text": 7, "nested": {"cache_control": 1}},
]
ANSWER_BLOCKS: list[Message] = [
    {"type": "thinking", "thinking": "t", "signature": "s"},
    {"type": "redacted_thinking", "data": "d"},
    {"type": "thinking", "thinking": 7, "signature": "s"},
    {"type": "redacted_thinking", "data": ["d"]},
    {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}},
    {"type": "mcp_tool_use", "id": "mcp", "name": "n", "server_name": "s", "input": {}},
    *({"type": kind, "tool_use_id": "srv", "content": [{"type": "x"}]} for kind in SERVER_RESULTS),
    *(
        {"type": "tool_use", "id": f"t{n}", "name": "f", "input": given, "caller": {"type": "d"}}
        for n, given in enumerate(({"a": 1}, "a text", ["a", "list"], None, {}))
    ),
]


def test_the_kinds_of_blocks_are_those_of_anthropics_sdk() -> None:
    if not ANTHROPIC_SDK.is_file():
        pytest.skip("no SDK of Anthropic's is installed")
    text = ANTHROPIC_SDK.read_text()
    (union,) = re.findall(r"export type ContentBlockParam = ([^;]+);", text)
    found = set()
    for name in union.split(" | "):
        (body,) = re.findall(
            rf"export interface {name} {{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE
        )
        found |= set(re.findall(r"^    type: '(\w+)'", body, re.MULTILINE))
    known = {block["type"] for block in [*USER_BLOCKS, *ANSWER_BLOCKS]} | {"tool_result"}
    assert found <= known


@pytest.mark.parametrize("marker", [{}, CACHE])
def test_every_block_of_anthropics_goes_out_as_it_came(tmp_path: Path, marker: Message) -> None:
    users = [{**block, **marker} for block in USER_BLOCKS]
    answers = [b if "thinking" in b["type"] else {**b, **marker} for b in ANSWER_BLOCKS]
    uses = [block for block in answers if block["type"] == "tool_use"]
    contents: list[Any] = ["", "text", [], users, [{"type": "tool_reference", "tool_name": "f"}]]
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": content, **marker}
        for use, content in zip(uses, contents, strict=True)
    ]
    del results[0]["content"]
    messages = [
        {"role": "user", "content": users},
        {"role": "assistant", "content": answers},
        {"role": "user", "content": [*results, *users]},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": ""},
    ]
    assert same(prepared(tmp_path, "anthropic", messages), messages)
    format = AnthropicMessages()
    for message in messages[:3]:
        changed = with_a_line(format, message, {})
        left = [block for block in changed["content"] if block.get("text") != "[@1]"]
        assert same(left, message["content"])


def test_a_marker_stays_behind_a_handle() -> None:
    """A result that foredeck puts a line before, and a text that it folds."""
    anthropic, chat = AnthropicMessages(), ChatCompletions()
    block = {"type": "tool_result", "tool_use_id": "t", "content": "long", **CACHE}
    (result,) = anthropic.to_engine({"role": "user", "content": [block]}, {})
    folded = {**result, "content": [{"type": "text", "text": "short"}]}
    out = anthropic.from_engine([folded], {"role": "user", "content": [block]})
    assert out["content"] == [{**block, "content": [{"type": "text", "text": "short"}]}]
    for format in (anthropic, chat):
        texts = [{"type": "text", "text": "a", **CACHE}, {"type": "text", "text": "b"}]
        said = {"role": "user", "content": texts}
        (message,) = format.to_engine(said, {})
        message["content"][0] = {"type": "text", "text": "short"}
        out = format.from_engine([message], said)
        assert out["content"] == [{"type": "text", "text": "short", **CACHE}, texts[1]]
    tool = {
        "role": "tool",
        "tool_call_id": "t",
        "content": [{"type": "text", "text": "l", **CACHE}],
    }
    (result,) = chat.to_engine(tool, {})
    out = chat.from_engine([{**result, "content": [{"type": "text", "text": "s"}]}], tool)
    assert out == {**tool, "content": [{"type": "text", "text": "s", **CACHE}]}


def test_every_item_of_the_responses_api_goes_out_as_it_came(tmp_path: Path) -> None:
    said = {"type": "message", "role": "user", "content": "go"}
    items = variants(ResponseInputItemParam)
    for number, item in enumerate(items):
        item |= {name: f"{item[name]}{number}" for name in ("id", "call_id") if name in item}
    calls = {item.get("type"): item for item in items}
    outputs = [item for item in items if str(item.get("type")).endswith("_output")]
    for item in outputs:
        # An output stands behind its call.
        call = calls.get(item["type"].removesuffix("_output"), {})
        name = "call_id" if "call_id" in item else "id"
        item[name] = call.get("call_id") or call.get("id")
    known = [*(item for item in items if item not in outputs), *outputs]
    parts = variants(ResponseInputContentParam)
    known += [{"type": "message", "role": "user", "content": parts}, {**said, "content": ""}]
    known += [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,x"}]}]
    out = taken_apart(prepared(tmp_path, Responses(), gathered([said, *known])))
    missing = [item for item in known if not any(same(item, each) for each in out)]
    assert missing == []
    message = {"role": "user", "items": [{"type": "message", "role": "user", "content": parts}]}
    assert same(with_a_line(Responses(), message, {})["items"][0]["content"][1:], parts)


@pytest.mark.parametrize("format", ["anthropic", "chat"])
@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": 7},
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "user", "content": [None]},
        {"role": "user", "content": ["text"]},
        {"role": "user", "content": [{"type": None}]},
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "nobody", "content": "a"},
        {"content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [None]},
        {"role": "assistant", "content": [7], "tool_calls": 7},
        "a text",
        None,
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_place(
    tmp_path: Path, format: Any, message: Any
) -> None:
    said = {"role": "user", "content": "go"}
    if format == "anthropic" and isinstance(message, dict) and message.get("content", 0) is None:
        assert prepared(tmp_path, format, [said, message])  # this API has no calls in that place
        return
    with pytest.raises(ForedeckError, match="message 1: "):
        prepared(tmp_path, format, [said, message])


def test_tools_and_answers_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "go"}]
    with ContextManager("s", model=MODEL, home=tmp_path / "home", cwd=tmp_path) as context:
        with pytest.raises(ForedeckError, match="tool 1: "):
            context.prepare(said, tools=[*context.tools[:1], {"function": "f"}])
        with pytest.raises(ForedeckError, match="the answer: "):
            context.calls_in({"role": "assistant", "tool_calls": 7})
        assert context.prepare(said) == said
