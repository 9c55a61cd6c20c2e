"""The arguments of commands that repair and remove."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import PATH, PROJECT, USUAL, arguments
from foredeck.cli.registry import Command, later
from foredeck.derived import LAYERS

DOCTOR = Command(
    description="""
    Check Python, Node, Pi, the configuration, the state folder, the store, how prompts are
    measured, and file watching, and say how to fix each problem. The exit code is 0 if there is
    none, and 1 if there is. Nothing is changed, except with --forget-refusals, --rebuild or
    --vacuum. Indexes update themselves; rebuilding one is always safe, and takes some time.

    --vacuum takes as long as copying the store's file, and needs as much free space: close Pi
    first. With XTDB, only the local copy shrinks; XTDB compacts its own files by itself. The search
    index is merged, which makes searching fastest.
    """,
    example="foredeck doctor --json",
    configure=arguments(
        f"""
        --rebuild [INDEX]  instead of checking, make an index again from the store, where it is
            damaged or doubted: {", ".join(LAYERS)} (default: all)
        | --vacuum  instead of checking, return the disk space of deleted data to the system, from
            the store and the indexes
        --forget-refusals  try all models again that refused a prompt because of what was folded
            before their signed reasoning
        {USUAL}{PROJECT}
        """,
        project=PATH,
        rebuild={"const": "all", "choices": ("all", *LAYERS)},
    ),
    run=later("doctor_command"),
)


CONFIG = Command(
    description="""
    Print every setting with its value and where it came from. Each place overrides the one before:
    defaults, your file, the project's file (in a trusted project), environment variables
    FOREDECK_*, flags. docs/configuration.md explains the keys.
    """,
    example="FOREDECK_SEED_WINDOW__TURNS=4 foredeck config",
    configure=arguments(
        f"""
        --completion  instead, print a script that completes commands and options in bash and zsh:
            eval "$(foredeck config --completion)"
        {USUAL}{PROJECT}
        """,
        project=PATH,
    ),
    run=later("config_command"),
)


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
    configure=arguments(
        f"""
        [SOURCE...]  an entry of memory (m-k3f9), or an object: its text in all versions, and the
            entries of memory that came from it
        --text PATTERN...  remove exactly this text
        --regex RE...  remove whatever matches this Python regular expression
        --dry-run  show what would change, and change nothing
        --yes  do not ask for confirmation
        {USUAL}
        """
    ),
    run=later("purge_command"),
)


DAYS = 30


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 36_500:
        raise ArgumentTypeError(f"must be a number of days, not {text!r}")
    return int(text)


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

    --texts removes only the text of old messages, of all sessions where none is named. A message
    loses its text if it is old enough, a summary or an observation covers it, and no open task is
    linked to it. Its entry stays: it reads `(archived)`, keeps its place, its tool calls and its
    distinct words, and search still finds it by them. Tool results, files, summaries and long texts
    of yours are objects of their own and are kept, as is every text that anything else needs. The
    turns inside a compaction are removed with them. A session that Pi resumes may bring text back:
    close Pi first. If some of the text is used meanwhile, nothing is removed.
    """,
    example="foredeck forget 0199 --dry-run",
    configure=arguments(
        f"""
        [SESSION...]  its id, or the start of it
        --texts  only remove the text of old messages that have been summarized
        --days N  with --texts: only of messages older than N days (default: {DAYS})
        --dry-run  show what would be deleted, and delete nothing
        --yes  do not ask for confirmation
        {USUAL}
        """,
        days={"type": _days, "default": DAYS},
    ),
    run=later("forget_command"),
)
