"""The arguments of commands that look into a session or an object."""

from __future__ import annotations

from argparse import ArgumentParser

from foredeck.cli.arguments import (
    add_object,
    add_objects,
    add_selection,
    add_session,
    add_usual_flags,
    positive,
)
from foredeck.cli.registry import Command, later


def _show(parser: ArgumentParser) -> None:
    add_session(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--call",
        metavar="N",
        type=positive,
        help="which model call, counted from 1 over all branches of the session (default: the "
        "last)",
    )
    which.add_argument(
        "--at",
        metavar="WHEN",
        help="the last call before a time (2026-03-01T14:00, '2h ago', yesterday), or the first "
        "one whose prompt had a text or message with this hash (8 digits or more)",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--sets",
        action="store_true",
        help="list the session's objects after the call instead, each with its version and "
        "state: pinned, waiting (pinned, but out of view), active, inactive (in the pool), or "
        "indexed",
    )
    instead.add_argument(
        "--branches",
        action="store_true",
        help="list the branches of the session instead: their calls, and where each began",
    )
    add_usual_flags(parser)


SHOW = Command(
    description="""
    Print exactly what the model saw at one call: the system prompt, tools and messages, rebuilt
    from the store. Headings mark the messages that foredeck edited or added, and those that Pi does
    not send on (aborted answers). --sets shows the index, pool, active and pinned objects at that
    call, and --branches the branches of the session, abandoned ones included.

    JSON: {"call", "system", "tools", "messages"}, with messages in the shape that Pi sends on; with
    --sets {"session", "call", "index", "pool", "active", "pinned", "waiting"}.
    """,
    example="foredeck show 0199 --call 12",
    configure=_show,
    run=later("show_command"),
)


def _trace(parser: ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", help="a name, a path, or any other text, spelled exactly"
    )
    add_session(parser)
    parser.add_argument(
        "--call",
        metavar="N",
        type=positive,
        help="follow the branch that ends with this call (default: the last)",
    )
    add_usual_flags(parser)


TRACE = Command(
    description="""
    Show at which calls the model could see a text: in view (and where), announced (folded, but
    named by a digest or summary), folded (why, since when, and what keeping it would have cost),
    compacted with the chat around it, or never seen. This explains why an agent repeated something
    or missed it. Costs are in tokens of uncached input.

    JSON: {"session", "text", "calls", "spans": [{"first", "last", "calls", "state", "places"}]}.
    """,
    example="foredeck trace parse_config 0199",
    configure=_trace,
    run=later("show_command", "run_trace"),
)


def _blame(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE[:LINE[-LINE]]",
        help="a file as any command finds it (a path or the end of one, a nickname, an id, "
        "SESSION:@12), and which lines of it (default: all)",
    )
    parser.add_argument(
        "--prompt",
        action="store_true",
        help="print the exact prompt that the (first) line was written from",
    )
    add_usual_flags(parser)


BLAME = Command(
    description="""
    Show for each line of a file which model call of which session wrote it, with which tool and
    model, or that a person or a program wrote it. Renames are followed, and the commit that added a
    line is named where git knows one. Changes on disk that are not stored yet count as a person's.

    JSON: {"object", "path", "lines": [{"line", "text", "by", "session", "call", "time_ms", "tool",
    "tool_call", "model", "commit"}]}.
    """,
    example="foredeck blame src/config.py:40-60",
    configure=_blame,
    run=later("blame_command"),
)


_VERSION = (
    "a number from 1, v2 as a session counts, a store token, the start of a hash (8 digits or "
    "more), or a time: 2026-03-01, 2026-03-01T14:00, '2h ago', yesterday"
)


def _history(parser: ArgumentParser) -> None:
    add_object(parser)
    parser.add_argument(
        "old",
        metavar="A",
        nargs="?",
        help=f"show what changed since this version: {_VERSION} (with --diff: the one before B)",
    )
    parser.add_argument(
        "new", metavar="B", nargs="?", help="up to this version (default: the newest)"
    )
    parser.add_argument(
        "--diff", action="store_true", help="show what the last change was, or that from A to B"
    )
    parser.add_argument(
        "--at",
        metavar="VERSION",
        help="list the versions up to this one, or those with this hash; with --diff it is A",
    )
    add_usual_flags(parser)


HISTORY = Command(
    description="""
    List every version of an object, the oldest first: its number in the object's own history, what
    a session calls it, when it was stored, where it came from, and the token of its transaction. A
    renamed file is followed in both directions. With A, or with --diff, show what changed between
    two versions as a unified diff; the exit code is 0 whether they differ or not, and 1 if one of
    them has no content. A version can be named in any of these ways, by a hash, or by a time.
    """,
    example="foredeck history src/main.ts 1 3",
    configure=_history,
    run=later("history_command"),
)


def _cat(parser: ArgumentParser) -> None:
    add_object(parser, parts=True)
    add_usual_flags(parser)
    parser.add_argument("--at", metavar="VERSION", help=f"{_VERSION} (default: the newest)")


CAT = Command(
    description="""
    Print the content of an object exactly as it is stored, and nothing else: a file's text, a
    tool's output, a system prompt, or a part of one, as `foredeck search` names it
    (0199ab12:@52::args.command). A chat (chat:SESSION) is printed as Markdown with the turns of all
    its branches, a fork's with the turns that it inherited first; --json adds the turns themselves,
    and a result's images in base64. A session (session:SESSION) is printed as its index, with what
    was in the pool, active and pinned after its last call, or after the last call before --at. The
    exit code is 1 if the version has no content (it was deleted, or is not text).
    """,
    example="foredeck cat src/main.ts --at '2h ago'",
    configure=_cat,
    run=later("history_command", "run_cat"),
)


def _graph(parser: ArgumentParser) -> None:
    add_objects(parser, is_optional=True)
    parser.add_argument(
        "--depth",
        metavar="N",
        type=positive,
        default=1,
        help="how many references away (default: 1)",
    )
    parser.add_argument("--tag", metavar="T", help="only neighbours with this tag")
    add_selection(parser)
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=1000,
        help="at most so many objects, the nearest first (default: %(default)s)",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--backlinks",
        action="store_true",
        help="list the references to the object, each with its place in the text",
    )
    asked.add_argument(
        "--tags",
        action="store_true",
        help="list the tags of all Markdown files, with the number of files that have each",
    )
    asked.add_argument("--dot", action="store_true", help="print the graph in Graphviz's format")
    add_usual_flags(parser)


GRAPH = Command(
    description="""
    Show what an object refers to and what refers to it, up to N references away, and the references
    among all of these. --backlinks lists the references to the object instead: from notes and other
    Markdown files, and from tool calls that read or changed a file. A renamed file keeps the
    references to its old name.

    JSON: `nodes` with id, type, title, path and distance, `edges` with from, to, relation, static,
    field, start and end.
    """,
    example='foredeck graph "Ebb and flow" --depth 2 --dot | dot -Tsvg > notes.svg',
    configure=_graph,
    run=later("graph_command"),
)


def _depth(text: str) -> int:
    return 0 if text == "0" else positive(text)


def _expand(parser: ArgumentParser) -> None:
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
    add_usual_flags(parser)


EXPAND = Command(
    description="""
    Print objects as Markdown or JSON, and with --depth also what they refer to, the nearest first
    and each once. The same store always gives the same text. A recorded (static) reference leads to
    the version of that time, verified by its hashes.
    """,
    example="foredeck expand notes/tides.md --depth 1 --budget 20000",
    configure=_expand,
    run=later("graph_command", "run_expand"),
)


def _name(parser: ArgumentParser) -> None:
    add_object(parser)
    parser.add_argument(
        "nickname",
        metavar="NICKNAME",
        nargs="?",
        help="a name that no other object has, without spaces",
    )
    parser.add_argument(
        "--short",
        metavar="TEXT",
        help="set a summary of one line; - reads it from standard input, an empty text removes it",
    )
    parser.add_argument("--long", metavar="TEXT", help="set a longer summary, in the same way")
    parser.add_argument(
        "--view",
        metavar="FIELDS",
        help="names of the fields that stand for the object, with commas between them, such as "
        "path,short_summary; default for those of its type",
    )
    add_usual_flags(parser)


NAME = Command(
    description="""
    Give an object a nickname that you and the model can use from now on, or set what represents it
    while its content is not in view: its summaries, and its view, which is a list of fields.
    Without options, show what it has. A nickname belongs to one object at a time; a new one
    replaces it. A short summary is part of the view by itself, a long one only if --view names it.
    They stay when the content changes. In Pi, /foredeck name and /foredeck describe do the same.
    """,
    example="foredeck name src/main.ts entry",
    configure=_name,
    run=later("name_command"),
)


def _observations(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session's id or the start of it")
    parser.add_argument(
        "note",
        metavar="NOTE",
        nargs="?",
        help="only this note: its number in the list, or its id or the start of it",
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--edit", action="store_true", help="edit its text in $VISUAL or $EDITOR")
    change.add_argument("--text", metavar="TEXT", help="replace its text; - reads stdin")
    change.add_argument(
        "--delete",
        action="store_true",
        help="delete it; no new note is taken of its messages",
    )
    add_usual_flags(parser)


OBSERVATIONS = Command(
    description="""
    Print the notes that were taken of a session's chat: reflections, then observations, the oldest
    first, each with the turns that it covers and what that saves. --edit, --text or --delete change
    one note. Prompts that were sent with it are not changed; it is replaced at the next rebase. A
    note's text has the form that is printed: dates, and one line for each remark.
    """,
    example="foredeck observations 0197a3 3 --edit",
    configure=_observations,
    run=later("observations_command"),
)
