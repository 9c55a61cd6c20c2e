"""Reasoning that a provider has not given to its model, by what Pi notes with the answer."""

from __future__ import annotations

import json

from foredeck.context.messages.shape import seal_of
from foredeck.hosts.pi import to_outcome
from foredeck.hosts.protocol import JsonObject, OutcomeParams


def dropped(*changes: JsonObject) -> tuple[set[str], bool]:
    outcome = to_outcome(OutcomeParams(call=1, kind="applied", reasoning=list(changes)))
    return set(outcome.dropped), outcome.bound


def of_anthropic(block: object, type: str = "thinking_dropped", reason: str = "r") -> JsonObject:
    return {"type": type, "path": "messages.2.content.0", "reason": reason, "block": block}


def of_openai(id: object, reason: str) -> JsonObject:
    return {"type": "reasoning", "id": id, "action": "removed", "reason": reason}


def test_what_anthropic_has_dropped_has_the_seal_of_its_block() -> None:
    plain = of_anthropic({"type": "thinking", "signature": "sig-2"})
    redacted = of_anthropic({"type": "redacted_thinking", "data": "sig-3"})
    assert dropped(plain, redacted) == ({"sig-2", "sig-3"}, False)
    assert dropped(of_anthropic({"type": "text"}), of_anthropic(None)) == (set(), False)


def test_what_was_used_all_the_same_is_not_dropped() -> None:
    allowed = of_anthropic({"signature": "sig-2"}, "thinking_mismatch_allowed")
    assert dropped(allowed) == (set(), False)


def test_what_openai_has_removed_has_its_id_but_for_what_ends_with_its_turn() -> None:
    changes = of_openai("rs_2", "model"), of_openai("rs_1", "turn_boundary"), of_openai(None, "r")
    assert dropped(*changes) == ({"rs_2"}, False)
    item = json.dumps({"id": "rs_2", "type": "reasoning", "encrypted_content": "x"})
    assert seal_of({"type": "thinking", "thinkingSignature": item}) == "rs_2"
    assert seal_of({"type": "thinking", "thinkingSignature": "{"}) is None


def test_what_is_bound_to_the_bytes_before_it_is_told_by_the_reason() -> None:
    assert dropped(of_openai("rs_1", "prefix_mismatch")) == ({"rs_1"}, True)
    changed = of_anthropic({"signature": "s"}, reason="prefix_binding_mismatch")
    assert dropped(changed) == ({"s"}, True)
    allowed = {**changed, "type": "thinking_mismatch_allowed"}
    assert dropped(allowed) == (set(), False)
