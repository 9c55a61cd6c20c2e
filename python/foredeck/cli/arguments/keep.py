"""The arguments of commands that add, keep and move what is stored."""

from __future__ import annotations

from foredeck.cli.arguments import NUMBER, PATH, USUAL, arguments
from foredeck.cli.registry import Command, later

INGEST = Command(
    description="""
    Read the sessions of Pi, Claude Code and Codex, plain or gzipped, into the store. Nothing is
    read twice; the same command continues an interrupted run. Sessions that foredeck recorded
    itself, and forgotten ones, are skipped.
    """,
    example="foredeck ingest ~/.claude/projects --dry-run",
    configure=arguments(
        f"""
        paths: [PATH...]  files or folders (default: ~/.pi/agent/sessions, ~/.claude/projects and
            ~/.codex/sessions, after asking)
        --dry-run  say what would be read, and store nothing
        --yes  without PATH: do not ask
        --forgotten  also read forgotten sessions
        {USUAL}
        """,
        paths=PATH,
    ),
    run=later("foredeck_agents.ingest_command"),
)


INDEX = Command(
    description="""
    Store files and folders, so that notes can be found and linked before any session has read
    them. Files that git ignores are skipped. What a model sees does not change. Of URLs, S3
    objects and database rows only the name is stored.

    --renames lists deleted files whose bytes appeared under another name while nothing was
    watching. --repair records the clear ones, `foredeck index --renames OLD NEW` one that you
    name.
    """,
    example="foredeck index notes/ README.md",
    configure=arguments(
        f"""
        [PATH...]  a file or folder, git:REV:FILE, git:BLOB, a URL, s3://BUCKET/KEY, or
            row:DATABASE/TABLE/KEY
        --limit N  refuse more files than this (default: %(default)s)
        --renames  list unnoticed renames; with two names, record that one
        --repair  with --renames: record those that are clear
        {USUAL}
        """,
        limit=NUMBER | {"default": 20_000},
    ),
    run=later("index_command"),
)


EXPORT = Command(
    description="""
    Write a session, with its objects and all their versions, to a file of JSON lines for another
    store; with --project a project's sessions (without private ones), notes, tasks, page, and
    decisions. Treat the file as confidential.
    """,
    example="foredeck export 0199aaaa session.foredeck.jsonl",
    configure=arguments(
        f"""
        [SESSION]  a session's id or the start of it; without it you choose from a list
        FILE  the file to write, - for stdout
        --project DIR  write the project of this folder, not a session
        {USUAL}
        """,
        project=PATH,
    ),
    run=later("export_command", "run_export"),
)


IMPORT = Command(
    description="""
    Import a session or a project that `foredeck export` wrote. Everything is checked first; a
    damaged file, or one that contradicts what is here, is refused (exit code 5).
    """,
    example="foredeck import session.foredeck.jsonl --as-new",
    configure=arguments(
        f"""
        FILE  a file that `export` has written, - for stdin
        --as-new  give the session, its calls and its tool results fresh ids
        --project DIR  the folder of the imported project (default: the current one)
        {USUAL}
        """,
        project=PATH,
    ),
    run=later("import_command", "run_import"),
)


BACKUP = Command(
    description="""
    Write the whole store to one file, as it is when the command starts; sessions may go on. It
    is checked before it replaces an earlier backup. Treat it as confidential. `foredeck restore
    FILE` restores it.
    """,
    example="foredeck backup ~/foredeck-monday.db",
    configure=arguments(
        f"""
        FILE  the file to write
        --verify  compare every version and byte with the store
        {USUAL}
        """,
        file=PATH,
    ),
    run=later("backup_command"),
)


RESTORE = Command(
    description="""
    With a backup: replace the store by it, once it is checked. Close Pi before. With XTDB the
    database must be empty; --force moves the data of your own node aside.

    With a session and --call: bring the files that its tools changed back to what they were at
    that call, like /foredeck rewind in Pi. Files changed by others since are listed and left
    alone; the exit code is then 1. The next restore finishes an interrupted one.
    """,
    example="foredeck restore ~/foredeck-monday.db",
    configure=arguments(
        f"""
        [WHAT]  a backup's file; or, with --call or --undo, a session: without it you choose from a
            list
        --force  with a backup: rename an existing store first
        --call N  files as of call N; one more than the last is the newest state
        | --undo  undo the last restore
        --path PATH...  only this file; may be repeated. Required for a session that was imported
        --to FOLDER  write the files to this folder instead
        --dry-run  show what would happen to each file, and change nothing
        --diff  with --dry-run: print the differences
        --overwrite  also restore files that others have changed since
        {USUAL}
        """,
        call=NUMBER,
        path=PATH,
        to=PATH,
    ),
    run=later("backup_command", "run_restore"),
)


MIGRATE = Command(
    description="""
    Copy everything from one store to another, then read both and compare. `sqlite` and `xtdb`
    are the configured stores; a PATH or URL names another one, and --set xtdb.token_file=FILE
    its token. The source may be in use. The same command continues an interrupted copy.
    """,
    example="foredeck migrate sqlite xtdb",
    configure=arguments(
        f"""
        source: FROM  sqlite, sqlite:PATH, xtdb or xtdb:URL
        target: TO  the same; empty, or a copy half done
        {USUAL}
        """
    ),
    run=later("migrate_command", "run_migrate"),
)
