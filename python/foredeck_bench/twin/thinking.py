"""Reasoning: what was issued, after which prefix, and what of it must come back or is seen again.

Of the Anthropic Messages API a request returns all of a message's blocks as issued or, in
earlier turns, none; within the turn under way none may be missing:
platform.claude.com/docs/en/build-with-claude/extended-thinking.

A block holds only behind the prefix that it was issued for. A request that fails the check is
refused, or the blocks are left out and reported, as it asks:
platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks.

On OpenAI's wires reasoning is encrypted or plain. From GPT-6.2 on an item behind a changed prefix
is withheld from the model, and this is reported on every request that holds it:
developers.openai.com/api/docs/guides/preserved-reasoning; of the report, `Response.
InputTransformation` in the types of openai-node 7.59 (`resources/responses/responses.d.ts`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foredeck_bench.twin.prompts import normalized, plain_item, responses_settings
from foredeck_bench.twin.script import Finding, Json

_THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class _Issued:
    model: str
    prefix: str
    blocks: tuple[Json, ...]


class ThinkingMemory:
    """Issued thinking, and what comes back; `bound`: a changed prefix invalidates it."""

    def __init__(self, bound: bool = True) -> None:
        self._bound = bound
        self._by_signature: dict[str, _Issued] = {}
        self._by_call: dict[str, _Issued] = {}

    def issue(self, body: Json, blocks: list[Json]) -> None:
        """Notes a reply as the answer to `body`."""
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
        turn = turn_start(body["messages"])
        for index, blocks in _answers(body):
            returned = [b for b in blocks if b["type"] in _THINKING]
            if returned:
                yield from self._check_returned(body, index, returned)
            elif index > turn:
                yield from self._check_missing(body, index, blocks)

    def dropped(self, body: Json, carries: bool = True) -> list[tuple[int, int]]:
        """Thinking that the model does not see: behind a changed prefix, or of earlier turns unless
        it `carries` them."""
        turn = turn_start(body["messages"])
        gone = []
        for index, blocks in _answers(body):
            places = [n for n, b in enumerate(blocks) if b["type"] in _THINKING]
            if places and (
                (not carries and index < turn)
                or (self._bound and self._fails(body, index, blocks[places[0]]))
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


def _answers(body: Json) -> Iterator[tuple[int, list[Json]]]:
    for index, message in enumerate(body["messages"]):
        if message["role"] == "assistant" and not isinstance(message["content"], str):
            yield index, message["content"]


def without(body: Json, places: list[tuple[int, int]]) -> Json:
    """A request without these blocks."""
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
    """Whether failing blocks should be left out."""
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
    """Over system, tools and the first `length` messages, without cache markers."""
    prefix = [body.get("system"), body.get("tools"), body["messages"][:length]]
    text = json.dumps(normalized(prefix), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_results(content: Any) -> bool:
    return isinstance(content, list) and all(b.get("type") == "tool_result" for b in content)


def _signature(block: Json) -> str:
    return str(block.get("signature") or block.get("data") or "")


def _essence(block: Json) -> tuple[str, str, str]:
    return (str(block["type"]), str(block.get("thinking", "")), _signature(block))


def _same_blocks(returned: list[Json], issued: _Issued) -> bool:
    return sorted(map(_essence, returned)) == sorted(map(_essence, issued.blocks))


_PLAIN_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class _SealedAnswer:
    prefix: str
    reasoning: tuple[Json, ...]


class SealedMemory:
    """Remembers the reasoning that a server issued over OpenAI's wires."""

    def __init__(self) -> None:
        self._by_call: dict[str, _SealedAnswer] = {}
        self._by_item: dict[str, str] = {}
        self._plain: set[str] = set()

    def issue(self, body: Json, blocks: list[Json]) -> None:
        """Notes a reply as the answer to the chat `body`."""
        self._plain |= {b["thinking"] for b in blocks if b["type"] == "thinking"}
        sealed = tuple(b for b in blocks if b["type"] == "redacted_thinking")
        if not sealed:
            return
        issued = _SealedAnswer(prefix_hash(body, len(body["messages"])), sealed)
        for block in blocks:
            if block["type"] == "tool_use":
                self._by_call[block["id"]] = issued

    def issue_items(self, raw: Json, items: list[Json]) -> None:
        before = list(raw.get("input") or ())
        for item in items:
            if item["type"] == "reasoning":
                self._by_item[item["encrypted_content"]] = _items_hash(raw, before)
            before.append(item)

    def withheld(self, raw: Json, bound: bool, carries: bool) -> list[Json]:
        """Reasoning that the model does not see: behind a changed prefix if `bound`, of earlier
        turns unless it `carries` them."""
        items: list[Json] = [i for i in raw.get("input") or () if isinstance(i, dict)]
        turn = max((n for n, item in enumerate(items) if item.get("role") == "user"), default=-1)
        reported = []
        for index, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            issued = self._by_item.get(str(item.get("encrypted_content")))
            reason = None
            if bound and issued is not None and issued != _items_hash(raw, items[:index]):
                reason = "prefix_mismatch"
            elif not carries and index < turn:
                reason = "turn_boundary"
            if reason:
                reported.append(
                    {
                        "type": "reasoning",
                        "id": item.get("id"),
                        "action": "removed",
                        "reason": reason,
                    }
                )
        return reported

    def check(self, body: Json) -> Iterator[Finding]:
        """Reasoning must be as issued, and in this turn whole and with its calls."""
        for index, message in enumerate(body["messages"]):
            for field in _PLAIN_FIELDS:
                text = message.get(field)
                if text and text not in self._plain:
                    yield "reasoning_altered", f"messages[{index}].{field}: not what was issued"
        for index, issued, details in self._sealed(body):
            if [d.get("data") for d in details] != [b["data"] for b in issued.reasoning]:
                where = f"messages[{index}].reasoning_details"
                yield "reasoning_altered", f"{where}: not what was issued with these calls"

    def changed_before(self, body: Json) -> str | None:
        """The turn's encrypted reasoning behind changed bytes, if any; no document forbids that."""
        for index, issued, _ in self._sealed(body):
            if prefix_hash(body, index) != issued.prefix:
                return str(issued.reasoning[0]["data"])
        return None

    def _sealed(self, body: Json) -> Iterator[tuple[int, _SealedAnswer, list[Json]]]:
        messages: list[Json] = body["messages"]
        turn = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
        for index in range(turn + 1, len(messages)):
            calls = messages[index].get("tool_calls") or ()
            issued = next((self._by_call[c["id"]] for c in calls if c["id"] in self._by_call), None)
            if issued is not None:
                yield index, issued, list(messages[index].get("reasoning_details") or ())


def without_items(raw: Json, withheld: list[Json]) -> Json:
    """A request without withheld reasoning."""
    gone = {each["id"] for each in withheld}
    items = [i for i in raw["input"] if not (i.get("type") == "reasoning" and i["id"] in gone)]
    return {**raw, "input": items}


def _items_hash(raw: Json, items: list[Json]) -> str:
    text = json.dumps(
        [responses_settings(raw), [plain_item(item) for item in items]],
        sort_keys=True,
        ensure_ascii=False,
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
