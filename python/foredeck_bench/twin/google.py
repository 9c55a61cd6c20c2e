"""Google's generateContent: requests in the shape of chat completions, and replies as streamed.

Sources: ai.google.dev/gemini-api/docs/function-calling and /thought-signatures; pi-ai 1.6.0
`api/google-shared.js` (`convertMessages`, the signature of a call goes with its part).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from foredeck_bench.twin.billing import Usage
from foredeck_bench.twin.script import Failure, Json

_STOP = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


def as_chat(body: Json) -> Json:
    """The request with `messages` for `contents`."""
    messages: list[Json] = []
    system = _text((body.get("systemInstruction") or {}).get("parts") or ())
    if system:
        messages.append({"role": "system", "content": system})
    open_calls: list[str] = []
    for content in body.get("contents") or ():
        parts = content.get("parts") or ()
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if content.get("role") == "model":
            open_calls = [str(c.get("id") or f"{c['name']}_{n}") for n, c in enumerate(calls)]
            messages.append(_answer(_text(parts), calls, open_calls))
            continue
        for part in parts:
            if "functionResponse" in part:
                response = part["functionResponse"]
                name = str(response.get("id") or (open_calls.pop(0) if open_calls else "none"))
                text = json.dumps(response.get("response"), ensure_ascii=False)
                messages.append({"role": "tool", "tool_call_id": name, "content": text})
        if _text(parts):
            messages.append({"role": "user", "content": _text(parts)})
    tools = [
        tool for each in body.get("tools") or () for tool in each.get("functionDeclarations") or ()
    ]
    return {"model": body.get("model"), "tools": tools, "messages": messages}


def events(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, _dropped: list[Json]
) -> Iterator[str]:
    """Server-sent events of one answer; `blocks` are in Anthropic's shape."""
    for part in map(_part, blocks):
        yield _event(message_id, model, {"content": {"role": "model", "parts": [part]}})
    ending = {"content": {"role": "model", "parts": []}, "finishReason": _STOP.get(stop, "STOP")}
    yield _event(message_id, model, ending, _usage(usage))


def whole(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, _dropped: list[Json]
) -> Json:
    content = {"role": "model", "parts": [_part(block) for block in blocks]}
    candidate = {"content": content, "finishReason": _STOP.get(stop, "STOP"), "index": 0}
    identity = {"responseId": message_id, "modelVersion": model}
    return {"candidates": [candidate], "usageMetadata": _usage(usage), **identity}


def error_body(failure: Failure) -> Json:
    """The JSON body of an error answer."""
    status = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(failure.status, "INTERNAL")
    error = {"code": failure.status, "message": failure.message, "status": status}
    return {"error": error}


def _answer(text: str, calls: list[Json], names: list[str]) -> Json:
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": name,
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call.get("args") or {})},
            }
            for call, name in zip(calls, names, strict=True)
        ]
    return message


def _text(parts: Any) -> str:
    return "\n".join(str(part["text"]) for part in parts if part.get("text"))


def _part(block: Json) -> Json:
    if block["type"] == "text":
        return {"text": block["text"]}
    if block["type"] == "tool_use":
        call = {"name": block["name"], "args": block["input"], "id": block["id"]}
        return {"functionCall": call, "thoughtSignature": _sealed(block["id"])}
    text = block.get("thinking", "")
    sealed = _sealed(str(block.get("signature") or block.get("data")))
    return {"thought": True, "text": text, "thoughtSignature": sealed}


def _sealed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _event(message_id: str, model: str, candidate: Json, usage: Json | None = None) -> str:
    chunk: Json = {"candidates": [{**candidate, "index": 0}], "responseId": message_id}
    chunk |= {"modelVersion": model, **({"usageMetadata": usage} if usage else {})}
    return f"data: {json.dumps(chunk)}\n\n"


def _usage(usage: Usage) -> Json:
    return {
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.prompt + usage.output,
    }
