"""`foredeck expand`: objects and what they refer to, as metadata or with their content."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_config_flags, add_json_flag, positive
from foredeck.cli.graphs import add_objects, add_selection, asked_id, opened_graph, selection_of
from foredeck.cli.output import print_content, print_json
from foredeck.cli.registry import Command
from foredeck.hosts.pi.inherited import inherited_turns
from foredeck.notes.expanding import as_markdown, expand


def _run(args: Namespace) -> int:
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


def _depth(text: str) -> int:
    return 0 if text == "0" else positive(text)


def _configure(parser: ArgumentParser) -> None:
    add_objects(parser, several=True)
    parser.add_argument(
        "--depth",
        metavar="N",
        type=_depth,
        default=0,
        help="also what they refer to, N references away (default: 0)",
    )
    parser.add_argument(
        "--field",
        metavar="NAME",
        help="in place of the objects, what the references in this field of theirs lead to: "
        "`content`, `frontmatter.parent`, `file_refs` of a tool call, `toolcall_ids` or "
        "`turns[2]` of a chat",
    )
    parser.add_argument(
        "--budget",
        metavar="CHARS",
        type=positive,
        default=40_000,
        help="characters of content at most; what does not fit whole stands with its metadata "
        "(default: %(default)s)",
    )
    parser.add_argument("--metadata", action="store_true", help="print metadata only")
    add_selection(parser)
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Print objects as Markdown or JSON, and with --depth also what they refer to, the\n"
        "nearest first and each once. The same store always gives the same text. A recorded\n"
        "(static) reference leads to the version of that time, verified by its hashes."
    ),
    example="foredeck expand notes/tides.md --depth 1 --budget 20000",
    configure=_configure,
    run=_run,
)
