"""The model's tools explain themselves, at a price that every prompt pays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.context.cache.economics import DEFINITION_CHARS

TOOLS = Path(__file__).parents[1] / "ts-shim" / "tools.json"
MOST_TOKENS = 240
CHARS_PER_TOKEN = 4
"""As the replay estimates for English and JSON."""


@pytest.fixture
def definitions() -> list[dict[str, Any]]:
    """The four tools, as Anthropic gets them."""
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["parameters"],
        }
        for tool in json.loads(TOOLS.read_text())
    ]


def test_what_a_model_reads(definitions: list[dict[str, Any]], snapshot: SnapshotAssertion) -> None:
    assert "\n".join(f"{tool['name']}: {tool['description']}" for tool in definitions) == snapshot


def test_the_definitions_take_what_every_prompt_is_charged_for_them(
    definitions: list[dict[str, Any]],
) -> None:
    """No more than 240 tokens, and exactly what costs and rebases reckon with."""
    chars = len(json.dumps(definitions, separators=(",", ":")))
    print(f"tool definitions: {chars} characters, {chars / CHARS_PER_TOKEN:.0f} tokens")
    assert chars / CHARS_PER_TOKEN <= MOST_TOKENS
    assert chars == DEFINITION_CHARS
