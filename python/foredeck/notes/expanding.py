"""Expanding references: objects with their content or metadata, in one fixed order and a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foredeck.errors import Corrupt, Missing
from foredeck.model.kinds import kind_of
from foredeck.notes.graph import EVERYTHING, Edge, Graph, Node, Selection
from foredeck.notes.pinned import NotAsRecorded, pinned_head
from foredeck.store.protocol import Store, Token

LONGEST_FENCE = 3


@dataclass(frozen=True, slots=True)
class Expanded:
    """One object of an expansion. `content`: None where only metadata was asked for or fits, and
    for what has no text. `token`: the version, where a static reference fixed it.

    `note` says why there is no content, in words; empty where there is.
    """

    node: Node
    distance: int
    tags: list[str]
    content: str | None
    token: str | None
    note: str


def expand(
    store: Store,
    graph: Graph,
    ids: Sequence[str],
    *,
    depth: int = 0,
    budget: int,
    content: bool = True,
    selection: Selection = EVERYTHING,
) -> list[Expanded]:
    """The objects, then what they refer to, the nearest first; each once.

    `budget` is in characters of content: an object whose content does not fit whole stands with
    its metadata, and those after it still get their turn. What a static reference led to is the
    version that was recorded, and is verified against its hashes.
    """
    found = []
    left = budget
    for node, distance, edge in _reached(graph, ids, depth, selection):
        text, token, note = _text(store, node, edge, content)
        size = len(text or "")
        if size > left:
            text, note = None, f"{size:,} characters: over the budget"
        else:
            left -= size
        found.append(Expanded(node, distance, graph.tags_of(node.id), text, token, note))
    return found


def _reached(
    graph: Graph, ids: Iterable[str], depth: int, selection: Selection
) -> list[tuple[Node, int, Edge | None]]:
    """What references lead to, breadth first, in the order in which they are written; each with
    the reference that led to it first."""
    ring = [node for id in dict.fromkeys(ids) if (node := graph.node(id)) is not None]
    found: dict[str, tuple[Node, int, Edge | None]] = {n.id: (n, 0, None) for n in ring}
    for distance in range(1, depth + 1):
        edges = [edge for node in ring for edge in graph.links(node.id)]
        ring = []
        for edge in edges:
            node = graph.node(edge.target)
            if node is not None and node.id not in found and _is_wanted(node, edge, selection):
                found[node.id] = (node, distance, edge)
                ring.append(node)
    return list(found.values())


def _is_wanted(node: Node, edge: Edge, selection: Selection) -> bool:
    by_type = not selection.types or node.type in selection.types
    return by_type and (not selection.relations or edge.reference.relation in selection.relations)


def _text(
    store: Store, node: Node, edge: Edge | None, wanted: bool
) -> tuple[str | None, Token | None, str]:
    """Content, the version where a static reference fixed it, and why there is no content."""
    token = None
    try:
        pinned = None if edge is None else pinned_head(store, edge)
        token = None if pinned is None else pinned.token
        head = pinned or store.head(node.id)
        if head is None:
            return None, token, "not stored"
        document = store.get(node.id, kind_of(head.type), head.token) if wanted else None
    except (Corrupt, Missing, NotAsRecorded) as error:
        return None, token, str(error)
    if document is None or document.content is None:
        return None, token, str(head.fields.get("state") or "no text") if wanted else ""
    return document.content, token, ""


def as_markdown(found: Iterable[Expanded]) -> str:
    """An expansion as one Markdown text: a heading for each object, its content in a fence."""
    return "\n".join(_section(item) for item in found)


def _section(item: Expanded) -> str:
    node = item.node
    lines = [f"## {_one_line(node.path or f'{node.type} {node.id}')}", ""]
    facts = [f"title: {_one_line(node.title)}", f"id: {node.id}"]
    facts += [f"tags: {', '.join(f'#{tag}' for tag in item.tags)}"] if item.tags else []
    facts += [f"version: {item.token}"] if item.token else []
    facts += [f"content: {item.note}"] if item.note else []
    lines += [*(f"- {fact}" for fact in facts), ""]
    if item.content is not None:
        fence = _fence(item.content)
        lines += [fence, item.content.removesuffix("\n"), fence, ""]
    return "\n".join(lines)


def _fence(text: str) -> str:
    """A fence that no run of backticks in the text ends."""
    length = LONGEST_FENCE
    while "`" * length in text:
        length += 1
    return "`" * length


def _one_line(text: str) -> str:
    return " ".join(text.split())
