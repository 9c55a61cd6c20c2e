"""The arguments of commands for everyday use of what is stored."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import (
    CONFIG,
    EXAMPLES,
    NUMBER,
    PATH,
    PROJECT,
    SESSION_OR_FILE,
    USUAL,
    arguments,
    parse_moment,
    port_number,
)
from foredeck.cli.registry import Command, later
from foredeck.search import SEARCHED_TYPES

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
    configure=arguments(
        f"""
        --size  show how much text each session uses, including what it shares with others
        {USUAL}
        """
    ),
    run=later("sessions_command"),
)


SCOPES = ("all", "project", "session")


def _moment(text: str) -> int:
    moment = parse_moment(text)
    if moment is None:
        raise ArgumentTypeError(f"{text!r} is not a time; examples: {EXAMPLES}")
    return moment


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
    configure=arguments(
        f"""
        QUERY...  words, names, paths: any text
        --limit N  how many hits (default: %(default)s)
        --scope S  all (the default), project: sessions in the current folder's repository or its
            worktrees, or in the folder, or session: that of --session
        --session ID  only this session
        --project DIR  the project's folder, for --scope project
        --type T  only hits of one type: {", ".join(SEARCHED_TYPES)}
        --tool NAME  only calls of this tool
        --path P  only hits about a file with P in its path
        --since T  only hits since T ({EXAMPLES})
        --task ID  only a task, and what was said and done while it was active
        --message-range N  show N texts before and after each hit (0 to 20)
        --group BY  session: first the session that answers best, by its best hits together, with
            three of them each; else the best hits come first
        --explain  explain the rank of each hit
        {USUAL}
        """,
        limit=NUMBER | {"default": 10},
        scope={"choices": SCOPES},
        project=PATH,
        type={"choices": SEARCHED_TYPES},
        since={"type": _moment},
        message_range={"type": int, "choices": range(21), "default": 0},
        group={"choices": ("session",)},
    ),
    run=later("search_command"),
)


COST = Command(
    description="""
    Show what sessions cost beside plain Pi at the same calls: in dollars, or in uncached input
    tokens where a model has no price. Without SESSION, all stored sessions by week and project. Of
    one session: every call, every rebase with its reason, the reasoning that it left out and what
    it has paid back, and why each lost cache hit was lost.

    The cost is that of the prompts, foredeck's own questions included. Plain Pi's side has
    everything in full, compacted when the window is full, without foredeck's tools. ~ marks an
    estimate. A session that foredeck did not see is replayed from its file, and priced by list
    prices. If a loss has no explanation, please report it: it is a bug.

    JSON: `figure` (calls, plain_pi, foredeck, questions, saved, unit), `calls`, `rebases`, `total`,
    `asked`; with --all `total`, `weeks`, `projects`.
    """,
    example="foredeck cost 0199",
    configure=arguments(
        f"""
        [SESSION|FILE]  {SESSION_OR_FILE}
        --all  all stored sessions on one page, by week and project (the default without SESSION)
        --histories [PATH...]  --all, with the histories that Pi, Claude Code and Codex have kept
            (in PATH, or else in their usual folders): what would foredeck have saved? Nothing is
            stored
        --calls  print every call of a long session
        --cache ideal|anthropic|openai  the prompt cache whose rule is used to find lost hits
            (default: the one of the model's API; ideal for a replay)
        --ttl SECONDS  after how long the cache expires (default: what is recorded for the model, or
            300)
        --prices P  for a replay: the prices that it plans by: anthropic (default), openai,
            no-cache, or a JSON file; recorded sessions have their own
        {USUAL}
        """,
        histories=PATH,
        ttl=NUMBER,
        prices={"default": "anthropic"},
    ),
    run=later("cost_command"),
)


NOTES = Command(
    description="""
    List the stored notes, or make a new one. A note is a Markdown file in one of the folders of
    `notes.folders`, or one with `kind: note` in its frontmatter. `foredeck index` stores files that
    no session has read yet. Notes are plain files: you can write them with anything, not only with
    --new.
    """,
    example="foredeck notes --tag project --orphans",
    configure=arguments(
        f"""
        [TITLE]  with --new: title and file name
        --new  make a note from a template, with title, date and tags in its frontmatter, and print
            its path
        --folder DIR  with --new: where to put it (default: the first of `notes.folders`)
        --tag T...  only notes with this tag, or one within it (T/...); with --new: a tag to give,
            may be repeated
        --orphans  only notes that no other Markdown file refers to
        --broken  instead, all references that lead nowhere, could mean several objects or name a
            heading that is not there, and frontmatter that could not be read
        --all  also Markdown files that are not notes
        {USUAL}
        """
    ),
    run=later("notes_command"),
)


WORKING = Command(
    description="""
    Show or change working memory: a page that the current folder's project keeps from session to
    session. Agents read it before the chat and write to it section by section; every change is a
    version (`foredeck history`). SECTION shows one section and TEXT replaces it; --edit opens the
    whole page in your editor.
    """,
    example='foredeck working "User Preferences" "- Tests: pytest, no mocks"',
    configure=arguments(
        f"""
        [SECTION]  one section of the page
        [TEXT]  the new text of the section; - reads stdin
        --session SESSION  the page of this session instead of the project's
        --edit  open the page in $VISUAL or $EDITOR
        {USUAL}
        """
    ),
    run=later("working_command"),
)


UI_PORT = 8477

UI = Command(
    description="""
    Open the inspector: pages on this machine that show what is stored. There is an overview of what
    was spent; sessions as trees of what was said and done, and as timelines of prompts; any prompt
    as the model saw it, and what changed in it; where a text was in view; objects with their
    versions, and who wrote which line; notes and references, tasks, memory, and search.

    The first line printed is the address with its token. Nothing can be read without the token,
    which is valid until Ctrl-C. The pages load nothing from elsewhere and change nothing, unless
    you start them with --edit. For programs, every address also works with .json at its end.
    """,
    example="foredeck ui",
    configure=arguments(
        f"""
        --port N  the port on loopback (default: {UI_PORT}, or another where that is taken; 0: any)
        --no-open  print the address, and open no browser
        --edit  let memory be changed there: accept, refuse, pin, demote, delete
        --follow  open the session that is at work; its page renews itself at each call
        {CONFIG}
        """,
        port={"type": port_number},
    ),
    run=later("foredeck.ui.app"),
)


MCP = Command(
    description="""
    Serve search, objects, notes and tasks to any client of the Model Context Protocol, over stdin
    and stdout: add `foredeck mcp` to the client's list of servers. It is read-only, unless --write
    is given. Private sessions are not served. Tasks are those of the current folder's project, or
    of --project.
    """,
    example="foredeck mcp --project ~/src/app",
    configure=arguments(
        f"""
        --write  let clients make and change tasks of the project
        {PROJECT}{CONFIG}
        """,
        project=PATH,
    ),
    run=later("foredeck.mcp_server.server"),
)
