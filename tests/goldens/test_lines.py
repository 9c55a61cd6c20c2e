"""What a golden notices, and how it says so."""

from __future__ import annotations

from context.messages import user
from goldens.lines import golden_of

PROMPTS = [[user(f"Question {n}") for n in range(count)] for count in range(1, 30)]


def test_a_changed_prompt_is_named_with_its_call() -> None:
    changed = [*PROMPTS[:11], [user("Something else")], *PROMPTS[12:]]
    said = golden_of(PROMPTS).difference(golden_of(changed))
    assert said == "differs from call 12 on (1 of 29 calls)"


def test_a_call_more_is_a_difference() -> None:
    said = golden_of(PROMPTS[:-1]).difference(golden_of(PROMPTS))
    assert said == "differs from call 29 on (1 of 29 calls)"


def test_equal_prompts_are_equal_whatever_objects_they_are() -> None:
    again = [[dict(message) for message in prompt] for prompt in PROMPTS]
    assert golden_of(PROMPTS).difference(golden_of(again)) == ""
