"""The arguments of commands for everyday use of what is stored."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from foredeck.cli.arguments import EXAMPLES, add_session, add_usual_flags, parse_moment, positive
from foredeck.cli.registry import Command, later
from foredeck.search import SEARCHED_TYPES


def _sessions(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--size",
        action="store_true",
        help="show how much text each session uses, including what it shares with others",
    )
    add_usual_flags(parser)


SESSIONS = Command(
    description="""
    List the stored sessions, the most recent first: the start of the id (enough to name it), when
    it was last used, how long it took, its messages and tool calls, what it saved compared with
    plain Pi, its project and its title (the name you gave it in Pi, or the first prompt). A
    worktree counts as part of its project. Times are local.

    Marks show that a session is private, a fork, a subagent's, read from an agent's history (by the
    agent's name), or that Pi's own file of it was deleted (gone). --json has more, with times in
    milliseconds since 1970.
    """,
    example="foredeck sessions",
    configure=_sessions,
    run=later("sessions_command"),
)


SCOPES = ("all", "project", "session")


def _moment(text: str) -> int:
    moment = parse_moment(text)
    if moment is None:
        raise ArgumentTypeError(f"{text!r} is not a time; examples: {EXAMPLES}")
    return moment


def _search(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words, names, paths: any text")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=10,
        help="how many hits (default: %(default)s)",
    )
    parser.add_argument(
        "--scope",
        metavar="S",
        choices=SCOPES,
        help="all (the default), project: sessions in the current folder's repository or its "
        "worktrees, or in the folder, or session: that of --session",
    )
    parser.add_argument("--session", metavar="ID", help="only this session")
    parser.add_argument(
        "--project", metavar="DIR", type=Path, help="the project's folder, for --scope project"
    )
    parser.add_argument(
        "--type",
        metavar="T",
        choices=SEARCHED_TYPES,
        help=f"only hits of one type: {', '.join(SEARCHED_TYPES)}",
    )
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--path", metavar="P", help="only hits about a file with P in its path")
    parser.add_argument(
        "--since", metavar="T", type=_moment, help=f"only hits since T ({EXAMPLES})"
    )
    parser.add_argument(
        "--task", metavar="ID", help="only a task, and what was said and done while it was active"
    )
    parser.add_argument(
        "--message-range",
        metavar="N",
        type=int,
        choices=range(21),
        default=0,
        help="show N texts before and after each hit (0 to 20)",
    )
    parser.add_argument(
        "--group",
        metavar="BY",
        choices=("session",),
        help="session: first the session that answers best, by its best hits together, with three "
        "of them each; else the best hits come first",
    )
    parser.add_argument("--explain", action="store_true", help="explain the rank of each hit")
    add_usual_flags(parser)


SEARCH = Command(
    description="""
    Search all sessions: messages, tool calls and their results, every version of a file, tasks,
    memory, and summaries of compacted chat. Words match in all their forms; identifiers and paths
    match as a whole and by their parts. A word that is nowhere as typed matches as the beginning of
    a word, then as a piece of a name. "Quotes" make a phrase, and a * at the end a prefix.

    Hits are grouped by session, under its first prompt. Each shows the name to open it by
    (`foredeck cat NAME`, everything after the name included), the time, the kind, the words that
    matched, and the passage. The index is updated first; it is kept in the state folder and made
    from the store. Keys and tokens of the usual shapes are left out of it.
    """,
    example="foredeck search retry backoff http_client --scope project",
    configure=_search,
    run=later("search_command"),
)


def _cost(parser: ArgumentParser) -> None:
    add_session(parser, optional=True)
    parser.add_argument(
        "--all",
        action="store_true",
        help="all stored sessions on one page, by week and project (the default without SESSION)",
    )
    parser.add_argument(
        "--histories",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="--all, with the histories that Pi, Claude Code and Codex have kept (in PATH, or else "
        "in their usual folders): what would foredeck have saved? Nothing is stored",
    )
    parser.add_argument("--calls", action="store_true", help="print every call of a long session")
    parser.add_argument(
        "--cache",
        choices=("ideal", "anthropic", "openai"),
        help="the prompt cache whose rule is used to find lost hits (default: the one of the "
        "model's API; ideal for a replay)",
    )
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=positive,
        help="after how long the cache expires (default: what is recorded for the model, or 300)",
    )
    parser.add_argument(
        "--prices",
        metavar="P",
        default="anthropic",
        help="for a replay: the prices that it plans by: anthropic (default), openai, no-cache, or "
        "a JSON file; recorded sessions have their own",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="instead of the calls, one page to pass on: the cost, the files that the session "
        "changed (with differences), its failed commands, what was folded and asked for again",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the report, with all prompts as charts and tables, to one HTML file that "
        "fetches nothing (`-`: stdout)",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="report whole differences, and mask no keys, tokens and home folder",
    )
    add_usual_flags(parser)


COST = Command(
    description="""
    Show what sessions cost beside plain Pi at the same calls: in dollars, or in uncached input
    tokens where a model has no price. Without SESSION, all stored sessions by week and project. Of
    one session: every call, every rebase with its reason and what it has paid back, and why each
    lost cache hit was lost; --report has its files and commands.

    The cost is that of the prompts, foredeck's own questions included. Plain Pi's side has
    everything in full, compacted when the window is full, without foredeck's tools. ~ marks an
    estimate. A session that foredeck did not see is replayed from its file, and priced by list
    prices. If a loss has no explanation, please report it: it is a bug.

    JSON: `figure` (calls, plain_pi, foredeck, questions, saved, unit), `calls`, `rebases`, `total`,
    `asked`; with --all `total`, `weeks`, `projects`; with --report `session`, `calls`, `figure`,
    `files` (path, added, removed, diff), `unversioned`, `failed`, `folded`, `asked_back`.
    """,
    example="foredeck cost 0199",
    configure=_cost,
    run=later("cost_command"),
)


def _notes(parser: ArgumentParser) -> None:
    parser.add_argument("title", metavar="TITLE", nargs="?", help="with --new: title and file name")
    parser.add_argument(
        "--new",
        action="store_true",
        help="make a note from a template, with title, date and tags in its frontmatter, and print "
        "its path",
    )
    parser.add_argument(
        "--folder",
        metavar="DIR",
        help="with --new: where to put it (default: the first of `notes.folders`)",
    )
    parser.add_argument(
        "--tag",
        metavar="T",
        action="append",
        help="only notes with this tag, or one within it (T/...); with --new: a tag to give, may "
        "be repeated",
    )
    parser.add_argument(
        "--orphans", action="store_true", help="only notes that no other Markdown file refers to"
    )
    parser.add_argument(
        "--broken",
        action="store_true",
        help="instead, all references that lead nowhere, could mean several objects or name a "
        "heading that is not there, and frontmatter that could not be read",
    )
    parser.add_argument("--all", action="store_true", help="also Markdown files that are not notes")
    add_usual_flags(parser)


NOTES = Command(
    description="""
    List the stored notes, or make a new one. A note is a Markdown file in one of the folders of
    `notes.folders`, or one with `kind: note` in its frontmatter. `foredeck index` stores files that
    no session has read yet. Notes are plain files: you can write them with anything, not only with
    --new.
    """,
    example="foredeck notes --tag project --orphans",
    configure=_notes,
    run=later("notes_command"),
)


def _working(parser: ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", nargs="?", help="one section of the page")
    parser.add_argument(
        "text", metavar="TEXT", nargs="?", help="the new text of the section; - reads stdin"
    )
    parser.add_argument(
        "--session", metavar="SESSION", help="the page of this session instead of the project's"
    )
    parser.add_argument("--edit", action="store_true", help="open the page in $VISUAL or $EDITOR")
    add_usual_flags(parser)


WORKING = Command(
    description="""
    Show or change working memory: a page that the current folder's project keeps from session to
    session. Agents read it before the chat and write to it section by section; every change is a
    version (`foredeck history`). SECTION shows one section and TEXT replaces it; --edit opens the
    whole page in your editor.
    """,
    example='foredeck working "User Preferences" "- Tests: pytest, no mocks"',
    configure=_working,
    run=later("working_command"),
)
