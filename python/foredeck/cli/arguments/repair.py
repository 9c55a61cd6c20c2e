"""The arguments of commands that repair and remove."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from foredeck.cli.arguments import add_project_flags, add_usual_flags
from foredeck.cli.registry import Command, later
from foredeck.derived import LAYERS


def _doctor(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rebuild",
        metavar="INDEX",
        nargs="?",
        const="all",
        choices=("all", *LAYERS),
        help="instead of checking, make an index again from the store, where it is damaged or "
        f"doubted: {', '.join(LAYERS)} (default: all)",
    )
    parser.add_argument(
        "--forget-refusals",
        action="store_true",
        help="try all models again that refused a prompt because of what was folded before their "
        "signed reasoning",
    )
    add_usual_flags(parser)
    add_project_flags(parser)


DOCTOR = Command(
    description="""
    Check Python, Node, Pi, the configuration, the state folder, the store, how prompts are
    measured, and file watching, and say how to fix each problem. The exit code is 0 if there is
    none, and 1 if there is. Nothing is changed, except with --forget-refusals or --rebuild. Indexes
    update themselves; rebuilding one is always safe, and takes some time.
    """,
    example="foredeck doctor --json",
    configure=_doctor,
    run=later("doctor_command"),
)


def _config(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--completion",
        action="store_true",
        help="instead, print a script that completes commands and options in bash and zsh: "
        'eval "$(foredeck config --completion)"',
    )
    add_usual_flags(parser)
    add_project_flags(parser)


CONFIG = Command(
    description="""
    Print every setting with its value and where it came from. Each place overrides the one before:
    defaults, your file, the project's file (in a trusted project), environment variables
    FOREDECK_*, flags. docs/configuration.md explains the keys.
    """,
    example="FOREDECK_SEED_WINDOW__TURNS=4 foredeck config",
    configure=_config,
    run=later("config_command"),
)


def _renames(parser: ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", nargs="?", help="a file that is gone")
    parser.add_argument("new", metavar="NEW", nargs="?", help="what it is called now")
    parser.add_argument(
        "--repair", action="store_true", help="store the renames that are clear, instead of a list"
    )
    add_usual_flags(parser)


RENAMES = Command(
    description="""
    List files that are recorded as deleted although the same bytes appeared under another name
    later: they were renamed while neither an engine nor `foredeck index` was watching, or before
    foredeck could detect it. --repair records the rename wherever there is only one such name; OLD
    and NEW record one yourself. The file's history, links, nickname and pin follow it.
    """,
    example="foredeck renames --repair",
    configure=_renames,
    run=later("index_command", "run_renames"),
)


def _add_erasing_flags(parser: ArgumentParser, dry_run: str) -> None:
    """Those of a command that erases: `--dry-run`, what it shows being said, `--yes` and the usual
    ones."""
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_usual_flags(parser)


def _purge(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="*",
        help="an entry of memory (m-k3f9), or an object: its text in all versions, and the entries "
        "of memory that came from it",
    )
    parser.add_argument(
        "--text", metavar="PATTERN", action="append", default=[], help="remove exactly this text"
    )
    parser.add_argument(
        "--regex",
        metavar="RE",
        action="append",
        default=[],
        help="remove whatever matches this Python regular expression",
    )
    _add_erasing_flags(parser, "show what would change, and change nothing")


PURGE = Command(
    description="""
    Remove a text from everything that is stored: all versions of files, messages, tool results,
    notes, memory, and recorded prompts. [purged] takes its place there, so these prompts are no
    longer byte for byte what was sent. If a text was cut, eight characters of it at the cut are
    enough. The index of `foredeck search` is rebuilt. If you name a memory entry or an object,
    everything derived from it is removed, and what it had replaced comes back. Then everything is
    read again: exit code 1 means that something still holds the text, or that there is something
    left for you to do, and says what. An XTDB node that foredeck runs is stopped for this and
    started again. Files on your disk, Pi's own session files (which are listed), exports, backups
    and copies on other machines are not changed. Close Pi first. If it is interrupted, the next
    `foredeck purge` finishes it.
    """,
    example="foredeck purge --text sk-live-51H8 --dry-run",
    configure=_purge,
    run=later("purge_command"),
)


def _forget(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="+", help="its id, or the start of it")
    _add_erasing_flags(parser, "show what would be deleted, and delete nothing")


FORGET = Command(
    description="""
    Delete a session for good: its chat, its calls and tool outputs, and the files and texts that no
    other session uses. Anything shared is kept, and so are calls that a fork continues from. A
    tombstone records that the session existed. The text is removed from the store's file and its
    log, from XTDB's local copy and database, and from the index of `foredeck search`; other indexes
    are emptied, and rebuilt when next needed. Copies on other machines, exports and backups are not
    changed. The command refuses a session that Pi has open, and refuses to be run by an agent; if
    another process starts to use part of the session meanwhile, nothing is deleted. It cannot see
    which sessions other machines have open on a shared database. Delete Pi's own session file
    yourself. The store is read once, however many sessions are named: seconds for some thousand
    sessions.
    """,
    example="foredeck forget 0199 --dry-run",
    configure=_forget,
    run=later("forget_command"),
)


DAYS = 30


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 36_500:
        raise ArgumentTypeError(f"must be a number of days, not {text!r}")
    return int(text)


def _prune(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="*",
        help="its id, or the start of it (default: all sessions)",
    )
    parser.add_argument(
        "--days",
        type=_days,
        default=DAYS,
        metavar="N",
        help=f"only messages older than N days (default: {DAYS})",
    )
    _add_erasing_flags(parser, "show what would be removed, and remove nothing")


PRUNE = Command(
    description="""
    Remove the text of old messages from the store for good, to save space. A message loses its text
    if it is old enough, a summary or an observation covers it, and no open task is linked to it.
    Its entry stays: it reads `(archived)`, keeps its place, its tool calls and its distinct words,
    and search still finds it by them. Tool results, files, summaries and long texts of yours are
    objects of their own and are kept, as is every text that anything else needs. The turns inside a
    compaction are removed with them. The text is removed from the store's file and its log, and
    from XTDB's local copy and database; the next search rebuilds its index. Copies on other
    machines, exports, backups and Pi's own session files are not changed; a session that Pi resumes
    may bring text back. Close Pi first: if some of the text is used meanwhile, nothing is removed.
    """,
    example="foredeck prune --dry-run",
    configure=_prune,
    run=later("forget_command", "run_prune"),
)


VACUUM = Command(
    description="""
    Return the disk space of deleted data to the system. This takes as long as copying the store's
    file, and needs as much free space. Close Pi first. With XTDB, only the local copy shrinks; XTDB
    compacts its own files by itself. The search index is merged, which makes searching fastest, and
    the other indexes are shrunk as well.
    """,
    example="foredeck vacuum",
    configure=add_usual_flags,
    run=later("forget_command", "run_vacuum"),
)
