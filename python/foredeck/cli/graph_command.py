"""`foredeck graph`: what refers to what, and the contents along references."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, fitted_table, print_content, print_json, table
from foredeck.cli.stored import opened_store
from foredeck.config import Config
from foredeck.context.state.stored_chat import inherited_turns
from foredeck.derived.follower import Follower
from foredeck.errors import CommandRefused
from foredeck.model.figures import counted
from foredeck.model.names import unlinked
from foredeck.model.quoting import name, one_line
from foredeck.names import find_object, find_session
from foredeck.notes.expanding import as_markdown, expand
from foredeck.notes.graph import Edge, Graph, Neighbourhood, Node, Selection
from foredeck.notes.layer import read_chats
from foredeck.store.store import Store


def run(args: Namespace) -> int:
    """`foredeck graph`."""
    if args.tags:
        return _tags(args)
    if not args.object:
        raise CommandRefused(
            "which object? Name one, or list all tags with `foredeck graph --tags`."
        )
    if (args.field or args.metadata) and not args.content:
        raise CommandRefused("--field and --metadata need --content")
    if args.content:
        return _content(args)
    if len(args.object) > 1:
        raise CommandRefused("several objects are for --content: name one")
    (args.object,) = args.object
    return _backlinks(args) if args.backlinks else _graph(args)


def _graph(args: Namespace) -> int:
    with opened_graph(args) as opened:
        id = asked_id(opened, args.object, args.session)
        depth = 1 if args.depth is None else args.depth
        neighbourhood = opened.graph.neighbours(id, depth, selection_of(args, args.tag), args.limit)
    nodes = [{**node.as_json(), "distance": distance} for node, distance in neighbourhood.nodes]
    edges = [edge.as_json() for edge in neighbourhood.edges]
    value = {"nodes": nodes, "edges": edges, "complete": neighbourhood.complete}
    return answer(args, value, lambda: _dot(neighbourhood) if args.dot else _lines(neighbourhood))


def _lines(found: Neighbourhood) -> Iterator[str]:
    more = "" if found.complete else "; there are more: raise --limit"
    edges = counted(len(found.edges), "reference")
    yield f"{counted(len(found.nodes), 'object')}, {edges} between them{more}.\n"
    rows = [(str(distance), node.type, _title(node)) for node, distance in found.nodes]
    yield fitted_table([("away", "type", "object"), *rows])


def _dot(found: Neighbourhood) -> str:
    lines = ["digraph notes {"]
    lines += [f"  {_quoted(n.id)} [label={_quoted(n.title)}];" for n, _ in found.nodes]
    for edge in found.edges:
        label = _quoted(edge.reference.relation)
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={label}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{plain}"'


def _backlinks(args: Namespace) -> int:
    with opened_graph(args) as opened:
        id = asked_id(opened, args.object, args.session)
        chosen = selection_of(args)
        edges = [
            (edge, node)
            for edge in opened.graph.backlinks(id)
            if (node := opened.graph.node(edge.source)) is not None
            and (not chosen.types or node.type in chosen.types)
            and (not chosen.relations or edge.reference.relation in chosen.relations)
        ]
        target = opened.graph.node(id)
    sources = {node.id: node.as_json() for _, node in edges}
    value = {"nodes": list(sources.values()), "edges": [edge.as_json() for edge, _ in edges]}
    lines = [f"{counted(len(edges), 'reference')} to {shown(target) if target else id}."]
    if edges:
        rows = [(*_place(edge), shown(node)) for edge, node in edges]
        lines += ["", fitted_table([("relation", "where", "in"), *rows])]
    return answer(args, value, lines)


def _place(edge: Edge) -> tuple[str, str]:
    reference = edge.reference
    span = f" {reference.start}-{reference.end}" if reference.end else ""
    kind = f"{reference.relation}{' (static)' if reference.static else ''}"
    return kind, f"{reference.field}{span}"


def _tags(args: Namespace) -> int:
    with opened_graph(args) as opened:
        tags = opened.graph.tags()
    value = {"tags": [{"tag": name, "files": count} for name, count in tags]}
    rows = [(f"#{name}", str(count)) for name, count in tags]
    head = [table(rows) + "\n"] if rows else []
    return answer(args, value, [*head, f"{counted(len(tags), 'tag')}."])


def _content(args: Namespace) -> int:
    with opened_graph(args) as opened:
        ids = [asked_id(opened, text, args.session) for text in args.object]
        found = expand(
            opened.store,
            opened.graph,
            ids,
            depth=args.depth or 0,
            budget=args.budget,
            content=not args.metadata,
            selection=selection_of(args),
            field=args.field,
            inherited=lambda session: inherited_turns(opened.store, session).turns,
        )
    if not args.json:
        print_content(as_markdown(found))
        return 0
    objects = [
        {
            **item.node.as_json(),
            "distance": item.distance,
            "tags": item.tags,
            "version": item.token,
            "content": item.content,
            "note": item.note or None,
            **({"metadata": item.metadata} if args.metadata else {}),
        }
        for item in found
    ]
    print_json({"objects": objects})
    return 0


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """A command's store with its graph."""

    config: Config
    store: Store
    graph: Graph


@contextmanager
def opened_graph(args: Namespace) -> Iterator[OpenGraph]:
    """The graph of the configured store, up to date."""
    config = resolve_config(args).config
    with opened_store(args) as store, Follower(store, "notes", config.home) as follower:
        with Progress("reading notes, batch") as progress:
            follower.catch_up(progress.advance)
        with Progress("reading chats, batch") as progress:
            read_chats(follower, store, progress.advance)
        yield OpenGraph(config, store, Graph(follower.db))


def asked_id(opened: OpenGraph, text: str, session: str | None) -> str:
    """The id of the object that a user names. Raises `NotFound`, with the candidates."""

    titled = partial(opened.graph.titled, opened.store)
    session_id = None if session is None else find_session(opened.store, session)
    return find_object(opened.store, unlinked(text), session_id, titled).id


def selection_of(args: Namespace, tag: str | None = None) -> Selection:
    """What to follow, by the arguments."""
    return Selection(frozenset(args.type), frozenset(args.relation), tag)


def shown(node: Node) -> str:
    """What a user would call an object."""
    return _title(node) if node.path else f"{node.type} {_title(node)}"


def _title(node: Node) -> str:
    untitled = node.title == f"{node.type} {node.id}"
    return name(node.path) if node.path else one_line(node.id if untitled else node.title)
