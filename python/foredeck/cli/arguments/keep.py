"""The arguments of commands that add, keep and move what is stored."""

from __future__ import annotations

from foredeck.cli.arguments import NUMBER, PATH, USUAL, arguments
from foredeck.cli.registry import Command, later

INGEST = Command(
    description="""
    Read the sessions that coding agents have kept into the store, with their messages and tool
    calls. Formats: Pi, Claude Code and Codex, plain or gzipped. Nothing is read twice: of a file
    that has grown only what is new is read, and running the command again after an interruption
    continues it. Lines that cannot be read are counted. Sessions that foredeck recorded itself, and
    those that you have forgotten, are skipped.
    """,
    example="foredeck ingest ~/.claude/projects --dry-run",
    configure=arguments(
        f"""
        paths: [PATH...]  files, or folders with *.jsonl and *.jsonl.gz in them at any depth
            (default: what lies in ~/.pi/agent/sessions, ~/.claude/projects and ~/.codex/sessions,
            after asking)
        --dry-run  say what would be read, and store nothing
        --yes  without PATH: read what is found without asking
        --forgotten  also read sessions that `foredeck forget` has erased
        {USUAL}
        """,
        paths=PATH,
    ),
    run=later("ingest_command"),
)


INDEX = Command(
    description="""
    Store files and folders without an agent, so that notes can be found and linked before any
    session has read them. In a git repository, ignored files are skipped; elsewhere, hidden folders
    (except .pi) and node_modules are. Files that no longer exist are recorded as deleted or
    renamed; unchanged files are not stored again. What a model sees does not change.

    A file at a commit is an object of its own, which never changes. URLs, S3 objects and database
    rows are only pointed to, and nothing is fetched. `activate` accepts all of these names, and
    `foredeck cat` the printed id.

    --renames lists files that are recorded as deleted although the same bytes appeared under
    another name later: they were renamed while neither an engine nor `foredeck index` was watching.
    --repair records the rename wherever there is only one such name; `foredeck index --renames OLD
    NEW` records one yourself. The file's history, links, nickname and pin follow it.
    """,
    example="foredeck index notes/ README.md",
    configure=arguments(
        f"""
        [PATH...]  a file, or a folder with all in it; git:REV:FILE for a file as of a commit,
            git:BLOB, a URL, s3://BUCKET/KEY, or row:DATABASE/TABLE/KEY
        --limit N  refuse more files than this (default: %(default)s)
        --renames  list renames that went unnoticed; with two names, record that the first file,
            which is gone, is now the second
        --repair  with --renames: record those that are clear
        {USUAL}
        """,
        limit=NUMBER | {"default": 20_000},
    ),
    run=later("index_command"),
)


EXPORT = Command(
    description="""
    Write a session, with its objects and all their versions, to a file of JSON lines that can be
    read, searched, and imported into another store. The file holds what the model saw and what its
    tools returned: treat it as confidential. An existing file is replaced. If FILE is -, the
    summary goes to stderr.
    """,
    example="foredeck export 0199aaaa session.foredeck.jsonl",
    configure=arguments(
        f"""
        SESSION  id of a session, or the start of one
        FILE  the file to write, - for stdout
        {USUAL}
        """
    ),
    run=later("transfer_command", "run_export"),
)


IMPORT = Command(
    description="""
    Import a session that `foredeck export` wrote. Every hash is checked before anything is stored;
    a damaged or forged file is refused (exit code 5). Data that is already here and identical is
    left alone. Data that contradicts what is here is refused, unless --as-new imports the session
    under fresh ids. The store is created if there is none.
    """,
    example="foredeck import session.foredeck.jsonl --as-new",
    configure=arguments(
        f"""
        FILE  a file that `export` has written, - for stdin
        --as-new  give the session, its calls and its tool results fresh ids, beside those that are
            here
        {USUAL}
        """
    ),
    run=later("transfer_command", "run_import"),
)


BACKUP = Command(
    description="""
    Write the whole store to one file. Sessions may go on meanwhile: the backup holds the store as
    it was when the command started. It is checked before it replaces an earlier backup of the same
    name, and any SQLite can open it. It holds what your agents saw: treat it as confidential. With
    XTDB it is the same file, copied out of the database, which may be in use.

    `foredeck restore FILE` restores it. Purging or forgetting something does not remove it from
    earlier backups. Indexes are left out; they are rebuilt from the store.
    """,
    example="foredeck backup ~/foredeck-monday.db",
    configure=arguments(
        f"""
        FILE  the file to write
        --verify  read every version and every byte from the backup and from the store, and compare
        {USUAL}
        """,
        file=PATH,
    ),
    run=later("backup_command"),
)


RESTORE = Command(
    description="""
    With a backup: replace the store by it. The backup is checked before anything is changed. An
    existing store is never overwritten; --force renames it first. Close Pi before. With XTDB it is
    copied into the database, which must be empty; --force moves the data of your own node aside.

    With a session and --call: bring the files that the session's tools changed back to what they
    were at that call, with bytes, permissions and links, also outside the working folder. Files
    that somebody else has changed since are listed and left alone, unless --overwrite is given.
    What was there before is kept, and --undo brings it back. An interrupted restore is finished by
    the next one. The exit code is 1 if files were left alone or could not be restored (they are
    listed), or if a command ran in a folder that could not be scanned. In Pi, /foredeck rewind does
    the same.
    """,
    example="foredeck restore ~/foredeck-monday.db",
    configure=arguments(
        f"""
        WHAT  a file that `foredeck backup` has written; or, with --call or --undo, a session or the
            start of its id
        --force  with a backup: even if there is a store already; it is renamed first
        --call N  bring files to what they were when call N was made; one more than the last call is
            the newest state
        | --undo  undo the last restore
        --path PATH...  only this file; may be repeated. Required for a session that was imported
        --to FOLDER  write the files to this folder, and change no others
        --dry-run  show what would happen to each file, and change nothing
        --diff  with --dry-run: print the differences
        --overwrite  also restore files that a person or another session has changed since
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
    Copy everything from one store to another: all objects and all their versions, under the same
    tokens and times, so that references to a version stay valid. `sqlite` and `xtdb` are the
    configured stores; a PATH or URL names another one, and --set xtdb.token_file=FILE its token.
    The source is not changed, and may be in use. Run the same command again to continue an
    interrupted copy, or to update a finished one. A target that holds anything else is refused. At
    the end, every version and every byte is read from both stores and compared.
    """,
    example="foredeck migrate sqlite xtdb",
    configure=arguments(
        f"""
        source: FROM  sqlite, sqlite:PATH, xtdb or xtdb:URL
        target: TO  the same; empty, or a copy half done
        {USUAL}
        """
    ),
    run=later("transfer_command", "run_migrate"),
)
