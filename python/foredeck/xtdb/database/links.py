"""What a version refers to and is referred to by, as attributes that Datalog can follow.

Values of `file_refs` and `toolcall_ids` are XTDB's ids of the objects. `references` and `names`
hold the keys of the graph (`notes/names.py`): an object refers to another where one of its
references is among the other's names. A query joins them in either direction, and through cycles by
a rule.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from foredeck.notes.entries import entry_of, has_text
from foredeck.notes.names import keys_of
from foredeck.xtdb.database.client import Doc
from foredeck.xtdb.database.names import XtdbNames, lookup_value

log = logging.getLogger(__name__)

OBJECTS = ("file_refs", "toolcall_ids")
"""Fields that list ids of objects."""
KEYS = ("references", "names")
MOST = 1000
"""Values of one attribute: of a note with more links the first count."""


def link_attributes(names: XtdbNames, fields: Mapping[str, Any]) -> Doc:
    """The attributes of a version; `fields` with its content. What has no links has none."""
    found: dict[str, list[str]] = {}
    for name in OBJECTS:
        ids = fields.get(name)
        if isinstance(ids, list):
            found[name] = _some(names.document(id) for id in ids if isinstance(id, str))
    found["references"], found["names"] = _keys(fields)
    return {names.attribute(name): values for name, values in found.items() if values}


def standing_links(names: XtdbNames, doc: Mapping[str, Any] | None) -> Doc:
    """The same of a version that is in XTDB already, whose content is not at hand."""
    attributes = map(names.attribute, (*OBJECTS, *KEYS))
    return {key: doc[key] for key in attributes if doc is not None and key in doc}


def _keys(fields: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    try:
        text = fields.get("content") if has_text(fields["type"], fields) else None
        entry = entry_of(fields["id"], fields["type"], fields, text)
    except (AttributeError, KeyError, TypeError, ValueError):
        # Another version of foredeck wrote it. A transaction must be stored all the same.
        log.warning("no links are kept of %s: its fields are not as expected", fields.get("id"))
        return [], []
    if entry is None:
        return [], []
    keys = (keys_of(reference, entry.filesystem, entry.path) for reference in entry.references)
    return (
        _some(lookup_value(key) for several in keys for key in several),
        _some(lookup_value(name.key) for name in entry.names),
    )


def _some(values: Iterable[str]) -> list[str]:
    """Each once, in their order, as many as are kept."""
    return list(dict.fromkeys(values))[:MOST]
