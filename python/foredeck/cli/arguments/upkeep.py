"""The arguments of commands that add, move, repair and remove what is stored."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import CHOSEN, NUMBER, PATH, PROJECT, SESSION, USUAL, command
from foredeck.derived import LAYERS

INGEST = command(
    """
    Read the sessions of Pi, Claude Code and Codex, plain or gzipped, into the store, each once;
    the same command continues an interrupted run. Sessions that foredeck recorded itself, and
    forgotten ones, are skipped.
    """,
    example="foredeck ingest ~/.claude/projects --dry-run",
    options="""
    paths: [PATH...]  files or folders (default: ~/.pi/agent/sessions, ~/.claude/projects and
        ~/.codex/sessions, after asking)
    --dry-run  say what would be read, and store nothing
    --yes  without PATH: do not ask
    --forgotten  also read forgotten sessions
    """,
    run="foredeck_agents.ingest_command",
    paths=PATH,
)


INDEX = command(
    """
    Store files and folders, so that notes can be found and linked before any session has read
    them. Files that git ignores are skipped. Of URLs, S3 objects and database rows only the name
    is stored.
    """,
    example="foredeck index notes/ README.md",
    options="""
    [PATH...]  a file or folder, git:REV:FILE, git:BLOB, a URL, s3://BUCKET/KEY, or
        row:DATABASE/TABLE/KEY
    --limit N  refuse more files than this (default: %(default)s)
    --renamed OLD NEW  instead, record that a file was renamed
    """,
    run="index_command",
    limit=NUMBER | {"default": 20_000},
    renamed={"nargs": 2, "metavar": ("OLD", "NEW")},
)


EXPORT = command(
    """
    Write a session, with its objects and all their versions, to a file of JSON lines for another
    store; with --project a project's sessions (without private ones), notes, tasks, page, and
    decisions. Treat the file as confidential.
    """,
    example="foredeck export 0199aaaa session.foredeck.jsonl",
    options=f"""
    [SESSION]  {SESSION}
    FILE  the file to write, - for stdout
    --project DIR  write the project of this folder, not a session
    """,
    run="export_command",
    project=PATH,
)


IMPORT = command(
    """
    Import a session or a project that `foredeck export` wrote. A damaged file, or one that
    contradicts what is here, is refused as a whole (exit code 5).
    """,
    example="foredeck import session.foredeck.jsonl --as-new",
    options="""
    FILE  a file that `export` has written, - for stdin
    --as-new  give the session, its calls and its tool results fresh ids
    --project DIR  the imported project's folder (default: the current one)
    """,
    run="import_command",
    project=PATH,
)


BACKUP = command(
    """
    Write the whole store to one file, as it is when the command starts; sessions may go on. The
    file is checked before it replaces an earlier backup. Treat it as confidential. `foredeck
    restore FILE` restores it.
    """,
    example="foredeck backup ~/foredeck-monday.db",
    options="""
    FILE  the file to write
    --verify  compare every version and byte with the store
    """,
    run="backup_command",
    file=PATH,
)


RESTORE = command(
    """
    With a backup: check it, and replace the store by it. Close Pi first. With XTDB the database
    must be empty.

    With a session and --call: bring the files that its tools changed back to what they were at
    that call, like /foredeck rewind in Pi. Files changed by others since are listed and left
    alone; the exit code is then 1. The next restore finishes an interrupted one.
    """,
    example="foredeck restore ~/foredeck-monday.db",
    options=f"""
    [WHAT]  a backup's file; with --call or --undo, a session ({CHOSEN})
    --force  with a backup: rename an existing store first
    --call N  files as of call N; one more than the last is the newest state
    | --undo  undo the last restore
    --path PATH...  only this file (required if the session was imported); may be repeated
    --to FOLDER  write the files to this folder instead
    --dry-run  show what would happen to each file, and change nothing
    --diff  with --dry-run: print the differences
    --overwrite  also restore files that others have changed since
    """,
    run="backup_command:run_restore",
    call=NUMBER,
    path=PATH,
    to=PATH,
)


MIGRATE = command(
    """
    Copy everything from one store to another, and compare both. `sqlite` and `xtdb` are the
    configured stores; a PATH or URL names another one, and --set xtdb.token_file=FILE its token.
    The source may be in use. The same command continues an interrupted copy.
    """,
    example="foredeck migrate sqlite xtdb",
    options="""
    source: FROM  sqlite, sqlite:PATH, xtdb or xtdb:URL
    target: TO  the same; empty, or a copy half done
    """,
    run="migrate_command",
)


# Repairing and removing


DOCTOR = command(
    """
    Check this machine, the configuration and the store, and say how to fix each problem; the
    exit code is 1 if there is one. Close Pi before --vacuum, which needs as much free space as
    the store's file.
    """,
    example="foredeck doctor --json",
    options=f"""
    --rebuild [INDEX]  instead, rebuild an index, which is always safe: {", ".join(LAYERS)}
        (default: all)
    | --vacuum  instead, free the disk space of deleted data
    --forget-refusals  try models again that refused prompts folded before signed reasoning
    """,
    common=USUAL + PROJECT,
    run="doctor_command",
    project=PATH,
    rebuild={"const": "all", "choices": ("all", *LAYERS)},
)


CONFIG = command(
    """
    Print every setting with its value and where it came from. docs/configuration.md explains
    the keys.
    """,
    example="FOREDECK_SEED_WINDOW__TURNS=4 foredeck config",
    options="""
    --completion  instead, print a completion script for bash and zsh
    """,
    common=USUAL + PROJECT,
    run="config_command",
    project=PATH,
)


PURGE = command(
    """
    Replace a text by [purged] in everything that is stored. With a memory entry or an object,
    everything derived from it goes, too. Then everything is read again: exit code 1 means that
    something still has the text, or is left for you to do. Files on your disk, Pi's own session
    files (which are listed), exports, backups and copies on other machines are not changed. Close
    Pi first. The next `foredeck purge` finishes an interrupted one.
    """,
    example="foredeck purge --text sk-live-51H8 --dry-run",
    options="""
    [SOURCE...]  an entry of memory (m-k3f9), or an object, in all versions
    --text PATTERN...  remove exactly this text
    --regex RE...  remove whatever matches this Python regular expression
    --dry-run  show what would change, and change nothing
    --yes  do not ask for confirmation
    """,
    run="purge_command",
)


DAYS = 30


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 36_500:
        raise ArgumentTypeError(f"must be a number of days, not {text!r}")
    return int(text)


FORGET = command(
    """
    Delete a session for good: its chat, calls, tool outputs, and what no other session uses.
    Copies on other machines, exports and backups are not changed; delete Pi's own session file
    yourself. A session that Pi has open is refused.

    --texts removes only the text of old messages that a summary or an observation covers, by
    default in all sessions. They read `(archived)`, and search still finds them. Close Pi first.
    """,
    example="foredeck forget 0199 --dry-run",
    options=f"""
    [SESSION...]  {SESSION}
    --texts  only remove the text of old, summarized messages
    --days N  with --texts: only of messages older than N days (default: {DAYS})
    --dry-run  show what would be deleted, and delete nothing
    --yes  do not ask for confirmation
    """,
    run="forget_command",
    days={"type": _days, "default": DAYS},
)
