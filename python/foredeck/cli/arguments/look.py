"""The arguments of commands that look into a session or an object."""

from __future__ import annotations

from foredeck.cli.arguments import NUMBER, SESSION_OR_FILE, USUAL, arguments, positive
from foredeck.cli.registry import Command, later

_ANY_OBJECT = (
    "a path (absolute, relative to the current folder, or the end of one), a nickname, an id or "
    "the start of one, a task (t-k3f9), an entry of memory (m-k3f9), or SESSION:@12"
)
_WHOSE_NAMES = "--session SESSION  the session that handles (@12) and versions (v2) refer to"
_NOTE = (
    "a path, a note's title, a nickname, an id or the start of one, or SESSION:@12; also in [[ ]]"
)
_WHOSE_HANDLES = "--session SESSION  the session whose handles (@12) are meant"
_SELECTION = """
        --type TYPE...  only objects of this type (`file`, `toolcall` ...); may be repeated
        --relation NAME...  only references of this relation (`mentions`, `embeds`, `parent` ...);
            may be repeated
"""
_VERSION = (
    "a number from 1, v2 as a session counts, a store token, the start of a hash (8 digits or "
    "more), or a time: 2026-03-01, 2026-03-01T14:00, '2h ago', yesterday"
)


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
    configure=arguments(
        f"""
        SESSION|FILE  {SESSION_OR_FILE}
        --call N  which model call, counted from 1 over all branches of the session (default: the
            last)
        | --at WHEN  the last call before a time (2026-03-01T14:00, '2h ago', yesterday), or the
            first one whose prompt had a text or message with this hash (8 digits or more)
        --sets  list the session's objects after the call instead, each with its version and state:
            pinned, waiting (pinned, but out of view), active, inactive (in the pool), or indexed;
            the chat and the system prompt are locked, and always active
        | --branches  list the branches of the session instead: their calls, and where each began
        {USUAL}
        """,
        call=NUMBER,
    ),
    run=later("show_command"),
)


TRACE = Command(
    description="""
    Show at which calls the model could see a text: in view (and where), announced (folded, but
    named by a digest or summary), folded (why, since when, and what keeping it would have cost),
    compacted with the chat around it, or never seen. This explains why an agent repeated something
    or missed it. Costs are in tokens of uncached input.

    JSON: {"session", "text", "calls", "spans": [{"first", "last", "calls", "state", "places"}],
    "archived"}; `archived` counts the messages whose text was pruned.
    """,
    example="foredeck trace parse_config 0199",
    configure=arguments(
        f"""
        TEXT  a name, a path, or any other text, spelled exactly
        SESSION|FILE  {SESSION_OR_FILE}
        --call N  follow the branch that ends with this call (default: the last)
        {USUAL}
        """,
        call=NUMBER,
    ),
    run=later("show_command", "run_trace"),
)


BLAME = Command(
    description="""
    Show for each line of a file which model call of which session wrote it, with which tool and
    model, or that a person or a program wrote it. Renames are followed, and the commit that added a
    line is named where git knows one. Changes on disk that are not stored yet count as a person's.

    JSON: {"object", "path", "lines": [{"line", "text", "by", "session", "call", "time_ms", "tool",
    "tool_call", "model", "commit"}]}.
    """,
    example="foredeck blame src/config.py:40-60",
    configure=arguments(
        f"""
        FILE[:LINE[-LINE]]  a file as any command finds it (a path or the end of one, a nickname, an
            id, SESSION:@12), and which lines of it (default: all)
        --prompt  print the exact prompt that the (first) line was written from
        {USUAL}
        """
    ),
    run=later("blame_command"),
)


HISTORY = Command(
    description="""
    List every version of an object, the oldest first: its number in the object's own history, what
    a session calls it, when it was stored, where it came from, and the token of its transaction. A
    renamed file is followed in both directions. With A, or with --diff, show what changed between
    two versions as a unified diff; the exit code is 0 whether they differ or not, and 1 if one of
    them has no content. A version can be named in any of these ways, by a hash, or by a time.
    """,
    example="foredeck history src/main.ts 1 3",
    configure=arguments(
        f"""
        OBJECT  {_ANY_OBJECT}
        {_WHOSE_NAMES}
        old: [A]  show what changed since this version: {_VERSION} (with --diff: the one before B)
        new: [B]  up to this version (default: the newest)
        --diff  show what the last change was, or that from A to B
        --at VERSION  list the versions up to this one, or those with this hash; with --diff it is A
        {USUAL}
        """
    ),
    run=later("history_command"),
)


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
    configure=arguments(
        f"""
        OBJECT...  {_ANY_OBJECT}; after it, which part: ::FIELD (::args.command), turns A-B or
            message N of a chat, chars A-B, at HASH
        {_WHOSE_NAMES}
        {USUAL}
        --at VERSION  a number from 1, v2 as a session counts, a store token, the start of a hash (8
            digits or more), or a time: 2026-03-01, 2026-03-01T14:00, '2h ago', yesterday (default:
            the newest)
        """
    ),
    run=later("history_command", "run_cat"),
)


GRAPH = Command(
    description="""
    Show what an object refers to and what refers to it, up to N references away, and the references
    among all of these. --backlinks lists the references to the object instead: from notes and other
    Markdown files, and from tool calls that read or changed a file. A renamed file keeps the
    references to its old name.

    --content prints the objects themselves as Markdown, and with --depth also what they refer to,
    the nearest first and each once, within a budget. The same store always gives the same text. A
    recorded (static) reference leads to the version of that time, verified by its hashes.

    JSON: `nodes` with id, type, title, path and distance, `edges` with from, to, relation, static,
    field, start and end. With --content `objects`.
    """,
    example='foredeck graph "Ebb and flow" --depth 2 --dot | dot -Tsvg > notes.svg',
    configure=arguments(
        f"""
        [OBJECT...]  {_NOTE}
        {_WHOSE_HANDLES}
        --depth N  how many references away (default: 1; 0 with --content)
        --tag T  only neighbours with this tag
        {_SELECTION}
        --limit N  at most so many objects, the nearest first (default: %(default)s)
        --backlinks  list the references to the object, each with its place in the text
        | --tags  list the tags of all Markdown files, with the number of files that have each
        | --dot  print the graph in Graphviz's format
        | --content  print the objects, and what they refer to
        --field NAME  with --content: in place of the objects, what the references in this field of
            theirs lead to: `content`, `frontmatter.parent`, `file_refs` of a tool call,
            `toolcall_ids` or `turns[2]` of a chat
        --budget CHARS  with --content: characters at most; what does not fit as a whole is shown by
            its metadata (default: %(default)s)
        --metadata  with --content: metadata only, of a tool call its tool and status
        {USUAL}
        """,
        depth={"type": lambda text: 0 if text == "0" else positive(text)},
        limit=NUMBER | {"default": 1000},
        budget=NUMBER | {"default": 40000},
    ),
    run=later("notes_command", "run_graph"),
)


NAME = Command(
    description="""
    Give an object a nickname that you and the model can use from now on, or set what represents it
    while its content is not in view: its summaries, and its view, which is a list of fields.
    Without options, show what it has. A nickname belongs to one object at a time; a new one
    replaces it. A short summary is part of the view by itself, a long one only if --view names it.
    They stay when the content changes. In Pi, /foredeck name does the same.
    """,
    example="foredeck name src/main.ts entry",
    configure=arguments(
        f"""
        OBJECT  {_ANY_OBJECT}
        {_WHOSE_NAMES}
        [NICKNAME]  a name that no other object has, without spaces
        --short TEXT  set a summary of one line; - reads it from standard input, an empty text
            removes it
        --long TEXT  set a longer summary, in the same way
        --view FIELDS  names of the fields to show of an object, with commas between them, such
            as path,short_summary; default for those of its type
        {USUAL}
        """
    ),
    run=later("history_command", "run_name"),
)


OBSERVATIONS = Command(
    description="""
    Print the notes that were taken of a session's chat: reflections, then observations, the oldest
    first, each with the turns that it covers and what that saves. --edit, --text or --delete change
    one note. Prompts that were sent with it are not changed; it is replaced at the next rebase. A
    note's text has the form that is printed: dates, and one line for each remark.
    """,
    example="foredeck observations 0197a3 3 --edit",
    configure=arguments(
        f"""
        SESSION  a session's id or the start of it
        [NOTE]  only this note: its number in the list, or its id or the start of it
        --edit  edit its text in $VISUAL or $EDITOR
        | --text TEXT  replace its text; - reads stdin
        | --delete  delete it; no new note is taken of its messages
        {USUAL}
        """
    ),
    run=later("observations_command"),
)
