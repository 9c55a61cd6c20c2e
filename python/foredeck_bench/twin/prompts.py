"""A request as the provider lays it out; tokens are estimated as characters / 4."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foredeck_bench.twin.script import Json, ModelRequest, content_text

IMAGE_TOKENS = 1500

_UNREAD = frozenset({"cache_control", "eager_input_streaming", "prompt_cache_breakpoint"})
"""What a block or a tool tells the provider and no model reads."""

_ANTHROPIC_SETTINGS = ("thinking", "output_config", "tool_choice")
"""What, changed, loses the cache of the messages, not that of tools and system prompt:
platform.claude.com/docs/en/build-with-claude/prompt-caching (what invalidates the cache); of the
effort, pi-ai 1.6.0 `api/anthropic-messages.js`, `buildParams`."""

_OPENAI_SETTINGS = ("instructions", "text", "reasoning")
"""What, changed, changes the prefix: developers.openai.com/api/docs/guides/preserved-reasoning."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Hash and tokens up to a block's end.

    `marker`: its cache marker; `eligible`: OpenAI may set a breakpoint there.
    """

    prefix: str
    tokens: int
    marker: str | None = None
    eligible: bool = False


def segments(request: ModelRequest) -> list[Segment]:
    """The prompt's blocks, in its order."""
    if request.api == "openai-responses":
        laid_out = _responses(request.raw)
    elif request.api == "google-generative-ai":
        laid_out = _google(request.raw)
    else:
        laid_out = _messages(request.body, request.api == "anthropic-messages")
    digest = hashlib.sha256(str(request.body.get("model")).encode())
    tokens = 0
    rows = []
    for part in laid_out:
        text = json.dumps(normalized(part.bytes), sort_keys=True, ensure_ascii=False)
        digest.update(text.encode("utf-8", "surrogatepass"))
        tokens += part.tokens
        rows.append(Segment(digest.hexdigest(), tokens, part.marker, part.eligible))
    if request.body.get("cache_control") and rows:
        # Automatic caching: the last block that can be cached is marked.
        last = rows[-1]
        rows[-1] = Segment(last.prefix, last.tokens, _life(request.body["cache_control"]))
    return rows


def prompt_tokens(request: ModelRequest) -> int:
    """Estimated tokens of a whole request: tools, system prompt and messages."""
    rows = segments(request)
    return rows[-1].tokens if rows else 0


def estimate_tokens(value: Any) -> int:
    text = value if isinstance(value, str) else _compact(value)
    return -(-len(text) // 4)


def block_tokens(block: Json) -> int:
    kind = block.get("type")
    if kind == "tool_use":
        return estimate_tokens(block["name"]) + estimate_tokens(block["input"])
    if kind == "tool_result":
        content = block.get("content")
        parts = content if isinstance(content, list) else ()
        images = len([part for part in parts if part.get("type") == "image"])
        return estimate_tokens(content_text(content)) + images * IMAGE_TOKENS
    if kind in ("image", "image_url", "input_image"):
        return IMAGE_TOKENS
    if kind in ("text", "thinking", "input_text", "output_text"):
        return estimate_tokens(block["thinking" if kind == "thinking" else "text"])
    return estimate_tokens({k: v for k, v in block.items() if k not in _UNREAD})


def normalized(value: Any) -> Any:
    """A value without cache markers, its strings as text blocks."""
    if isinstance(value, list):
        return [normalized(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {
        k: normalized(v)
        for k, v in value.items()
        if k not in ("cache_control", "prompt_cache_breakpoint")
    }
    if isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain


def plain_item(item: Json) -> Json:
    """A Responses item without ids, states and spelling of arguments."""
    kind = item.get("type") or "message"
    if kind == "reasoning":
        return {"type": kind, "sealed": item.get("encrypted_content")}
    plain = {
        name: value
        for name, value in normalized(item).items()
        if name not in ("id", "status", "phase") and value is not None
    }
    if isinstance(plain.get("content"), list):
        plain["content"] = [
            {"text": b["text"]} if "text" in b else b
            for b in plain["content"]
            if isinstance(b, dict)
        ]
    if isinstance(plain.get("arguments"), str):
        plain["arguments"] = json.loads(plain["arguments"] or "{}")
    return {**plain, "type": kind}


def responses_settings(body: Json) -> list[Any]:
    """What stands before the items of a Responses request."""
    return [*(body.get(name) for name in _OPENAI_SETTINGS), body.get("tools")]


@dataclass(frozen=True, slots=True)
class _Part:
    bytes: Any
    tokens: int
    marker: str | None = None
    eligible: bool = False


def _messages(body: Json, anthropic: bool) -> Iterator[_Part]:
    """Each block, with its message's other fields, which count for equality only."""
    for tool in body.get("tools") or ():
        # A deferred tool is no part of the prompt until it is added.
        if not tool.get("defer_loading"):
            yield _Part([tool, {}], block_tokens(tool), _life(tool.get("cache_control")))
    for block in _content_blocks(body.get("system")):
        yield _Part([block, {}], block_tokens(block), _life(block.get("cache_control")))
    settings = [body.get(name) for name in _ANTHROPIC_SETTINGS] if anthropic else []
    for message in body["messages"]:
        rest: Json = {k: v for k, v in message.items() if k != "content"}
        blocks = _content_blocks(message.get("content")) or [{"type": "text", "text": ""}]
        last = blocks[-1] if not message.get("tool_calls") else None
        for block in blocks:
            yield _Part(
                [block, rest, settings],
                block_tokens(block),
                _life(block.get("cache_control")) or _explicit(block),
                block is last and message["role"] in ("user", "tool"),
            )
        for call in message.get("tool_calls") or ():
            yield _Part([call, {"role": message["role"]}], block_tokens(call))


def _responses(body: Json) -> Iterator[_Part]:
    settings = responses_settings(body)
    tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
    text = str(body.get("instructions") or "")
    yield _Part(settings, estimate_tokens(text) + sum(map(block_tokens, tools)))
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items or ():
        key = "output" if str(item.get("type")).endswith("_call_output") else "content"
        content = item.get(key)
        if not isinstance(content, list) or item.get("type") == "reasoning":
            yield _Part(plain_item(item), item_tokens(item), None, _is_eligible(item))
            continue
        rest = plain_item({k: v for k, v in item.items() if k != key})
        for position, block in enumerate(content):
            yield _Part(
                [rest, {k: v for k, v in block.items() if k not in ("annotations", "type")}],
                block_tokens(block),
                _explicit(block),
                position == len(content) - 1 and _is_eligible(item),
            )


def item_tokens(item: Json) -> int:
    kind = item.get("type")
    if kind in ("reasoning", "compaction"):
        # What is sealed is as long as the reasoning, of which the summary is all that is told.
        summary = "".join(part.get("text", "") for part in item.get("summary") or ())
        return estimate_tokens(max(summary, str(item.get("encrypted_content") or ""), key=len))
    if kind == "configuration_update":
        return 0
    if kind == "additional_tools":
        return sum(block_tokens(tool) for tool in item["tools"])
    if kind == "function_call":
        return estimate_tokens(item["name"]) + estimate_tokens(item.get("arguments") or "")
    return estimate_tokens(content_text(item.get("output") or item.get("content")))


def _google(body: Json) -> Iterator[_Part]:
    head = [body.get("tools"), body.get("systemInstruction")]
    yield _Part(head, sum(estimate_tokens(part) for part in head if part))
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            tokens = (
                IMAGE_TOKENS if "inlineData" in part else estimate_tokens(part.get("text", part))
            )
            yield _Part([content.get("role"), part], tokens)


def _is_eligible(item: Json) -> bool:
    return item.get("role") == "user" or str(item.get("type")).endswith("_call_output")


def _life(marker: Any) -> str | None:
    return str(marker.get("ttl") or "5m") if isinstance(marker, dict) else None


def _explicit(block: Json) -> str | None:
    return "explicit" if block.get("prompt_cache_breakpoint") else None


def _content_blocks(content: Any) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
