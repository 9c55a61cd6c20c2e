"""The arguments of commands that look into a session or an object."""

from __future__ import annotations

from foredeck.cli.arguments import NUMBER, OR_CHOSEN, SESSION, command, positive

_ANY_OBJECT = "a path or its end, a nickname, an id or its start, t-k3f9, m-k3f9, or SESSION:@12"
_WHOSE_NAMES = "--session SESSION  whose handles (@12) and versions (v2) are meant"
_NOTE = "a path, a note's title, a nickname, an id or its start, or SESSION:@12; also in [[ ]]"
_WHOSE_HANDLES = "--session SESSION  whose handles (@12) are meant"
_SELECTION = """
        --type TYPE...  only objects of this type (`file`, `toolcall` ...); may be repeated
        --relation NAME...  only references of this relation (`mentions`, `parent` ...); may be
            repeated
"""
_VERSION = (
    "a number, v2 as a session counts, a token, the start of a hash, or a time: 2026-03-01, "
    "'2h ago', yesterday"
)


SHOW = command(
    """
    Print exactly what the model saw at one call: the system prompt, tools and messages.
    Headings mark what foredeck edited or added, and what Pi does not send on.

    JSON: {"call", "system", "tools", "messages"}; with --sets {"session", "call", "index",
    "pool", "active", "pinned", "waiting"}.
    """,
    example="foredeck show 0199 --call 12",
    options=f"""
    [SESSION|FILE]  {OR_CHOSEN}
    --call N  a model call, counted from 1 over all branches (default: the last)
    | --at WHEN  the last call before a time (2026-03-01T14:00, '2h ago', yesterday), or the
        first whose prompt had a text with this hash
    --sets  list the session's objects after the call instead
    | --branches  list the branches of the session instead
    """,
    run="foredeck_lab.show_command",
    call=NUMBER,
)


TRACE = command(
    """
    Show at which calls a text was in view, announced (folded, but named by a digest or summary),
    folded (with the reason, and what keeping it would have cost in tokens of uncached input),
    compacted, or not seen.

    JSON: {"session", "text", "calls", "spans": [{"first", "last", "session", "calls", "state",
    "places"}], "origin", "archived"}; `origin`: where a carried session is from.
    """,
    example="foredeck trace parse_config 0199",
    options=f"""
    TEXT  a name, a path, or any other text, as it is spelled
    [SESSION|FILE]  {OR_CHOSEN}
    --call N  follow the branch that ends with this call (default: the last)
    """,
    run="foredeck_lab.show_command:run_trace",
    call=NUMBER,
)


BLAME = command(
    """
    Show which call of which session wrote each line of a file, with which tool and model, or
    that a person or program did, and the commit that added it. Renames are followed.

    JSON: {"object", "path", "lines": [{"line", "text", "by", "session", "call", "time_ms",
    "tool", "tool_call", "model", "agent", "commit"}]}.
    """,
    example="foredeck blame src/config.py:40-60",
    options="""
    FILE[:LINE[-LINE]]  a file, or some lines of it
    --prompt  print the prompt that the (first) line was written from
    """,
    run="blame_command",
)


HISTORY = command(
    """
    List every version of an object, the oldest first, with number, time, origin and transaction.
    Renames are followed. With A or --diff, show what changed between two versions; the exit
    code is 1 if one has no content.
    """,
    example="foredeck history src/main.ts 1 3",
    options=f"""
    OBJECT  {_ANY_OBJECT}
    {_WHOSE_NAMES}
    old: [A]  what changed since this version: {_VERSION} (with --diff: the one before B)
    new: [B]  up to this version (default: the newest)
    --diff  show the last change, or that from A to B
    --at VERSION  list the versions up to this one, or with this hash; with --diff: A
    """,
    run="history_command",
)


CAT = command(
    """
    Print the content of an object exactly as it is stored, or a part of it, as `foredeck search`
    names it (0199ab12:@52::args.command); a chat (chat:SESSION) as Markdown, a session
    (session:SESSION) as its index. The exit code is 1 if the version has no content.
    """,
    example="foredeck cat src/main.ts --at '2h ago'",
    options=f"""
    OBJECT...  {_ANY_OBJECT}; then a part: ::FIELD (::args.command), turns A-B or message N of a
        chat, chars A-B, at HASH
    {_WHOSE_NAMES}
    --at VERSION  {_VERSION} (default: the newest)
    """,
    run="history_command:run_cat",
)


GRAPH = command(
    """
    Show what an object refers to and what refers to it. --content prints the objects themselves
    as Markdown, the nearest first.

    JSON: `nodes` with id, type, title, path and distance, `edges` with from, to, relation,
    static, field, start and end. With --content `objects`.
    """,
    example='foredeck graph "Ebb and flow" --depth 2 --dot | dot -Tsvg > notes.svg',
    options=f"""
    [OBJECT...]  {_NOTE}
    {_WHOSE_HANDLES}
    --depth N  how many references away (default: 1; 0 with --content)
    --tag T  only neighbours with this tag
    {_SELECTION}
    --limit N  at most so many objects, the nearest first (default: %(default)s)
    --backlinks  list the references to the object, with their places
    | --tags  list the tags of all Markdown files, with numbers of files
    | --dot  print the graph in Graphviz's format
    | --content  print the objects, and what they refer to
    --field NAME  with --content: follow this field: `content`, `frontmatter.parent`,
        `file_refs` of a tool call, `turns[2]` of a chat
    --budget CHARS  with --content: at most so many characters (default: %(default)s)
    --metadata  with --content: metadata only
    """,
    run="graph_command",
    depth={"type": lambda text: 0 if text == "0" else positive(text)},
    limit=NUMBER | {"default": 1000},
    budget=NUMBER | {"default": 40000},
)


NAME = command(
    """
    Give an object a nickname that you and the model can use, or set the summaries and fields
    that represent it while it is folded. Without options, show what it has.
    """,
    example="foredeck name src/main.ts entry",
    options=f"""
    OBJECT  {_ANY_OBJECT}
    {_WHOSE_NAMES}
    [NICKNAME]  a unique name, without spaces
    --short TEXT  set a summary of one line; - reads stdin, an empty text removes it
    --long TEXT  set a longer summary, in the same way
    --view FIELDS  fields to show, such as path,short_summary; `default`: those of its type
    """,
    run="name_command",
)


OBSERVATIONS = command(
    """
    Print the notes on a session's chat: reflections, then observations, the oldest first, each
    with the turns that it covers and what that saves. A change reaches the prompt when this is
    next rewritten.
    """,
    example="foredeck observations 0197a3 3 --delete",
    options=f"""
    [SESSION]  {SESSION}
    [NOTE]  only this note, by its number in the list or its id
    --text TEXT  replace its text; - reads stdin
    | --delete  delete it; no new note is taken of its messages
    """,
    run="observations_command",
)
