"""The arguments of commands for everyday use of what is stored."""

from __future__ import annotations

from argparse import ArgumentTypeError
from urllib.parse import urlsplit

from foredeck.cli.arguments import (
    CHOSEN,
    CONFIG,
    EXAMPLES,
    NUMBER,
    PATH,
    PROJECT,
    SESSION_OR_FILE,
    command,
    parse_moment,
    port_number,
)
from foredeck.search import SEARCHED_TYPES

SESSIONS = command(
    """
    List the stored sessions, the latest first: the start of the id, last use, duration, messages,
    tool calls, what it saved, project and title. Marks: private, the session that it goes on
    from, subagent, read from a history, gone (Pi's own file of it was deleted).
    """,
    example="foredeck sessions",
    options="""
    --size  how much text each session uses, shared text included
    """,
    run="listing_command",
)


FILE_STATES = ("text", "binary", "huge", "listed", "deleted", "unreadable", "special")


OBJECTS = command(
    """
    List the stored objects, the newest first, with type, state and name.

    JSON: {"objects": [{"object", "type", "name", "time_ms", "status", "chars", "nickname",
    "tool", "file_type", "harness"}], "total"}; `total` is their number without --limit.
    """,
    example="foredeck objects --type toolcall --status fail",
    options=f"""
    --type TYPE...  only objects of this type (`file`, `toolcall`, `session` ...); may be
        repeated
    --path TEXT  only those with this text in their path or name
    --status STATUS  only tool calls with this status (ok, fail), or files in this state
        ({", ".join(FILE_STATES)})
    --session SESSION  only those of this session
    --tool NAME  only calls of this tool
    --file-type TYPE  only files of this type (`py`, `md` ...)
    --harness NAME  only sessions of this agent (`pi`, `claude-code`, `library` ...)
    --limit N  list at most this many (default: %(default)s)
    """,
    run="listing_command:run_objects",
    status={"choices": ("ok", "fail", *FILE_STATES)},
    limit=NUMBER | {"default": 200},
)


SCOPES = ("all", "project", "session")


def _moment(text: str) -> int:
    moment = parse_moment(text)
    if moment is None:
        raise ArgumentTypeError(f"{text!r} is not a time; examples: {EXAMPLES}")
    return moment


SEARCH = command(
    """
    Search messages, tool calls and their results, every version of a file, tasks, memory, and
    summaries. Words match in all their forms, names also by their parts; "quotes" make a phrase,
    a * at the end a prefix. `foredeck cat NAME` opens a hit.
    """,
    example="foredeck search retry backoff http_client --scope project",
    options=f"""
    QUERY...  any text
    --limit N  most hits (default: %(default)s)
    --scope S  all (the default), project (the current folder's), or session (--session)
    --session ID  only this session
    --project DIR  the project's folder, for --scope project
    --type T  only hits of one type: {", ".join(SEARCHED_TYPES)}
    --tool NAME  only calls of this tool
    --path P  only hits about a file with P in its path
    --since T  only hits since T ({EXAMPLES})
    --task ID  only a task, and what happened while it was active
    --message-range N  show N texts before and after each hit (0 to 20)
    --group BY  session: the best session first
    --explain  explain the rank of each hit
    """,
    run="search_command",
    limit=NUMBER | {"default": 10},
    scope={"choices": SCOPES},
    project=PATH,
    type={"choices": SEARCHED_TYPES},
    since={"type": _moment},
    message_range={"type": int, "choices": range(21), "default": 0},
    group={"choices": ("session",)},
)


COST = command(
    """
    Show what sessions cost, and would have with plain Pi: in dollars, or in uncached input tokens
    if a model has no price. Of one session: every call, why the prompt was rewritten, and every
    lost cache hit with its cause. ~ marks an estimate. Please report a loss without explanation:
    it is a bug.

    JSON: `figure` (calls, plain_pi, foredeck, questions, saved, unit), `calls`, `rebases`,
    `total`, `asked`; with --all `total`, `weeks`, `projects`.
    """,
    example="foredeck cost 0199",
    options=f"""
    [SESSION|FILE]  {SESSION_OR_FILE}
    --all  all stored sessions by week and project (default without SESSION)
    --histories [PATH...]  what foredeck would have saved in histories of Pi, Claude Code and
        Codex (in PATH, or in their usual folders). Nothing is stored
    --calls  print every call of a long session
    --cache ideal|anthropic|openai|breakpoints  the rule for lost hits (default: the
        model's; ideal for a replay; breakpoints: OpenAI's from GPT-5.6 on)
    --ttl SECONDS  lifetime of the cache (default: the model's, or 300)
    --prices P  for a replay: the prices of this model, or of a JSON file (default: the called
        models')
    """,
    run="foredeck_lab.cost_command",
    histories=PATH,
    ttl=NUMBER,
)


NOTES = command(
    """
    List the stored notes: Markdown files in `notes.folders`, or with `kind: note` in their
    frontmatter. `foredeck index` stores files that no session has read.
    """,
    example="foredeck notes --tag project --orphans",
    options="""
    --tag T  only notes with this tag, or one within it (T/...)
    --orphans  only notes that no other Markdown file refers to
    --broken  instead, references to nothing or to several objects, and unreadable frontmatter
    --all  also Markdown files that are not notes
    """,
    run="graph_command:run_notes",
)


WORKING = command(
    """
    Show or change the page that the current folder's project keeps from session to session. TEXT
    replaces SECTION.
    """,
    example='foredeck working "User Preferences" "- Tests: pytest, no mocks"',
    options="""
    [SECTION]  one section of the page
    [TEXT]  its new text, "" to remove it; - reads stdin
    --session SESSION  the page of this session instead of the project's
    """,
    run="memory_command:run_working",
)


UI_PORT = 8477

UI = command(
    """
    Open the inspector: pages on this machine that show what is stored, and change nothing. The
    address has a token that is valid until Ctrl-C. For programs, every address also works with
    .json at its end.
    """,
    example="foredeck ui",
    options=f"""
    --port N  the port on loopback (default: {UI_PORT}, or another if taken; 0: any)
    --no-open  print the address, and open no browser
    --follow  open the running session; its page updates at each call
    """,
    common=CONFIG,
    run="foredeck_inspector.ui_command",
    port={"type": port_number},
)


MCP = command(
    """
    Serve search, objects, notes and tasks to clients of the Model Context Protocol, over stdin
    and stdout. Private sessions are not served.
    """,
    example="foredeck mcp --project ~/src/app",
    options="""
    --write  let clients change tasks of the project (default: read-only)
    """,
    common=PROJECT + CONFIG,
    run="foredeck_agents.mcp_server.server",
    project=PATH,
)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise ArgumentTypeError(f"must be an address with http:// or https://, not {text!r}")
    return text


PROXY = command(
    """
    Run a coding agent with foredeck between it and its model, over Anthropic's Messages API
    or OpenAI's Chat Completions and Responses APIs. Keys pass through and are not kept.
    Where foredeck fails, the request goes out as it came.
    """,
    example="foredeck proxy -- claude",
    options="""
    agent: [COMMAND...]  the agent with its arguments, after `--`; without one the addresses are
        printed
    --port N  the port on loopback (default: any that is free)
    --upstream URL  where requests go (default: as the agent's environment says)
    --window TOKENS  the model's context window, if unusual for its provider
    --token-file FILE  keep the token, so that with --port a client survives a restart
    --private  keep nothing of what is said when it ends
    --no-tools  give the model none of foredeck's own tools
    """,
    common=CONFIG,
    run="foredeck_agents.proxy.server",
    port={"type": port_number, "default": 0},
    upstream={"type": _address},
    window=NUMBER,
    token_file=PATH,
)


CARRY = command(
    """
    Let a session go on in another agent: its chat, folded as after a pause, becomes a
    session of that agent's own, which the agent itself resumes. The new session has the
    handles of the first, and is linked to it.
    """,
    example="foredeck carry 0199f3a2 --to claude",
    options=f"""
    session: [SESSION]  its id or its start, its name, or an agent's session file ({CHOSEN})
    --to pi|claude|codex|opencode  the agent (default: you are asked)
    --dry-run  say how large it is, what its first prompt costs and what is left out
    --fit TOKENS  fold until the prompt has at most so many tokens
    --model NAME  the model, such as anthropic/claude-opus-5-5, for the cost
    --folder FOLDER  where it goes on (default: where it worked)
    --private  carry a private session, which the other agent keeps like its own
    """,
    run="foredeck_agents.carry.carrying",
    fit=NUMBER,
    folder=PATH,
)
