"""docs/objects.md names every type of document, each with all its fields and its view."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foredeck.model.documents import Document
from foredeck.model.kinds import KINDS

PAGE = Path(__file__, "../../../docs/objects.md").resolve().read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*)$", PAGE, re.MULTILINE))
COMMON = frozenset(Document.model_fields)
WORDS = {"toolcall": "tool call", "system_prompt": "system prompt", "user": "user's text"}
WORDS |= {"working": "page of working memory", "memory": "entry of memory"}


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


@pytest.mark.parametrize("type", KINDS)
def test_the_page_names_the_fields_of_a_type(type: str) -> None:
    assert type in ROWS, "give it a row in docs/objects.md"
    missing = set(KINDS[type].model_fields) - COMMON - names(ROWS[type])
    assert not missing, "name these fields in its row in docs/objects.md"


def test_the_page_names_no_type_that_is_none() -> None:
    tables = PAGE.partition("## What an object is bound to")[0]
    assert re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE) == list(
        dict.fromkeys(type for type in ROWS if type in KINDS)
    )


@pytest.mark.parametrize("type", [type for type, kind in KINDS.items() if kind.metadata_fields])
def test_the_page_names_the_view_of_a_type(type: str) -> None:
    views = ROWS["metadata_view_hash"]
    shown = re.findall(rf"([^;]*?) of an? {WORDS.get(type, type)}\b", views)
    assert names(shown[0].rpartition("else ")[2]) == set(KINDS[type].metadata_fields)
