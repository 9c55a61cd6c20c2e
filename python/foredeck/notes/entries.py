"""Which fields hold references, and links said in chats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

from foredeck.model.documents import PASTE_CHARS, Fields, session_object_id, user_object_id
from foredeck.model.identity import decode_text, hash_text
from foredeck.model.records import TurnDocument
from foredeck.model.sources import filesystem_source, pointer_label
from foredeck.notes.markdown import parse_note
from foredeck.notes.named_parts import anchors_of
from foredeck.notes.parsed import (
    MARKDOWN,
    MENTIONS,
    WIKILINK,
    Name,
    ParsedNote,
    Rank,
    Reference,
    exact_key,
    handle_key,
    names_of_path,
    word_key,
)
from foredeck.store.protocol import Head, portions
from foredeck.store.store import Store

READS = "reads"
TOUCHES = "touches"
WITHIN = "within"
RELATED = "related"
PARENT = "parent"
DERIVED_FROM = "derived-from"
FOLLOWS = "follows"
PASTED = "pasted"

Holds = Literal["ids", "sessions", "version", "typed", "markdown"]
"""Object ids, session ids, a `VersionRef`, mappings with their own relations, or text with
links."""


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A field with references, and their relation."""

    name: str
    relation: str
    """Unless the reference says it."""
    holds: Holds = "ids"
    key: str = "object"
    """Key of the id in mappings, beside `relation`."""

    def target(self, value: str) -> str:
        """The object id of a value."""
        return session_object_id(value) if self.holds == "sessions" else value


_DERIVED = ReferenceField("provenance.parent_refs", DERIVED_FROM)

# A new type of document is added here. Not in here are Markdown files, whose references are parsed
# out of their text and frontmatter, and links in the messages of a chat (`links_of_turns`).
REFERENCE_FIELDS: Mapping[str, tuple[ReferenceField, ...]] = {
    "toolcall": (
        ReferenceField("file_version_ref", READS, "version"),
        ReferenceField("file_refs", TOUCHES),
        ReferenceField("parent_ref", PARENT),
        ReferenceField("chat_ref", WITHIN),
        _DERIVED,
    ),
    "chat": (ReferenceField("session_ref", WITHIN),),
    "system_prompt": (ReferenceField("session_ref", WITHIN),),
    "compaction": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
    ),
    "observation": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "reflection": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "task": (
        ReferenceField("content", MENTIONS, "markdown"),
        ReferenceField("summary", MENTIONS, "markdown"),
        ReferenceField("dependencies", RELATED, "typed", key="on"),
        ReferenceField("links", RELATED, "typed"),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "session": (
        ReferenceField("parent_session", DERIVED_FROM, "sessions"),
        ReferenceField("started_by", PARENT, "sessions"),
    ),
}
"""By type; files derive from their old names, which `resolving.py` follows."""

CONTAINED = ("toolcall_ids", "turns")
"""Known from calls and turns that name the chat."""


def is_reference_field(type: str, name: str) -> bool:
    """Whether a type's field holds only references."""
    if type == "chat" and name.partition("[")[0] in CONTAINED:
        return True
    fields = REFERENCE_FIELDS.get(type, ())
    return any(field.name == name and field.holds != "markdown" for field in fields)


OBJECTS = frozenset(
    {"file", "toolcall", "user", "pointer", "chat", "task", "compaction"}
    | {"system_prompt", "session", "observation", "reflection"}
)
"""Types that are nodes."""

NAMING = frozenset({"nickname", "member"})
"""Types that name other objects."""


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A version's part of the graph.

    `target`: a moved file's successor. `pins`: versions of static references. `anchors`: what links
    can name.
    """

    id: str
    type: str
    target: str | None
    title: str = ""
    path: str | None = None
    filesystem: str | None = None
    gone: bool = False
    moved_to: str | None = None
    names: list[Name] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    pins: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    markdown: ParsedNote | None = None
    anchors: frozenset[str] = frozenset()


def has_text(type_: str, fields: Fields) -> bool:
    """Whether a version's content is Markdown, or text with links."""
    markdown = type_ == "file" and fields.get("file_type") in MARKDOWN
    linking = any(field_.name == "content" for field_ in REFERENCE_FIELDS.get(type_, ()))
    return (markdown or linking) and fields.get("text_hash") is not None


def entry_of(
    id: str, type_: str, fields: Fields, text: str | None, *, set_aside: bool = False
) -> GraphEntry | None:
    """A version's part of the graph; None for other types.

    `set_aside`: reading failed before, so only properties are read.
    """
    if type_ == "file":
        return _file(id, fields, text, set_aside)
    if set_aside:
        text = None
    if type_ == "nickname":
        nickname = id.partition(":")[2]
        return GraphEntry(id, type_, fields["object"], names=[_word(nickname, Rank.NICKNAME)])
    if type_ == "member":
        handle = Name(handle_key(fields["ordinal"]), Rank.HANDLE, fields["session"])
        return GraphEntry(id, type_, fields["object"], names=[handle])
    if type_ in OBJECTS:
        return _with_fields(id, type_, {**fields, "content": text} if text else fields)
    return None


def _file(id: str, fields: Fields, text: str | None, set_aside: bool) -> GraphEntry:
    binding = filesystem_source(fields)
    filesystem, path = (None, None) if binding is None else (binding.filesystemId, binding.path)
    gone, moved_to = fields.get("state") == "deleted", fields.get("moved_to")
    # What a note said as of a commit, or in a history, was said of other notes, and under a title
    # that it still has.
    is_past = binding is None and fields["source"].get("type") in ("git", "history")
    is_read = text is not None and not is_past
    parsed = parse_note(text or "", properties_only=set_aside) if is_read else None
    names = [Name(exact_key(id), Rank.EXACT, id)]
    if not gone:
        names.append(_word(id, Rank.ID))
    if filesystem is not None and path is not None and (moved_to or not gone):
        names += names_of_path(filesystem, path)
    title = pointer_label(fields) or (path or f"file {id}").rpartition("/")[2]
    if parsed is not None:
        title = parsed.title or title.rpartition(".")[0]
        titles = dict.fromkeys(word for word in (parsed.title, *parsed.aliases) if word)
        names += [_word(word, Rank.TITLE) for word in titles]
    return GraphEntry(
        id,
        "file",
        moved_to or id if gone else id,
        title=title,
        path=path,
        filesystem=filesystem,
        gone=gone,
        moved_to=moved_to if gone else None,
        names=names,
        references=parsed.references if parsed else [],
        markdown=parsed,
        anchors=frozenset() if parsed is None else frozenset(anchors_of(text or "", parsed)),
    )


def _with_fields(id: str, type_: str, fields: Fields) -> GraphEntry:
    references: list[Reference] = []
    pins: dict[int, Mapping[str, Any]] = {}
    for field_ in REFERENCE_FIELDS.get(type_, ()):
        value = _within(fields, field_.name)
        if field_.holds == "markdown":
            references += _written(value, field_)
        elif field_.holds == "version" and value:
            pins[len(references)] = value
            references.append(_recorded(value["object"], field_, "", value.get("version")))
        elif isinstance(value, str) and value:
            references.append(_recorded(field_.target(value), field_, ""))
        elif isinstance(value, list):
            pinned = {version_ref["object"] for version_ref in pins.values()}
            listed = (_listed(ref, field_, position) for position, ref in enumerate(value))
            references += [r for r in listed if r is not None and r.target not in pinned]
    title = _title(id, type_, fields)
    names = [Name(exact_key(id), Rank.EXACT, id), _word(id, Rank.ID)]
    return GraphEntry(id, type_, id, title, names=names, references=references, pins=pins)


def _listed(value: Any, field_: ReferenceField, position: int) -> Reference | None:
    """One of several references in a field, perhaps with its own relation."""
    at = f"[{position}]"
    if field_.holds == "typed" and isinstance(value, Mapping):
        id = value.get(field_.key)
        relation = value.get("relation")
        typed = replace(field_, relation=relation) if isinstance(relation, str) else field_
        return _recorded(id, typed, at) if isinstance(id, str) else None
    return _recorded(field_.target(value), field_, at) if isinstance(value, str) else None


def _within(fields: Fields, name: str) -> Any:
    if "." not in name:
        return fields.get(name)
    value: Any = fields
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _recorded(
    target: str, field_: ReferenceField, at: str, version: int | None = None
) -> Reference:
    where = f"{field_.name}{at}"
    return Reference(target, field_.relation, version=version, field=where, style="id")


def _written(value: Any, field_: ReferenceField) -> list[Reference]:
    if not isinstance(value, str) or "[" not in value:
        return []
    references = parse_note(value).references
    return [replace(r, relation=field_.relation, field=field_.name) for r in references]


def _title(id: str, type_: str, fields: Fields) -> str:
    if type_ == "toolcall":
        return f"{fields['tool']} {fields.get('args_display') or ''}".strip()
    title = fields.get("title")
    return title if isinstance(title, str) and title else f"{type_} {id}"


def _word(text: str, rank: Rank) -> Name:
    return Name(word_key(text), rank, text)


# Links in what is said in a chat, of many turns at once


TURN = "turn"

SPOKEN = frozenset({"user", "assistant"})
"""Roles whose texts are read: tool output is not said."""

CHUNK = 200
"""Turns whose messages are held at once."""

_BRACKETS, _LONG = b"[[", b'"$text"'
_Text = str | bytes
_Packed = str | dict[str, str]


@dataclass(frozen=True, slots=True)
class TurnLinks:
    """Links in a turn's messages; `number` counts turns from 1, over all branches."""

    session: str
    number: int
    references: list[Reference]


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    long: str | None


def links_of_turns(store: Store, turns: Sequence[Head]) -> Iterator[TurnLinks]:
    for part in portions(turns, CHUNK):
        messages = _spoken(store, {a for turn in part for _, a in _messages(turn)})
        for turn in part:
            number = int(turn.id.rpartition(":")[2])
            references = [
                replace(reference, field=f"turns[{number}].{field}")
                for field, address in _messages(turn)
                for reference in _references(field, messages.get(address))
            ]
            yield TurnLinks(turn.view(TurnDocument).session, number, references)


def links_in(said: str) -> list[Reference]:
    # Other links are left out: a chat lies in no folder from which their paths could lead.
    if WIKILINK.search(said) is None:
        return []
    wiki = [r for r in parse_note(said).references if r.style == "wiki"]
    return [replace(reference, relation=MENTIONS) for reference in wiki]


def _references(field: str, said: _Said | None) -> list[Reference]:
    if said is None:
        return []
    links = links_in(said.text)
    if said.long is not None and field == "user":
        links.append(Reference(user_object_id(hash_text(said.long)), PASTED, style="id"))
    return links


def _messages(turn: Head) -> Iterator[tuple[str, str]]:
    fields = turn.fields
    for position, address in enumerate(fields.get("others") or ()):
        yield f"others[{position}]", address
    for name in ("user", "assistant"):
        if fields.get(name):
            yield name, fields[name]


def _spoken(store: Store, addresses: Iterable[str]) -> dict[str, _Said]:
    # A chat has thousands of messages and few links: packed messages are only searched for two
    # brackets, as bytes. Long texts lie in blobs of their own, fetched together and searched in the
    # same way. Only what holds a link is parsed as notes are.
    packed = {
        address: texts
        for address, data in store.blobs(addresses).items()
        if (_BRACKETS in data or _LONG in data) and (texts := _texts(data))
    }
    digests = {
        text["$text"] for texts in packed.values() for text in texts if isinstance(text, dict)
    }
    long = store.blobs(digests)
    by_address = {}
    for address, texts in packed.items():
        parts = [t if isinstance(t, str) else long.get(t["$text"], b"") for t in texts]
        if any(len(part) >= PASTE_CHARS or _may_link(part) for part in parts):
            decoded = [_decoded(part) for part in parts]
            pasted = [text for text in decoded if len(text) >= PASTE_CHARS]
            by_address[address] = _Said("\n".join(decoded), pasted[0] if len(pasted) == 1 else None)
    return by_address


def _texts(data: bytes) -> list[_Packed]:
    try:
        message = json.loads(decode_text(data))
    except (ValueError, RecursionError):
        return []
    if not isinstance(message, dict) or message.get("role") not in SPOKEN:
        return []
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    spoken = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return [text for text in spoken if isinstance(text, str) or _is_long(text)]


def _is_long(text: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(text, dict) and isinstance(text.get("$text"), str)


def _may_link(text: _Text) -> bool:
    return _BRACKETS in text if isinstance(text, bytes) else "[[" in text


def _decoded(text: _Text) -> str:
    return decode_text(text) if isinstance(text, bytes) else text
