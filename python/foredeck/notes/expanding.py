"""Expands references, in a fixed order within a budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from foredeck.errors import Corrupt, Missing, ToolError
from foredeck.model.documents import SUMMARIES, Document, chat_id
from foredeck.model.quoting import name, one_line
from foredeck.model.records import SAME_TRANSACTION, MemberDocument, TurnDocument, member_id
from foredeck.notes.entries import WITHIN
from foredeck.notes.graph import EVERYTHING, Edge, Graph, Node, Selection
from foredeck.notes.named_parts import field_text
from foredeck.notes.parsed import HANDLE
from foredeck.sources.snapshots import MOVED_FROM
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store

LONGEST_FENCE = 3
_TURNS = re.compile(
    r"(?P<turns>turns(?:\[(?P<turn>\d+)\](?P<message>\.(?:user|assistant|others)(?:\[\d+\])?)?)?)?"
    r"(?P<calls>(?:(?<=\])\.|\A)toolcall_ids(?:\[(?P<call>\d+)\])?)?"
)
"""Fields of a chat: `toolcall_ids`, `turns`, `turns[2]`, `turns[2].toolcall_ids[0]`,
`turns[2].user`."""
_FIELDS_OF_CHATS = "toolcall_ids, turns, turns[2], turns[2].toolcall_ids[0], turns[2].user"
InheritedTurns = Callable[[str], Sequence[Head]]
"""A fork's inherited turns, oldest first."""
_Reached = tuple[Node, int, Edge | None]
"""An object, its distance, and the first edge to it."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """`content`: None if only metadata fits; `token`: a static reference's version; `note`: why
    there is no content."""

    node: Node
    distance: int
    tags: list[str]
    content: str | None
    token: str | None
    note: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def expand(
    store: Store,
    graph: Graph,
    ids: Sequence[str],
    *,
    depth: int = 0,
    budget: int,
    content: bool = True,
    selection: Selection = EVERYTHING,
    field: str | None = None,
    inherited: InheritedTurns = lambda _session: (),
) -> list[Expanded]:
    """Objects, then what they refer to, nearest first.

    `field` starts from one field's references. `budget`: characters of content; others show
    metadata. Raises `ToolError` without that field.
    """
    results = []
    remaining = budget
    ring: list[_Reached] = [(n, 0, None) for id in ids if (n := graph.node(id)) is not None]
    if field is not None:
        in_field = partial(_in_field, store, graph, inherited, field)
        ring = [step for node, _, _ in ring for step in in_field(node)]
        ring = [step for step in ring if step[2] is None or _is_wanted(step[0], step[2], selection)]
    done_keys: set[tuple[str, str | None, str]] = set()
    for node, distance, edge in _reached(graph, ring, depth, selection):
        text, token, note, head = _text(store, node, edge, content)
        part = None if edge is None else edge.reference.part
        key = (node.id, part, note if head is None else head.token)
        if key in done_keys:
            continue  # a static reference to what a dynamic one led to, or the other way round
        done_keys.add(key)
        size = len(text or "")
        if size > remaining:  # those after it still get their turn: they may be shorter
            text, note = None, f"{size:,} characters: over the budget"
        else:
            remaining -= size
        about = {} if content or head is None else _about(head)
        results.append(Expanded(node, distance, graph.tags_of(node.id), text, token, note, about))
    return results


def _reached(
    graph: Graph, start: Sequence[_Reached], depth: int, selection: Selection
) -> list[_Reached]:
    by_key: dict[tuple[object, ...], _Reached] = {}
    for step in start:
        by_key.setdefault(_key(step[0], step[2]), step)
    ring = list({node.id: node for node, _, _ in by_key.values()}.values())
    for distance in range(1, depth + 1):
        edges = [edge for node in ring for edge in graph.links(node.id)]
        node_ids, ring = {node.id for node, _, _ in by_key.values()}, []
        for edge in edges:
            node = graph.node(edge.target)
            if node is None or not _is_wanted(node, edge, selection):
                continue
            if (key := _key(node, edge)) not in by_key:
                by_key[key] = (node, distance, edge)
                if node.id not in node_ids:
                    node_ids.add(node.id)
                    ring.append(node)
    return list(by_key.values())


def _key(node: Node, edge: Edge | None) -> tuple[object, ...]:
    if edge is None or not edge.reference.static:
        return node.id, None if edge is None else edge.reference.part
    version_ref = edge.version_ref or {}
    return (
        node.id,
        edge.reference.part,
        edge.reference.version,
        version_ref.get("token"),
        version_ref.get("content_hash"),
    )


def _in_field(
    store: Store, graph: Graph, inherited: InheritedTurns, field: str, owner: Node
) -> list[_Reached]:
    edges = links_in_field(graph, owner.id, field)
    calls = None
    if owner.type == "chat":
        calls = _calls_in(store, graph, inherited, field, owner.id)
    if calls is None and not edges:
        document = store.get(owner.id, Document)
        try:
            field_text(document, field, owner.path or owner.id, store.blob, may_be_empty=True)
        except ToolError as error:
            more = f" And it has {_FIELDS_OF_CHATS}." if owner.type == "chat" else ""
            raise ToolError(f"{error}{more}") from None
    if calls:
        nodes = (graph.node(id) for id in calls)
        ends: list[_Reached] = [(node, 0, None) for node in nodes if node is not None]
        return [*ends, *_at_ends(graph, edges)]
    return _at_ends(graph, edges)


def _calls_in(
    store: Store, graph: Graph, inherited: InheritedTurns, field: str, chat: str
) -> list[str] | None:
    """Tool calls in a chat's field; None for other fields."""
    session = chat.removeprefix(chat_id(""))
    match = _TURNS.fullmatch(field)
    if match is None:
        return None
    if match["calls"] and not match["turns"]:
        edges = [e for e in graph.backlinks(chat) if e.reference.relation == WITHIN]
        before = [id for turn in inherited(session) for id in turn.view(TurnDocument).toolcall_ids]
        calls = [*before, *_in_order(store, {e.source for e in edges})]
    else:
        turns = [*inherited(session), *_own_turns(store, session)]
        if match["turn"]:
            # Of a fork's turns those of its own go by the number, as links in them do.
            turns = [t for t in turns if t.id.rpartition(":")[2] == match["turn"]][-1:]
        if match["turn"] and not turns:
            raise ToolError(f"{chat} has no turn {match['turn']}.")
        calls = (
            []
            if match["message"]
            else [c for t in turns for c in t.view(TurnDocument).toolcall_ids]
        )
    calls = list(dict.fromkeys(calls))
    if match["call"]:
        calls = calls[int(match["call"]) :][:1]
        if not calls:
            raise ToolError(f"{chat} has no {field}.")
    return calls


def _own_turns(store: Store, session: str) -> list[Head]:
    turns = store.query("turn", {"session": session})
    return sorted(turns, key=lambda turn: int(turn.id.rpartition(":")[2]))


def _at_ends(graph: Graph, edges: Sequence[Edge]) -> list[_Reached]:
    nodes = (graph.node(edge.target) for edge in edges)
    return [(node, 0, edge) for node, edge in zip(nodes, edges, strict=True) if node is not None]


def links_in_field(graph: Graph, id: str, field: str) -> list[Edge]:
    """References in or within a field."""
    edges = []
    for edge in graph.links(id):
        name = edge.reference.field
        if name == field or name.startswith((f"{field}[", f"{field}.")):
            edges.append(edge)
    return edges


def _in_order(store: Store, calls: Collection[str]) -> list[str]:
    def place(head: Head) -> tuple[int, int, str]:
        turn = str(head.fields.get("turn_ref") or "").rpartition(":")[2]
        position = head.fields.get("position")
        return int(turn) if turn.isdecimal() else 0, position or 0, head.id

    heads = store.heads(calls).values()
    return [head.id for head in sorted(heads, key=place) if head.type == "toolcall"]


def _is_wanted(node: Node, edge: Edge, selection: Selection) -> bool:
    by_type = not selection.types or node.type in selection.types
    return by_type and (not selection.relations or edge.reference.relation in selection.relations)


def _text(
    store: Store, node: Node, edge: Edge | None, wanted: bool
) -> tuple[str | None, Token | None, str, Head | None]:
    """Content, version, why there is no content, and the head."""
    token = None
    try:
        pinned = None if edge is None else pinned_head(store, edge)
        token = None if pinned is None else pinned.token
        head = pinned or store.head(node.id)
        if head is None:
            return None, token, "not stored", None
        document = store.document(head) if wanted else None
    except (Corrupt, Missing, NotAsRecorded) as error:
        return None, token, str(error), None
    part = None if edge is None else edge.reference.part
    if document is not None and part is not None:
        try:
            return field_text(document, part, "it", store.blob), token, "", head
        except ToolError as error:
            return None, token, str(error), head
    if document is None or document.content is None:
        why = str(head.fields.get("state") or "no text") if wanted else ""
        return None, token, why, head
    return document.content, token, "", head


def _about(head: Head) -> dict[str, Any]:
    fields = head.fields
    came_of = {"tool": fields.get("tool"), "status": fields.get("status")}
    size = {"char_count": fields.get("char_count"), "size": fields.get("size")}
    about = {**came_of, "view": fields.get("view"), **size, **{n: fields.get(n) for n in SUMMARIES}}
    return {name: value for name, value in about.items() if value not in (None, "")}


def as_markdown(found: Iterable[Expanded]) -> str:
    """An expansion as Markdown: a heading per object, content in a fence."""
    return "\n".join(_section(item) for item in found)


def _section(item: Expanded) -> str:
    node = item.node
    lines = [f"## {name(node.path) if node.path else one_line(f'{node.type} {node.id}')}", ""]
    facts = [f"title: {one_line(node.title)}", f"id: {one_line(node.id)}"]
    facts += [f"tags: {one_line(', '.join(f'#{tag}' for tag in item.tags))}"] if item.tags else []
    facts += [f"version: {item.token}"] if item.token else []
    facts += [f"content: {item.note}"] if item.note else []
    for key, value in item.metadata.items():
        value_text = ", ".join(value) if isinstance(value, list) else str(value)
        facts.append(f"{key}: {one_line(value_text)}")
    lines += [*(f"- {fact}" for fact in facts), ""]
    if item.content is not None:
        fence = _fence(item.content)
        lines += [fence, item.content.removesuffix("\n"), fence, ""]
    return "\n".join(lines)


def _fence(text: str) -> str:
    # Else a text could end its own section and begin another one.
    length = LONGEST_FENCE
    while "`" * length in text:
        length += 1
    return "`" * length


_VERIFIED = ("content_hash", "text_hash", "metadata_view_hash")


class NotAsRecorded(ValueError):
    """A static reference's version is missing or differs."""


def pinned_head(store: Store, edge: Edge) -> Head | None:
    """A static reference's version without content; None for a dynamic one. Raises
    `NotAsRecorded`."""
    if not edge.reference.static:
        return None
    version_ref = edge.version_ref or _seen_version(store, edge)
    if version_ref is None:
        raise NotAsRecorded(f"{edge.reference.target} has no v{edge.reference.version}")
    token = str(version_ref["token"])
    if token == SAME_TRANSACTION:
        # It was recorded in the transaction that wrote the version, before that had a token.
        owner = store.head(edge.source)
        token = owner.token if owner is not None else token
    head = store.head(edge.target, Token(token))
    if head is None or any(
        head.fields.get(n) != version_ref[n] for n in _VERIFIED if n in version_ref
    ):
        raise NotAsRecorded("what is stored is not the version that was recorded")
    return head


def _seen_version(store: Store, edge: Edge) -> Mapping[str, Any] | None:
    """The version that `[[@12 v3]]` names, in a session that met the file."""
    handle = HANDLE.fullmatch(edge.reference.target)
    if handle is None:
        return None
    for session in _sessions(store, edge.source):
        id = member_id(session, int(handle["ordinal"]))
        for member in store.history(id):
            version_ref = member.fields["version_ref"]
            if (
                version_ref["version"] == edge.reference.version
                and version_ref["object"] == edge.target
            ):
                own = version_ref["token"] == SAME_TRANSACTION
                return {**version_ref, "token": member.token} if own else dict(version_ref)
    return None


def _sessions(store: Store, source: str) -> Iterator[str]:
    """Sessions whose handles `[[@12 v3]]` may mean."""
    if source.startswith(chat_id("")):
        yield source.removeprefix(chat_id(""))
        return
    new, visited = [source], set[str]()
    while new:
        id = new.pop()
        visited.add(id)
        for member in store.query("member", {"object": id}):
            yield member.view(MemberDocument).session
        head = store.head(id)
        parents = [] if head is None else head.view(Document).provenance.parent_refs
        before = [ref.removeprefix(MOVED_FROM) for ref in parents if ref.startswith(MOVED_FROM)]
        new += [id for id in before if id not in visited]
