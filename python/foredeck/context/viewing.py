"""The fields that stand for an object which has a view of its own, as the model reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foredeck.model.quoting import name as named
from foredeck.model.quoting import quoted
from foredeck.model.short_texts import cut

FIELD_WORDS = {
    "char_count": "chars",
    "file_type": "type",
    "line_count": "lines",
    "args_display": "args",
    "nickname": "name",
    "short_summary": "summary",
}
"""What the model reads for the names of some fields in a line of metadata."""

VIEWED_CHARS = 400
"""Most characters that such a line shows of one field."""


def viewed_fields(fields: Mapping[str, Any], view: Sequence[str]) -> Iterator[str]:
    """The fields of a view, those that are empty left out. That a file has no text always shows."""
    for name in view:
        value = fields.get(name)
        if value is None or value == "":
            continue
        if name == "path":
            yield named(str(value))
        elif isinstance(value, str):
            yield f"{FIELD_WORDS.get(name, name)}={quoted(cut(value, VIEWED_CHARS))}"
        else:
            yield f"{FIELD_WORDS.get(name, name)}={json.dumps(value)}"
    if fields.get("state", "text") != "text" and "state" not in view:
        yield str(fields["state"])
