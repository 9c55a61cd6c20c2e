"""Summaries of an object: texts beside its content, each with a hash of its own.

A document has them only where some were given. One that was stored before there were
any is as it was, whatever fields of these names it has: without a hash nothing is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foredeck.model.canonical import hash_text

SUMMARIES = ("short_summary", "long_summary")
"""One line that says what the content is, and a longer text."""


def summary_hash_name(summary: str) -> str:
    """The field with a summary's hash."""
    return f"{summary}_hash"


def seal_summaries(fields: dict[str, Any]) -> None:
    """Give each summary among these fields its hash, and drop that of one which is gone."""
    for name in SUMMARIES:
        text = fields.get(name)
        if isinstance(text, str):
            fields[summary_hash_name(name)] = hash_text(text)
        else:
            fields.pop(summary_hash_name(name), None)


def damaged_summary(fields: Mapping[str, Any]) -> str | None:
    """The first summary that does not fit its hash; None where all do."""
    for name in SUMMARIES:
        text, digest = fields.get(name), fields.get(summary_hash_name(name))
        if digest is not None and (not isinstance(text, str) or hash_text(text) != digest):
            return name
    return None
