"""Message threads of the Anthropic Messages API: conversations that the server keeps.

Sources: platform.claude.com/docs/en/build-with-claude/message-threads; pi-ai 1.6.0
`api/anthropic-messages.js` (`hashThreadPrefix`, `NEW_THREAD_ERRORS`).
"""

from __future__ import annotations

from dataclasses import dataclass

from foredeck_bench.twin.request import Json

BETA = "message-threads-2026-08-12"

LIFETIME_S = 300.0
"""A thread expires so long after the last answer that was stored in it."""

_HELD = ("system", "tools")
"""What a thread has from its `create`."""

_FIXED = ("model", "thinking", "output_config", "tool_choice", "betas", "fallbacks")
"""What a `continue` must repeat unchanged."""


@dataclass(frozen=True, slots=True)
class ThreadRefusal(Exception):
    """The refusal of a thread, with HTTP status, `error_code` and words."""

    status: int
    code: str
    message: str


@dataclass(slots=True)
class _Turn:
    """A conversation up to one answer."""

    body: Json
    at_s: float
    continued: bool = False


class Threads:
    """One account's conversations, by their last answer's id."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def rebuild(self, body: Json, now_s: float) -> Json:
        """The whole request behind `body`. Raises ThreadRefusal."""
        thread = body.get("thread")
        if thread is None:
            return body
        if BETA not in (body.get("betas") or ()):
            raise ThreadRefusal(400, "", "thread: Extra inputs are not permitted")
        whole = {name: body[name] for name in body if name != "thread"}
        if thread.get("type") == "create":
            return whole
        turn = self._turns.get(str(thread.get("previous_message_id")))
        if turn is None or now_s - turn.at_s > LIFETIME_S:
            raise ThreadRefusal(404, "thread_not_found", "thread: not found or expired")
        if turn.continued:
            raise ThreadRefusal(
                400, "thread_already_continued", "thread: this answer has already been continued"
            )
        differing = [name for name in _FIXED if body.get(name) != turn.body.get(name)]
        differing += [name for name in _HELD if name in body and body[name] != turn.body.get(name)]
        if differing:
            raise ThreadRefusal(
                400,
                "thread_fingerprint_mismatch",
                f"thread: differing field(s): {', '.join(differing)}",
            )
        turn.continued = True
        fields = {name: turn.body[name] for name in _HELD if name in turn.body}
        return {**whole, **fields, "messages": [*turn.body["messages"], *body["messages"]]}

    def store(self, message_id: str, whole: Json, blocks: list[Json], now_s: float) -> None:
        """Keeps the conversation that this answer ends."""
        answer = {"role": "assistant", "content": blocks}
        messages = [_unmarked(message) for message in whole["messages"]]
        body = {**whole, "messages": [*messages, answer]}
        self._turns[message_id] = _Turn(body, now_s)


def _unmarked(message: Json) -> Json:
    """A message without cache markers, on the assumption that they hold for one request only."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
    return {**message, "content": blocks}
