"""An object's metadata and links, also of tasks and memory entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foredeck.context import wording
from foredeck.context.rendering import described as fields_of_line
from foredeck.context.state.facilities import RecordReader
from foredeck.context.state.handles import Wanted, asked_graph, meet, name_of_node
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.state.stored_chat import inherited_turns
from foredeck.model.documents import Document
from foredeck.model.quoting import name, one_line, quoted
from foredeck.notes.entries import is_reference_field
from foredeck.notes.expanding import as_markdown, expand, links_in_field
from foredeck.notes.graph import Edge, Graph, Node, Unresolved
from foredeck.notes.named_parts import field_text, section_place
from foredeck.notes.parsed import CONTENT
from foredeck.store.store import Store
from foredeck.tasks.wording import task_by_name

SHOWS = ("content", "metadata", "links")
LISTED = 20
NAME_CHARS = 120
_MET = ("file", "pointer")


LINKS = "Refers to:"

BACKLINKS = "Referred to by:"


def refers(objects: Objects, wanted: Wanted) -> bool:
    """Whether a field of references is asked for, so that they are expanded."""
    field = wanted.field
    if field is None or wanted.slice is not None:
        return False
    if is_reference_field(wanted.entry.type, field):
        return True
    if not field.startswith("frontmatter."):
        return False
    with asked_graph(objects) as graph:
        return bool(links_in_field(graph, wanted.entry.object, field))


def described(objects: Objects, wanted: Wanted, show: str, limit: int) -> str:
    """The answer to `activate` with `show`, or for reference fields; `limit` in characters. Raises
    `ToolError`."""
    if show == "links":
        with asked_graph(objects) as graph:
            return _linked(objects, graph, wanted)
    if wanted.field is not None and refers(objects, wanted):
        with asked_graph(objects) as graph:
            expansion = expand(
                objects.store,
                graph,
                [wanted.entry.object],
                budget=limit,
                content=show == "content",
                field=wanted.field,
                inherited=lambda session: inherited_turns(objects.store, session).turns,
            )
        return as_markdown(expansion).rstrip("\n") or (
            f"{_name(wanted)} refers to nothing that is stored."
        )
    if wanted.field is not None:
        document = objects.store.get(wanted.entry.object, Document)
        name = wording.handle(wanted.entry.ordinal)
        text = field_text(document, wanted.field, name, objects.store.blob)
        return f"{_name(wanted)} chars={len(text)}"
    if wanted.section is not None:
        start, end = _section_place(objects.store, wanted)
        return f"{_name(wanted)} chars={end - start}"
    return _metadata(objects, wanted.entry)


def _name(wanted: Wanted) -> str:
    handle = wording.handle(wanted.entry.ordinal)
    if wanted.field is not None:
        return f"{handle}::{one_line(wanted.field)}"
    return handle if wanted.section is None else f"{handle}#{one_line(wanted.section)}"


def _metadata(objects: Objects, entry: Entry) -> str:
    return wording.object_line(entry.ordinal, fields_of_line(objects, entry.ordinal))


def _linked(objects: Objects, graph: Graph, wanted: Wanted) -> str:
    """Links to and from an object; of a part, those within it."""
    id = wanted.entry.object
    links, loose = graph.links(id), graph.unresolved_in(id)
    back = [] if wanted.is_part else graph.backlinks(id)
    if wanted.field is not None:
        links = links_in_field(graph, id, wanted.field)
        loose = [u for u in loose if u.reference.field == wanted.field]
    if wanted.section is not None:
        start, end = _section_place(objects.store, wanted)
        links = [e for e in links if _is_between(e.reference.start, e.reference.field, start, end)]
        loose = [u for u in loose if _is_between(u.reference.start, u.reference.field, start, end)]
    lines = [_heading(objects, graph, wanted)]
    lines += _listed(objects, graph, LINKS, [(e.target, e) for e in links])
    lines += _listed(objects, graph, BACKLINKS, [(e.source, e) for e in back])
    lines += [_loose(objects, item) for item in loose[:LISTED]]
    if len(loose) > LISTED:
        lines.append(_more(len(loose) - LISTED))
    if len(lines) == 1:
        lines.append("No links.")
    return "\n".join(lines)


def _heading(objects: Objects, graph: Graph, wanted: Wanted) -> str:
    entry = wanted.entry
    node = graph.node(entry.object)
    if wanted.is_part or node is None:
        return _name(wanted)
    title = _title(node) if node.path is not None else ""  # of others the line says it
    quoted_title = f' "{title}"' if title else ""
    tags = "".join(f" #{one_line(tag)}" for tag in graph.tags_of(entry.object))
    return f"{_metadata(objects, entry)}{quoted_title}{tags}"


def _more(count: int) -> str:
    return f"- and {count:,} more"


def _listed(
    objects: Objects, graph: Graph, heading: str, ends: Iterable[tuple[str, Edge]]
) -> list[str]:
    relations: dict[str, list[str]] = {}
    for id, edge in ends:
        kinds = relations.setdefault(id, [])
        if (how := _relation(edge)) not in kinds:
            kinds.append(how)
    nodes = [node for id in relations if (node := graph.node(id)) is not None]
    index = objects.index.by_object
    # Tool calls of other sessions are only counted: they say no more than that a file was read.
    chosen = [node for node in nodes if node.type != "toolcall" or node.id in index]
    lines = [
        linked_line(_called(objects, node), _title(node), relations[node.id])
        for node in chosen[:LISTED]
    ]
    more = len(nodes) - len(lines)
    lines += [_more(more)] if more else []
    return [heading, *lines] if lines else []


def _relation(edge: Edge) -> str:
    reference = edge.reference
    version = f" v{reference.version}" if reference.static else ""
    heading = f" #{one_line(reference.heading)[:NAME_CHARS]}" if reference.heading else ""
    heading += f" ::{one_line(reference.part)[:NAME_CHARS]}" if reference.part else ""
    return f"{one_line(reference.relation)[:NAME_CHARS]}{version}{heading}"


def _called(objects: Objects, node: Node) -> str:
    # What is named gets a handle, by which it can be had. What sessions have said has owners.
    if node.type in _MET and not node.gone:
        head = objects.workspace.head(node.id)
        if head is not None:
            meet(objects, head)
    called = name(name_of_node(objects, node))
    ordinal = objects.index.by_object.get(node.id)
    if node.path is None:
        called = f"{called} {node.type}"
    elif ordinal is not None:
        called = f"{wording.handle(ordinal)} {called}"
    return f"{called} (deleted)" if node.gone else called


def _title(node: Node) -> str:
    last = (node.path or "").rpartition("/")[2]
    title = one_line(node.title)[:NAME_CHARS]
    return "" if title in (last, last.rpartition(".")[0], f"{node.type} {node.id}") else title


def _loose(objects: Objects, item: Unresolved) -> str:
    names = [name(name_of_node(objects, node)) for node in item.candidates[:LISTED]]
    return unresolved(item.reference.whole[:NAME_CHARS], names)


def _section_place(store: Store, wanted: Wanted) -> tuple[int, int]:
    document = store.get(wanted.entry.object, Document)
    text = "" if document is None else document.content or ""
    return section_place(text, wanted.section or "", wording.handle(wanted.entry.ordinal))


def _is_between(at: int, field: str, start: int, end: int) -> bool:
    return field == CONTENT and start <= at < end


def linked_line(name: str, title: str, relations: Sequence[str]) -> str:
    """A linked object and its relations, without plain mentions."""
    quoted_title = f' "{title}"' if title else ""
    how = "" if list(relations) == ["mentions"] else f" ({', '.join(relations)})"
    return f"- {name}{quoted_title}{how}"


def unresolved(target: str, candidates: Sequence[str]) -> str:
    """An unresolved or ambiguous link."""
    if not candidates:
        return f"Link {quoted(target)} leads nowhere yet."
    return f"Link {quoted(target)} could be {', '.join(candidates)}."


_NAME = re.compile(r"(?:[tm]-[0-9a-z]{4,}|memory:\S+|[0-9a-f]{8}-[0-9a-f-]{27})", re.IGNORECASE)


def read_record(store: Store, readers: Iterable[RecordReader], name: str) -> str | None:
    """A task or memory entry; None if it is neither, or hidden from this session."""
    # A session's index does not hold them: they are found by their names.
    if _NAME.fullmatch(name) is None:
        return None
    if not name.lower().startswith("m"):
        return task_by_name(store, name)
    return next(filter(None, (reader.described(name) for reader in readers)), None)
