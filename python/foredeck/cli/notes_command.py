"""`foredeck notes`: notes, and broken links."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from typing import Any

from foredeck.cli.graph_command import OpenGraph, opened_graph, shown
from foredeck.cli.output import answer, table
from foredeck.lookup.objects import version_text
from foredeck.lookup.reader import note_rule
from foredeck.model.figures import counted
from foredeck.notes.graph import Node
from foredeck.notes.parsed import Reference


def run(args: Namespace) -> int:
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
