"""The graph of references, asked on behalf of a session, and objects by the titles in it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING

from foredeck.context.state.objects import Objects
from foredeck.errors import StoreUnavailable, ToolError
from foredeck.model.quoting import name as quote
from foredeck.model.sources import filesystem_source
from foredeck.notes import StillReading
from foredeck.notes.names import MARKDOWN
from foredeck.store.protocol import Head

if TYPE_CHECKING:  # imported with the first question, by `notes.live`
    from foredeck.notes.graph import Graph, Node

SHOWN = 5


@contextmanager
def asked_graph(objects: Objects) -> Iterator[Graph]:
    """The graph, up to date. Raises `ToolError` where there is none, or not yet."""
    if objects.open_graph is None:
        raise ToolError("References cannot be looked up here.")
    try:
        with objects.open_graph() as graph:
            yield graph
    except StillReading as error:
        raise ToolError("References are still being read for the first time: ask again.") from error
    except StoreUnavailable as error:
        raise ToolError(f"References cannot be looked up: {error}.") from error


def titled(objects: Objects, name: str, known: Container[str] | None = None) -> Head | None:
    """The Markdown file with this title, alias, or name without its extension, wherever it is, or
    other file of this name below the session's folder; None for none.

    `known`: ids of the only objects that count. Of several those below the session's folder go
    first. Raises `ToolError` that lists them where there are still several, and where none was
    found while the graph is not up to date.
    """
    if objects.open_graph is None:
        return None
    with asked_graph(objects) as graph:
        named = [n for n in graph.named(name) if known is None or n.id in known]
    nodes = [n for n in named if _is_below(n, objects.info.cwd) or _is_markdown(n)]
    if len(nodes) > 1:
        nodes = [n for n in nodes if _is_below(n, objects.info.cwd)] or nodes
    if len(nodes) > 1:
        shown = ", ".join(quote(name_of_node(objects, node)) for node in nodes[:SHOWN])
        more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
        raise ToolError(f"{name!r} is the name of several: {shown}{more}. Use a path.")
    return objects.store.head(nodes[0].id) if nodes else None


def name_of_node(objects: Objects, node: Node) -> str:
    """What the model can call an object: a file by its path, from the session's folder where it is
    below that; anything else by its handle or its id."""
    ordinal = objects.index.by_object.get(node.id)
    if node.path is None:
        return node.id if ordinal is None else f"@{ordinal}"
    head = objects.workspace.head(node.id)
    source = None if head is None else filesystem_source(head.fields)
    path = node.path if source is None else objects.source.agent_path(source)
    if objects.info.cwd and PurePath(path).is_relative_to(objects.info.cwd):
        return str(PurePath(path).relative_to(objects.info.cwd))
    return path


def _is_markdown(node: Node) -> bool:
    return node.path is not None and node.path.rpartition(".")[2].lower() in MARKDOWN


def _is_below(node: Node, folder: str) -> bool:
    return bool(folder) and node.path is not None and PurePath(node.path).is_relative_to(folder)
