"""Pi messages in few words. Time stamps are given when a host takes them (`driver.Host.add`)."""

from __future__ import annotations

from typing import Any

from foredeck.context.messages.shape import Message

Block = dict[str, Any]

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def text(content: str) -> Block:
    """A text block."""
    return {"type": "text", "text": content}


def image(data: str = PIXEL) -> Block:
    """An image block."""
    return {"type": "image", "data": data, "mimeType": "image/png"}


def thinking(content: str, signature: str | None = None, **more: Any) -> Block:
    """A thinking block, sealed where there is a signature."""
    block: Block = {"type": "thinking", "thinking": content, **more}
    return block if signature is None else {**block, "thinkingSignature": signature}


def calls(id: str, tool: str, /, **arguments: Any) -> Block:
    """A tool call inside an assistant message."""
    return {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}


def user(content: str | list[Block], **more: Any) -> Message:
    """What the user says."""
    return {"role": "user", "content": content, **more}


def assistant(*blocks: Block | str, stop: str | None = None, **more: Any) -> Message:
    """An answer of the model; a string is a text block."""
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    uses_tools = any(block.get("type") == "toolCall" for block in content)
    return {
        "role": "assistant",
        "content": content,
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "m1",
        "stopReason": stop or ("toolUse" if uses_tools else "stop"),
        **more,
    }


def result(
    id: str, tool: str, content: str | list[Block] = "", *, failed: bool = False, **more: Any
) -> Message:
    """What a tool gave."""
    blocks = [text(content)] if isinstance(content, str) else content
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": tool,
        "content": blocks,
        "isError": failed,
        **more,
    }


def lines(count: int, word: str = "line") -> str:
    """A text of so many different lines."""
    return "\n".join(f"{word} {number}: some text that makes it long" for number in range(count))
