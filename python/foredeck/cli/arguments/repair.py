"""The arguments of commands that repair and remove."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import PATH, PROJECT, USUAL, arguments
from foredeck.cli.registry import Command, later
from foredeck.derived import LAYERS

DOCTOR = Command(
    description="""
    Check this machine, the configuration and the store, and say how to fix each problem; the
    exit code is 1 if there is one. Close Pi before --vacuum, which needs as much free space as
    the store's file.
    """,
    example="foredeck doctor --json",
    configure=arguments(
        f"""
        --rebuild [INDEX]  instead of checking, make an index anew, which is always safe:
            {", ".join(LAYERS)} (default: all)
        | --vacuum  instead of checking, free the disk space of deleted data
        --forget-refusals  try models again that refused prompts folded before signed reasoning
        {USUAL}{PROJECT}
        """,
        project=PATH,
        rebuild={"const": "all", "choices": ("all", *LAYERS)},
    ),
    run=later("doctor_command"),
)


CONFIG = Command(
    description="""
    Print every setting with its value and where it came from. docs/configuration.md explains
    the keys.
    """,
    example="FOREDECK_SEED_WINDOW__TURNS=4 foredeck config",
    configure=arguments(
        f"""
        --completion  instead, print a completion script for bash and zsh:
            eval "$(foredeck config --completion)"
        {USUAL}{PROJECT}
        """,
        project=PATH,
    ),
    run=later("config_command"),
)


PURGE = Command(
    description="""
    Remove a text from everything that is stored; [purged] takes its place. With a memory entry
    or an object, everything derived from it goes, too. Then everything is read again: exit
    code 1 means that something still holds the text, or is left for you to do. Files on your
    disk, Pi's own session files (which are listed), exports, backups and copies on other
    machines are not changed. Close Pi first. The next `foredeck purge` finishes an interrupted
    one.
    """,
    example="foredeck purge --text sk-live-51H8 --dry-run",
    configure=arguments(
        f"""
        [SOURCE...]  an entry of memory (m-k3f9), or an object: its text in all versions
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
    Delete a session for good: its chat, calls, tool outputs, and what no other session uses.
    Copies on other machines, exports and backups are not changed; delete Pi's own session file
    yourself. A session that Pi has open is refused, and so is an agent.

    --texts removes only the text of old messages that a summary or an observation covers, by
    default in all sessions. They read `(archived)`, and search still finds them. Close Pi
    first.
    """,
    example="foredeck forget 0199 --dry-run",
    configure=arguments(
        f"""
        [SESSION...]  its id, or the start of it; without it you choose from a list
        --texts  only remove the text of old, summarized messages
        --days N  with --texts: only of messages older than N days (default: {DAYS})
        --dry-run  show what would be deleted, and delete nothing
        --yes  do not ask for confirmation
        {USUAL}
        """,
        days={"type": _days, "default": DAYS},
    ),
    run=later("forget_command"),
)
