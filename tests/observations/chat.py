"""Conversations for these tests, written as a few words."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.observations.chunks import SourceCall, SourceMessage

START_MS = 1_777_800_000_000
"""2026-05-03 09:20 UTC."""


def user(text: str, *, tokens: int | None = None, turn: int = 1) -> SourceMessage:
    return _message("user", text, tokens=tokens, turn=turn)


def answer(
    text: str, *calls: str, tokens: int | None = None, tool: str = "read", turn: int = 1
) -> SourceMessage:
    """An answer that makes calls with these ids, each about a file of that name."""
    asked = tuple(SourceCall(id, tool, f"src/{id}.py", {"path": f"src/{id}.py"}) for id in calls)
    return _message("assistant", text, tokens=tokens, turn=turn, calls=asked)


def result(
    call: str, text: str = "ok", *, tokens: int | None = None, failed: bool = False, turn: int = 1
) -> SourceMessage:
    return _message(
        *("result", text),
        **{"tokens": tokens, "turn": turn, "call_id": call, "tool": "read", "failed": failed},
    )


def _message(kind: str, text: str, *, tokens: int | None, **fields: object) -> SourceMessage:
    counted = len(text) // 4 if tokens is None else tokens
    return SourceMessage(f"{kind}:{text}", kind, text, counted, START_MS, **fields)  # type: ignore[arg-type]


def rounds(count: int, *, tokens: int = 1000, turn: int = 1) -> list[SourceMessage]:
    """So many answers with a call and its result, each of them with so many tokens in all."""
    return [message for n in range(count) for message in one_round(f"c{n}", tokens, turn)]


def one_round(call: str, tokens: int, turn: int = 1) -> Iterable[SourceMessage]:
    yield answer(f"look at {call}", call, tokens=tokens // 2, turn=turn)
    yield result(call, f"text of {call}", tokens=tokens - tokens // 2, turn=turn)
