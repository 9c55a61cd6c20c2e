"""`foredeck expand`: objects and what they refer to, as metadata or with their content."""

from __future__ import annotations

from argparse import Namespace

from foredeck.cli.graphs import asked_id, opened_graph, selection_of
from foredeck.cli.output import print_content, print_json
from foredeck.lookup.inherited import inherited_turns
from foredeck.notes.expanding import as_markdown, expand


def run(args: Namespace) -> int:
    """`foredeck expand`."""
    with opened_graph(args) as opened:
        ids = [asked_id(opened, text, args.session) for text in args.object]
        found = expand(
            opened.store,
            opened.graph,
            ids,
            depth=args.depth,
            budget=args.budget,
            content=not args.metadata,
            selection=selection_of(args),
            field=args.field,
            inherited=lambda session: inherited_turns(opened.store, session).turns,
        )
    if not args.json:
        print_content(as_markdown(found))
        return 0
    print_json(
        {
            "objects": [
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
        }
    )
    return 0
