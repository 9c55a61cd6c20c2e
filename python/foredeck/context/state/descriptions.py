"""Nicknames, views and summaries given by the user.

View and summaries are part of the object; a nickname is a claim of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.errors import ToolError
from foredeck.model.documents import HASHES, SUMMARIES, Document, Provenance, summary_hash_name
from foredeck.model.kinds import kind_of
from foredeck.model.records import NicknameDocument, by_foredeck, nickname_id
from foredeck.model.sources import path_of
from foredeck.sources.snapshots import CAPTURED, FileSnapshot
from foredeck.store.protocol import Batch, Head, retry_on_conflict
from foredeck.store.store import Store

DESCRIBED = ("file", "toolcall", "user", "pointer", "compaction")
"""Types that can be described."""

MOST_CHARS: Mapping[str, int] = {"short_summary": 300, "long_summary": 20_000}

TYPES_OWN = "default"
"""Names the view of the object's type."""

_NEVER_SHOWN = frozenset(
    {*HASHES, *map(summary_hash_name, SUMMARIES), "content", "identity_hash", "view", "locked"}
)


@dataclass(frozen=True, slots=True)
class Description:
    """Changes to an object's description; None leaves a field as it is.

    A short summary joins the object's view if it has none.
    """

    short_summary: str | None = None
    long_summary: str | None = None
    view: Sequence[str] | None = None


def view_of(type: str, fields: Mapping[str, Any]) -> list[str]:
    """The object's own view, or its type's."""
    view = fields.get("view")
    return list(kind_of(type).metadata_fields if view is None else view)


def describe_object(store: Store, object: Head, given: Description) -> bool:
    """Describes an object; returns whether that changed it. Raises `ToolError` that names what
    would be accepted."""
    if object.type not in DESCRIBED:
        raise ToolError(
            f"A {object.type} cannot be described, only: {', '.join(DESCRIBED)}. Its lines follow "
            "from what it holds."
        )

    def attempt() -> bool:
        head = store.head(object.id)
        document = None if head is None else store.get(object.id, kind_of(object.type), head.token)
        if head is None or document is None:
            raise ToolError(f"{object.type} {object.id} is not stored any more.")
        before = document.content_hash
        _apply(document, given)
        if document.seal().content_hash == before:
            return False
        if document.type == "file":
            # What an agent or a command has done to the file is in the version before.
            document.provenance = _described(document.provenance)
            document.seal()
        store.commit(Batch(puts=[document], expect={document.id: head.token}))
        return True

    busy = ToolError(f"{object.type} {object.id} is being changed all the time: try again.")
    return retry_on_conflict(attempt, busy)


def _described(before: Provenance) -> Provenance:
    extra = {CAPTURED: True} if CAPTURED in (before.model_extra or {}) else {}
    return Provenance(origin="name", generator="human", parent_refs=before.parent_refs, **extra)


def viewable(kind: type[Document], fields: Mapping[str, Any]) -> list[str]:
    """Fields that a view may name: the type's, and short ones."""
    short = (str, int, float, bool)
    others = [
        n for n, value in fields.items() if isinstance(value, short) and n not in _NEVER_SHOWN
    ]
    names = [*kind.metadata_fields, *SUMMARIES, *others]
    return [name for name in dict.fromkeys(names) if name not in ("id", "type")]


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
    accepted = viewable(type(document), fields)
    for name in names:
        if name not in accepted:
            near = difflib.get_close_matches(name, accepted, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ToolError(
                f"A {document.type} has no field {name!r} to show.{hint} There are: "
                f"{', '.join(accepted)}; {TYPES_OWN} for those of its type."
            )
    return names


NICKNAME_CHARS = 100

_NOT_A_NAME = re.compile(r"@|\d+$|v\d+$|.*[\s:/\\]|[0-9a-f]{12,64}$")


def nicknames(store: Store) -> dict[str, str]:
    """Nicknames by object id."""
    # Two engines may have given an object two names at the same moment: the later one counts.
    claims = sorted(store.query("nickname"), key=lambda claim: claim.time_ms)
    owned = ((claim.fields.get("object"), claim) for claim in claims)
    return {owner: _name_in(claim) for owner, claim in owned if owner is not None}


def give_nickname(store: Store, object: Head, name: str) -> bool:
    """Makes `name` the object's nickname and frees its previous one; returns whether anything
    changed.

    Raises `ToolError` if the name is unfit or taken.
    """
    if not name or len(name) > NICKNAME_CHARS or _NOT_A_NAME.match(name):
        raise ToolError(
            f"{name!r} cannot be a nickname: use letters, digits, - _ and . (at most "
            f"{NICKNAME_CHARS}), and nothing that looks like a handle, a version, an id or a path."
        )

    def attempt() -> bool:
        claim = store.head(nickname_id(name))
        owner = None if claim is None else claim.fields.get("object")
        if owner is not None and owner != object.id:
            other = store.head(owner)
            called = (path_of(other.fields) if other else None) or owner
            raise ToolError(f"The name {name!r} belongs to another object, {called}.")
        others = [
            old_claim
            for old_claim in _claims_of(store, object.id)
            if old_claim.id != nickname_id(name)
        ]
        if owner == object.id and not others:
            return False
        by_user = Provenance(origin="name", generator="human")
        batch = Batch(expect={nickname_id(name): claim.token if claim else None})
        batch.puts.append(_claim(name, object.id, by_user))
        for old_claim in others:
            batch.puts.append(_claim(_name_in(old_claim), None, by_user))
            batch.expect[old_claim.id] = old_claim.token
        store.commit(batch)
        return True

    busy = f"{object.type} {object.id} is being named by others all the time: try again."
    return retry_on_conflict(attempt, ToolError(busy))


def moved_claims(
    store: Store, snapshots: Iterable[FileSnapshot]
) -> list[tuple[NicknameDocument, Head]]:
    """Nickname claims that move with renamed files, each with the one before; a target's own
    stays."""
    documents = (snapshot.document for snapshot in snapshots)
    moves = {d.id: d.moved_to for d in documents if d is not None and d.moved_to is not None}
    return [
        (_claim(_name_in(claim), target, by_foredeck()), claim)
        for id, target in moves.items()
        if not _claims_of(store, target)
        for claim in _claims_of(store, id)
    ]


def _claims_of(store: Store, id: str) -> list[Head]:
    return store.query("nickname", {"object": id})


def _claim(name: str, owner: str | None, by: Provenance) -> NicknameDocument:
    return NicknameDocument(id=nickname_id(name), object=owner, provenance=by).seal()


def _name_in(claim: Head) -> str:
    return claim.id.removeprefix(nickname_id(""))
