"""docs/objects.md names every type of document, and its view."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foredeck.model.kinds import KINDS

PAGE = Path(__file__, "../../../docs/objects.md").resolve().read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*)$", PAGE, re.MULTILINE))
WORDS = {"toolcall": "tool call", "system_prompt": "system prompt", "user": "user's text"}
WORDS |= {"working": "page of working memory", "memory": "entry of memory"}


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_the_page_names_every_type_and_no_other() -> None:
    table = PAGE.partition("## Types")[2].partition("\n\nThe last four")[0]
    listed = [names(row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    assert set().union(*listed) == set(KINDS)


@pytest.mark.parametrize("type", [type for type, kind in KINDS.items() if kind.metadata_fields])
def test_the_page_names_the_view_of_a_type(type: str) -> None:
    views = ROWS["metadata_view_hash"]
    shown = re.findall(rf"([^;]*?) of an? {WORDS.get(type, type)}\b", views)
    assert names(shown[0].rpartition("else ")[2]) == set(KINDS[type].metadata_fields)
