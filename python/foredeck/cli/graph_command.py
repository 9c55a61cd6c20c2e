"""`foredeck graph` and `notes`: what refers to what, contents along references, broken links."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, fitted_table, print_content, print_json, table
from foredeck.cli.stored import opened_store
from foredeck.config import Config
from foredeck.context.state.stored_chat import inherited_turns
from foredeck.derived.follower import Follower
from foredeck.errors import CommandRefused
from foredeck.lookup.objects import version_text
from foredeck.lookup.reader import note_rule
from foredeck.model.figures import counted
from foredeck.model.names import unlinked
from foredeck.model.quoting import name, one_line
from foredeck.names import find_object, find_session
from foredeck.notes.expanding import as_markdown, expand
from foredeck.notes.graph import Edge, Graph, Neighbourhood, Node, Selection
from foredeck.notes.layer import read_chats
from foredeck.notes.parsed import Reference
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


# Notes


def run_notes(args: Namespace) -> int:
    """`foredeck notes`."""
    with opened_graph(args) as opened:
        if args.broken:
            return _broken(args, opened)
        listed, others = _listed(args, opened)
        tags = {node.id: opened.graph.tags_of(node.id) for node, _ in listed}
    notes = [{**n.as_json(), "note": is_note, "tags": tags[n.id]} for n, is_note in listed]
    rows = [
        (node.title, " ".join(f"#{tag}" for tag in tags[node.id]), shown(node))
        for node, _ in listed
    ]
    head = [table([("title", "tags", "file"), *rows]) + "\n"] if rows else []
    return answer(args, {"notes": notes}, [*head, _counted(args, len(listed), others)])


def _listed(args: Namespace, opened: OpenGraph) -> tuple[list[tuple[Node, bool]], int]:
    """The notes asked for, each with whether it is one, and how many are none."""
    rule = note_rule(opened.config)
    notes = [
        (node, rule.is_note(node.path or "", kind))
        for node, kind in opened.graph.markdown(args.tag)
    ]
    if args.orphans:
        orphans = opened.graph.orphans()
        notes = [(node, note) for node, note in notes if node.id in orphans]
    chosen = [(node, note) for node, note in notes if note or args.all]
    return chosen, len(notes) - len(chosen)


def _counted(args: Namespace, count: int, others: int) -> str:
    what = " that no other refers to" if args.orphans else ""
    with_tag = f" with #{args.tag.lstrip('#')}" if args.tag else ""
    more = f"; {counted(others, 'other Markdown file')}, with --all" if others else ""
    listed = "Markdown file" if args.all else "note"
    return f"{counted(count, listed)}{with_tag}{what}{more}."


def _broken(args: Namespace, opened: OpenGraph) -> int:
    references = list(opened.graph.unresolved())
    headings = list(opened.graph.missing_headings())
    problems = opened.graph.problems()
    value = {
        "broken": [
            {
                **_reference_as_json(item.source, item.reference),
                "candidates": [node.as_json() for node in item.candidates],
            }
            for item in references
        ],
        "headings": [
            {
                **_reference_as_json(item.source, item.reference),
                "heading": item.reference.heading,
                "to": item.target.id,
            }
            for item in headings
        ],
        "problems": [{**node.as_json(), "problems": said} for node, said in problems],
    }

    def lines() -> Iterator[str]:
        @cache
        def text(id: str) -> str:
            head = opened.store.head(id)
            return (version_text(opened.store, head)[0] if head else None) or ""

        def place(source: Node, reference: Reference) -> str:
            line = text(source.id).count("\n", 0, reference.start) + 1
            return f"{shown(source)}:{line}"

        for item in references:
            line = f"{place(item.source, item.reference)}: [[{item.reference.whole}]]"
            several = ", ".join(map(shown, item.candidates))
            yield f"{line} is {'ambiguous: ' + several if several else 'unknown'}"
        for lost in headings:
            line = f"{place(lost.source, lost.reference)}: {shown(lost.target)}"
            yield f"{line} has no #{lost.reference.heading or ''}"
        yield from (f"{shown(node)}: {problem}" for node, said in problems for problem in said)
        ambiguous = sum(1 for item in references if item.candidates)
        yield (
            f"{counted(len(references) - ambiguous, 'reference')} to something unknown, "
            f"{ambiguous:,} ambiguous, {len(headings):,} to a missing heading, "
            f"{counted(len(problems), 'file')} with problems."
        )

    return answer(args, value, lines())


def _reference_as_json(source: Node, reference: Reference) -> dict[str, Any]:
    place = {name: getattr(reference, name) for name in ("relation", "field", "start", "end")}
    return {"from": source.id, "path": source.path, "target": reference.whole, **place}


# What both use


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
