"""What describes an object while its content is not loaded: its view and its summaries.

A user gives them. They belong to the object, so that describing it makes a version; its content,
its handle, and what was sent of it stay as they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.errors import Conflict, ToolError
from foredeck.model.documents import HASHES, SUMMARIES, Document, summary_hash_name
from foredeck.model.kinds import kind_of
from foredeck.store.protocol import ATTEMPTS, Batch, Head, Store

DESCRIBED = ("file", "toolcall", "user", "pointer", "compaction")
"""The types that can be described; of all others foredeck writes every version itself."""

MOST_CHARS: Mapping[str, int] = {"short_summary": 300, "long_summary": 20_000}
TYPES_OWN = "default"
"""In place of a view: the one of the object's type."""
_NEVER_SHOWN = frozenset(
    {*HASHES, *map(summary_hash_name, SUMMARIES), "content", "identity_hash", "view", "locked"}
)


@dataclass(frozen=True, slots=True)
class Description:
    """What is to be changed of an object: None leaves it as it is.

    An empty summary takes it away. A short one joins the view of an object that has none of its
    own, since it would not be seen otherwise.
    """

    short_summary: str | None = None
    long_summary: str | None = None
    view: Sequence[str] | None = None


def view_of(type: str, fields: Mapping[str, Any]) -> list[str]:
    """The fields that describe an object: its own view, else that of its type."""
    view = fields.get("view")
    return list(kind_of(type).metadata_fields if view is None else view)


def describe_object(store: Store, object: Head, given: Description) -> bool:
    """Give an object a description; returns whether that has changed anything.

    Raises `ToolError` where the object cannot have it, and says what would do.
    """
    if object.type not in DESCRIBED:
        raise ToolError(
            f"A {object.type} cannot be described, only: {', '.join(DESCRIBED)}. Its lines follow "
            "from what it holds."
        )
    for _ in range(ATTEMPTS):
        head = store.head(object.id)
        document = None if head is None else store.get(object.id, kind_of(object.type), head.token)
        if head is None or document is None:
            raise ToolError(f"{object.type} {object.id} is not stored any more.")
        before = document.content_hash
        _apply(document, given)
        if document.seal().content_hash == before:
            return False
        try:
            store.commit(Batch(puts=[document], expect={document.id: head.token}))
            return True
        except Conflict:
            continue  # the file has changed meanwhile: describe the version that it has now
    raise ToolError(f"{object.type} {object.id} is being changed all the time: try again.")


def _apply(document: Document, given: Description) -> None:
    for name in SUMMARIES:
        text = getattr(given, name)
        if text is not None:
            setattr(document, name, _checked(name, text.strip()) or None)
    fields = document.model_dump(exclude={"content"})
    if given.view is not None:
        own = list(given.view) == [TYPES_OWN]
        document.view = None if own else _checked_view(document, fields, given.view)
    elif given.short_summary and document.view is None:
        document.view = [*type(document).metadata_fields, "short_summary"]


def _checked(name: str, text: str) -> str:
    most = MOST_CHARS[name]
    what = name.replace("_", " ")
    if len(text) > most:
        raise ToolError(f"A {what} has {most:,} characters at most: this one has {len(text):,}.")
    if name == "short_summary" and "\n" in text:
        raise ToolError("A short summary is one line. A long summary may have several.")
    return text


def _checked_view(document: Document, fields: Mapping[str, Any], view: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in view if name.strip()))
    known = viewable(type(document), fields)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ToolError(
                f"A {document.type} has no field {name!r} to show.{hint} There are: "
                f"{', '.join(known)}; {TYPES_OWN} for those of its type."
            )
    return names


def viewable(kind: type[Document], fields: Mapping[str, Any]) -> list[str]:
    """Names that a view may have: fields of a type, and others that say something short."""
    short = (str, int, float, bool)
    others = [
        n for n, value in fields.items() if isinstance(value, short) and n not in _NEVER_SHOWN
    ]
    names = [*kind.metadata_fields, *SUMMARIES, *others]
    return [name for name in dict.fromkeys(names) if name not in ("id", "type")]
