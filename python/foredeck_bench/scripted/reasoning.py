"""Reasoning blocks: what was issued, after which bytes, and what must come back unchanged.

Anthropic signs reasoning. A request that returns signed reasoning must return it as it was
issued: same text, same order, all of a message's blocks or (in earlier turns) none, and the bytes
before it must be those of the request it was issued for. Within the current turn, that is since
the last message of the user that holds more than tool results, none may be missing.

The rules are those of the documentation: "Thinking" (the turn, and what must come back in it) and
"Preserved thinking" (the bytes before, checked in every turn by newer models for newer accounts,
unless a request asks for such blocks to be dropped). All are applied at once here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foredeck_bench.scripted.rules import Finding, Json

_REASONING = ("thinking", "redacted_thinking")
_OPENAI_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class _Issued:
    model: str
    prefix: str
    reasoning: tuple[Json, ...]


class ReasoningMemory:
    """Remembers the reasoning that a server issued and checks what comes back."""

    def __init__(self) -> None:
        self._by_signature: dict[str, _Issued] = {}
        self._by_call: dict[str, _Issued] = {}
        self._plain: set[str] = set()

    def issue(self, body: Json, blocks: list[Json]) -> None:
        """Note an Anthropic reply (`blocks` in wire shape) as the answer to the request `body`."""
        reasoning = tuple(b for b in blocks if b["type"] in _REASONING)
        if not reasoning:
            return
        prefix = prefix_hash(body, len(body["messages"]))
        issued = _Issued(str(body.get("model")), prefix, reasoning)
        for block in reasoning:
            self._by_signature[_signature(block)] = issued
        for block in blocks:
            if block["type"] == "tool_use":
                self._by_call[block["id"]] = issued

    def issue_plain(self, text: str) -> None:
        """Note unsigned reasoning sent over chat completions."""
        self._plain.add(text)

    def issue_sealed(self, body: Json, blocks: list[Json]) -> None:
        """Note encrypted reasoning sent over one of OpenAI's wires as the answer to `body`."""
        sealed = tuple(b for b in blocks if b["type"] == "redacted_thinking")
        if not sealed:
            return
        prefix = prefix_hash(body, len(body["messages"]))
        issued = _Issued(str(body.get("model")), prefix, sealed)
        for block in blocks:
            if block["type"] == "tool_use":
                self._by_call[block["id"]] = issued

    def check_sealed(self, body: Json) -> Iterator[Finding]:
        """Findings on encrypted reasoning of the turn under way, in a list that is otherwise valid:
        it comes back with its calls, as it was issued."""
        for index, issued, details in self._sealed(body):
            if [d.get("data") for d in details] != [b["data"] for b in issued.reasoning]:
                where = f"messages[{index}].reasoning_details"
                yield "reasoning_altered", f"{where}: not what was issued with these calls"

    def changed_before(self, body: Json) -> str | None:
        """The encrypted reasoning of the turn under way before which bytes have changed since it
        was issued, None where there is none. No document asks for them to stay."""
        for index, issued, _ in self._sealed(body):
            if prefix_hash(body, index) != issued.prefix:
                return str(issued.reasoning[0]["data"])
        return None

    def _sealed(self, body: Json) -> Iterator[tuple[int, _Issued, list[Json]]]:
        messages: list[Json] = body["messages"]
        turn = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
        for index in range(turn + 1, len(messages)):
            calls = messages[index].get("tool_calls") or ()
            issued = next((self._by_call[c["id"]] for c in calls if c["id"] in self._by_call), None)
            if issued is not None:
                yield index, issued, list(messages[index].get("reasoning_details") or ())

    def check_plain(self, body: Json) -> Iterator[Finding]:
        """Findings on reasoning that a chat completions request returns."""
        for index, message in enumerate(body["messages"]):
            for field in _OPENAI_FIELDS:
                text = message.get(field)
                if text and text not in self._plain:
                    yield "reasoning_altered", f"messages[{index}].{field}: not what was issued"

    def check(self, body: Json) -> Iterator[Finding]:
        """Findings on an Anthropic request whose list is otherwise valid."""
        messages: list[Json] = body["messages"]
        turn = turn_start(messages)
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or isinstance(message["content"], str):
                continue
            blocks: list[Json] = message["content"]
            found = [b for b in blocks if b["type"] in _REASONING]
            if found:
                yield from self._check_found(body, index, found)
            elif index > turn:
                yield from self._check_missing(body, index, blocks)

    def _check_found(self, body: Json, index: int, found: list[Json]) -> Iterator[Finding]:
        where = f"messages.{index}"
        issued = self._by_signature.get(_signature(found[0]))
        if any(_signature(block) not in self._by_signature for block in found) or not issued:
            yield "reasoning_unknown", f"{where}: Invalid `signature` in `thinking` block"
            return
        if [_essence(b) for b in found] != [_essence(b) for b in issued.reasoning]:
            rule = "reasoning_reordered" if _same_blocks(found, issued) else "reasoning_altered"
            yield (
                rule,
                f"{where}: `thinking` or `redacted_thinking` blocks cannot be modified. These "
                "blocks must remain as they were in the original response",
            )
        if not _drops_unbound(body) and prefix_hash(body, index) != issued.prefix:
            yield (
                "prefix_changed",
                f"{where}: `thinking` block is bound to a prefix that has changed since",
            )

    def _check_missing(self, body: Json, index: int, blocks: list[Json]) -> Iterator[Finding]:
        for block in blocks:
            issued = self._by_call.get(str(block.get("id")))
            if issued and issued.model == body.get("model"):
                yield (
                    "reasoning_missing",
                    f"messages.{index}: Expected `thinking` or `redacted_thinking`, but found "
                    f"`{blocks[0]['type']}`",
                )
                return


def turn_start(messages: list[Json]) -> int:
    """Index of the last user message that holds something other than tool results."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and not _is_results(message["content"]):
            return index
    return -1


def prefix_hash(body: Json, length: int) -> str:
    """SHA-256 hex over system, tools and the first `length` messages, cache markers left out."""
    prefix = [body.get("system"), body.get("tools"), body["messages"][:length]]
    text = json.dumps(normalized(prefix), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def normalized(value: Any) -> Any:
    """`value` without cache markers, and with string contents as the text block they stand for."""
    if isinstance(value, list):
        return [normalized(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {k: normalized(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain


def _is_results(content: Any) -> bool:
    """Whether this goes on with a turn: results and nothing else."""
    return isinstance(content, list) and all(b.get("type") == "tool_result" for b in content)


def _signature(block: Json) -> str:
    return str(block.get("signature") or block.get("data") or "")


def _essence(block: Json) -> tuple[str, str, str]:
    return (str(block["type"]), str(block.get("thinking", "")), _signature(block))


def _same_blocks(found: list[Json], issued: _Issued) -> bool:
    return sorted(map(_essence, found)) == sorted(map(_essence, issued.reasoning))


def _drops_unbound(body: Json) -> bool:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")
