"""`foredeck notes`: which notes there are, and what is wrong with their links."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag
from foredeck.cli.graphs import OpenGraph, opened_graph, shown
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command
from foredeck.lookup.texts import counted

if TYPE_CHECKING:
    from foredeck.notes.graph import MissingHeading, Node, Unresolved
    from foredeck.notes.parsed import Reference


def _run(args: Namespace) -> int:
    with opened_graph(args) as opened:
        if args.broken:
            return _broken(args, opened)
        listed, others = _listed(args, opened)
        tags = {node.id: opened.graph.tags_of(node.id) for node, _ in listed}
    if args.json:
        rows = [{**n.as_json(), "note": is_note, "tags": tags[n.id]} for n, is_note in listed]
        print_json({"notes": rows})
        return 0
    rows_ = [(node.title, _tags(tags[node.id]), shown(node)) for node, _ in listed]
    if rows_:
        print(table([("title", "tags", "file"), *rows_]))
    print(_counted(args, len(listed), others))
    return 0


def _listed(args: Namespace, opened: OpenGraph) -> tuple[list[tuple[Node, bool]], int]:
    """The notes that are asked for, each with whether it is a note, and how many are no notes."""
    from foredeck.lookup.notes import note_rule

    rule = note_rule(opened.config)
    found = [
        (node, rule.is_note(node.path or "", kind))
        for node, kind in opened.graph.markdown(args.tag)
    ]
    if args.orphans:
        orphans = opened.graph.orphans()
        found = [(node, note) for node, note in found if node.id in orphans]
    chosen = [(node, note) for node, note in found if note or args.all]
    return chosen, len(found) - len(chosen)


def _counted(args: Namespace, count: int, others: int) -> str:
    what = " that no other refers to" if args.orphans else ""
    with_tag = f" with #{args.tag.lstrip('#')}" if args.tag else ""
    more = f"; {counted(others, 'other Markdown file')}, with --all" if others else ""
    gap = "\n" if count else ""
    listed = "Markdown file" if args.all else "note"
    return f"{gap}{counted(count, listed)}{with_tag}{what}{more}."


def _tags(tags: list[str]) -> str:
    return " ".join(f"#{tag}" for tag in tags)


def _broken(args: Namespace, opened: OpenGraph) -> int:
    found = list(opened.graph.unresolved())
    headings = list(opened.graph.missing_headings())
    problems = opened.graph.problems()
    if args.json:
        print_json(
            {
                "broken": [_as_json(item) for item in found],
                "headings": [_heading_as_json(item) for item in headings],
                "problems": [{**node.as_json(), "problems": said} for node, said in problems],
            }
        )
        return 0
    for item in found:
        reference = item.reference
        line = f"{shown(item.source)}:{reference.start}: [[{reference.whole}]]"
        several = ", ".join(map(shown, item.candidates))
        print(f"{line} is {'ambiguous: ' + several if several else 'unknown'}")
    for lost in headings:
        line = f"{shown(lost.source)}:{lost.reference.start}: {shown(lost.target)}"
        print(f"{line} has no #{lost.reference.heading or ''}")
    for node, said in problems:
        print("\n".join(f"{shown(node)}: {problem}" for problem in said))
    ambiguous = sum(1 for item in found if item.candidates)
    print(
        f"{counted(len(found) - ambiguous, 'reference')} to something unknown, "
        f"{ambiguous:,} ambiguous, {len(headings):,} to a missing heading, "
        f"{counted(len(problems), 'file')} with problems."
    )
    return 0


def _as_json(item: Unresolved) -> dict[str, Any]:
    return {
        **_reference_as_json(item.source, item.reference),
        "candidates": [node.as_json() for node in item.candidates],
    }


def _heading_as_json(item: MissingHeading) -> dict[str, Any]:
    return {
        **_reference_as_json(item.source, item.reference),
        "heading": item.reference.heading,
        "to": item.target.id,
    }


def _reference_as_json(source: Node, reference: Reference) -> dict[str, Any]:
    return {
        "from": source.id,
        "path": source.path,
        "target": reference.whole,
        "relation": reference.relation,
        "field": reference.field,
        "start": reference.start,
        "end": reference.end,
    }


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("--tag", metavar="T", help="those with this tag, or one within it (T/...)")
    parser.add_argument(
        "--orphans", action="store_true", help="those that no other Markdown file refers to"
    )
    parser.add_argument(
        "--broken",
        action="store_true",
        help="instead, all references that lead nowhere, could mean several objects or name a "
        "heading that is not there, and frontmatter that could not be read",
    )
    parser.add_argument("--all", action="store_true", help="also Markdown files that are not notes")
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "List the notes that the store knows. A note is a Markdown file in one of the folders of\n"
        "`notes.folders`, or with `kind: note` in its frontmatter. `foredeck index` takes in\n"
        "files that no session has met."
    ),
    example="foredeck notes --tag project --orphans",
    configure=_configure,
    run=_run,
)
