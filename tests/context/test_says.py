"""Messages of foredeck's own, as call records keep them."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.context.messages.items import text_block
from foredeck.context.plan.codec import pack_says, packed_span, unpack_says
from foredeck.context.plan.ops import MessageSpan, Say

TEXT = [text_block("a text")]
LONG = [text_block("a long text " * 1000)]

SPAN = MessageSpan(20, 40)
#: Each kind, with what a record holds of it beside its blocks.
STORED: list[tuple[Say, dict[str, Any]]] = [
    (Say("head", TEXT, head_tokens=200), {"head_tokens": 200}),
    (Say("layout", TEXT), {}),
    (Say("list_start", TEXT), {}),
    (Say("turn_end", TEXT), {}),
    (Say("summary", TEXT, MessageSpan(0, 40), "c1"), {"covers": [0, 40], "object": "c1"}),
    (Say("observation", TEXT, SPAN, "o1"), {"covers": [20, 40], "object": "o1"}),
    (Say("calls", TEXT, SPAN), {"covers": [20, 40]}),
    (Say("no_result", TEXT, call_id="t1", tool="bash"), {"call_id": "t1", "tool": "bash"}),
]


@pytest.mark.parametrize(("say", "kept"), STORED, ids=lambda each: getattr(each, "purpose", ""))
def test_a_record_keeps_what_each_is_for(say: Say, kept: dict[str, Any]) -> None:
    (packed,) = pack_says([say], {})
    assert packed == kept | {"purpose": say.purpose, "blocks": TEXT}
    assert unpack_says([packed], {}.__getitem__) == [say]
    assert packed_span(packed) == say.covers


def test_long_texts_are_kept_apart() -> None:
    blobs: dict[str, bytes] = {}
    packed = pack_says([Say("head", LONG, head_tokens=200)], blobs)
    assert len(blobs) == 1
    assert unpack_says(packed, blobs.__getitem__)[0].blocks == LONG
