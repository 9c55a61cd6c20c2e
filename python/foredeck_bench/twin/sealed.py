"""Encrypted and plain reasoning on OpenAI's wires: what was issued, after which prefix, and what of
it the model sees again.

From GPT-6.2 on a reasoning item behind a changed prefix is withheld from the model, and this is
reported on every request that holds it:
developers.openai.com/api/docs/guides/preserved-reasoning; of the report, `Response.
InputTransformation` in the types of openai-node 7.59 (`resources/responses/responses.d.ts`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from foredeck_bench.twin.prompts import plain_item, responses_settings
from foredeck_bench.twin.rules import Finding, Json
from foredeck_bench.twin.thinking import prefix_hash

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
