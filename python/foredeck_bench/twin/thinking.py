"""Thinking blocks of the Anthropic Messages API: what was issued, after which prefix, and what must
come back unchanged.

A request that returns signed thinking returns it as it was issued: same text, same order, all of a
message's blocks or (in earlier turns) none. Within the turn under way, that is since the last
message of the user that holds more than tool results, none may be missing:
platform.claude.com/docs/en/build-with-claude/extended-thinking.

In every turn a block holds only behind the prefix that it was issued for: system, tools and all
messages before it. What changes later than that invalidates what already stands behind the change,
not what is issued afterwards. A request that fails the check is refused, or the blocks that fail
are left out and reported, as it asks:
platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.rules import Finding, Json

_THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class _Issued:
    model: str
    prefix: str
    blocks: tuple[Json, ...]


class ThinkingMemory:
    """Remembers the thinking that a server issued and checks what comes back.

    `bound`: whether a changed prefix invalidates it.
    """

    def __init__(self, bound: bool = True) -> None:
        self._bound = bound
        self._by_signature: dict[str, _Issued] = {}
        self._by_call: dict[str, _Issued] = {}

    def issue(self, body: Json, blocks: list[Json]) -> None:
        """Note a reply (`blocks` in wire shape) as the answer to the request `body`."""
        thinking = tuple(b for b in blocks if b["type"] in _THINKING)
        if not thinking:
            return
        prefix = prefix_hash(body, len(body["messages"]))
        issued = _Issued(str(body.get("model")), prefix, thinking)
        for block in thinking:
            self._by_signature[_signature(block)] = issued
        for block in blocks:
            if block["type"] == "tool_use":
                self._by_call[block["id"]] = issued

    def check(self, body: Json) -> Iterator[Finding]:
        """Findings on a request whose list is otherwise valid."""
        messages: list[Json] = body["messages"]
        turn = turn_start(messages)
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or isinstance(message["content"], str):
                continue
            blocks: list[Json] = message["content"]
            returned = [b for b in blocks if b["type"] in _THINKING]
            if returned:
                yield from self._check_returned(body, index, returned)
            elif index > turn:
                yield from self._check_missing(body, index, blocks)

    def dropped(self, body: Json, carries: bool = True) -> list[tuple[int, int]]:
        """Message and block of the thinking that the model does not see, in an accepted request:
        behind a changed prefix, and where the model `carries` none, in earlier turns."""
        messages: list[Json] = body["messages"]
        turn = turn_start(messages)
        gone = []
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or isinstance(message["content"], str):
                continue
            places = [n for n, b in enumerate(message["content"]) if b["type"] in _THINKING]
            if places and (
                (not carries and index < turn)
                or (self._bound and self._fails(body, index, message["content"][places[0]]))
            ):
                gone += [(index, place) for place in places]
        return gone

    def _fails(self, body: Json, index: int, block: Json) -> bool:
        issued = self._by_signature.get(_signature(block))
        return issued is not None and prefix_hash(body, index) != issued.prefix

    def _check_returned(self, body: Json, index: int, returned: list[Json]) -> Iterator[Finding]:
        where = f"messages.{index}"
        issued = self._by_signature.get(_signature(returned[0]))
        if any(_signature(block) not in self._by_signature for block in returned) or not issued:
            yield "reasoning_unknown", f"{where}: Invalid `signature` in `thinking` block"
            return
        if [_essence(b) for b in returned] != [_essence(b) for b in issued.blocks]:
            rule = "reasoning_reordered" if _same_blocks(returned, issued) else "reasoning_altered"
            yield (
                rule,
                f"{where}: `thinking` or `redacted_thinking` blocks cannot be modified. These "
                "blocks must remain as they were in the original response",
            )
        if self._bound and not drops(body) and self._fails(body, index, returned[0]):
            yield (
                "prefix_changed",
                f"{where}: `thinking` block is bound to a prefix that has changed since; "
                "`prefix_mismatch_behavior` may be set to `drop_block`",
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


def without(body: Json, places: list[tuple[int, int]]) -> Json:
    """A request without these blocks: what the model reads."""
    gone = set(places)
    messages = [
        message
        if isinstance(message["content"], str)
        else {
            **message,
            "content": [b for n, b in enumerate(message["content"]) if (index, n) not in gone],
        }
        for index, message in enumerate(body["messages"])
    ]
    return {**body, "messages": messages}


def drops(body: Json) -> bool:
    """Whether a request asks for blocks that fail the check to be left out."""
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


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


def _is_results(content: Any) -> bool:
    """Whether this goes on with a turn: results and nothing else."""
    return isinstance(content, list) and all(b.get("type") == "tool_result" for b in content)


def _signature(block: Json) -> str:
    return str(block.get("signature") or block.get("data") or "")


def _essence(block: Json) -> tuple[str, str, str]:
    return (str(block["type"]), str(block.get("thinking", "")), _signature(block))


def _same_blocks(returned: list[Json], issued: _Issued) -> bool:
    return sorted(map(_essence, returned)) == sorted(map(_essence, issued.blocks))
