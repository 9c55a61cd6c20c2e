"""`foredeck purge`: a text, or a source with all that came from it, out of everything stored."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.output import print_json
from foredeck.cli.person import check_person, confirm
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store, warn_of_others
from foredeck.errors import ForedeckError, StoreUnavailable
from foredeck.lookup.finding import find_object
from foredeck.lookup.texts import counted, printable

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.memory.user_acts import UserActs
    from foredeck.store.protocol import Head, LocalStore
    from foredeck.store.purging import Purge
    from foredeck.store.redaction import Redaction


PATIENCE_S = 20.0
"""For a database that is told what was last written."""


class NotPurged(ForedeckError):
    """Nothing was purged: what is to go was not said, or not confirmed."""

    exit_code = 2


@dataclass(slots=True)
class _Wanted:
    """What is to go: texts by patterns, texts as a whole, and entries of memory."""

    patterns: list[re.Pattern[str]] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)

    def redaction(self) -> Redaction:
        from foredeck.store.redaction import Redaction

        return Redaction(self.patterns, self.literals, frozenset(self.whole))


def _run(args: Namespace) -> int:
    from foredeck.derived.emptying import layers_emptied
    from foredeck.store.purging import carry_out, check_alone, finish_pending

    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
        check_alone(config)
        if finish_pending(config):
            print("foredeck: a purge that was interrupted is finished now", file=sys.stderr)
            if not (args.source or args.text or args.regex):
                return 0
    with opened_store(args) as store, Progress("looking through the store") as progress:
        if not store.fetch_all(progress.advance):
            warn_of_others()
        memory = _memory(config, store)
        wanted = _wanted(args, store, memory)
        purge = _planned(store, memory, wanted, progress)
        if not args.dry_run and not purge.is_empty:
            _confirm(args, purge)
            if wanted.entries and memory.restore_without(wanted.entries):
                purge = _planned(store, memory, wanted, progress)
            _settle(config)
            with layers_emptied(config.home, store):
                carry_out(config, purge)
        files = _host_files(store, wanted)
    return _report(args, purge, files)


def _settle(config: Config) -> None:
    """Wait for what the database was not told yet. Raises `StoreUnavailable`."""
    from foredeck.store.opening import open_store
    from foredeck.store.registry import store_kind

    kind, end = store_kind(config.store), time.monotonic() + PATIENCE_S
    with closing(open_store(config)):  # which delivers while it is open
        while True:
            try:
                return kind.check_settled(config)
            except StoreUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)


def _memory(config: Config, store: LocalStore) -> UserActs:
    from foredeck.engine.memory import caps_of
    from foredeck.memory.user import load_user
    from foredeck.memory.user_acts import UserActs

    return UserActs(store, load_user(config.home), caps_of(config))


def _planned(store: LocalStore, memory: UserActs, wanted: _Wanted, progress: Progress) -> Purge:
    from foredeck.memory.purging import vouch_again
    from foredeck.store.purging import plan_purge

    amend = vouch_again(memory.user)
    return plan_purge(store, wanted.redaction(), wanted.entries, amend, progress.advance)


def _wanted(args: Namespace, store: LocalStore, memory: UserActs) -> _Wanted:
    from foredeck.memory.purging import SHORTEST_TEXT, lines_in_prompts
    from foredeck.store.redaction import literal_patterns

    wanted = _Wanted()
    for text in args.text:
        if len(text) < SHORTEST_TEXT:
            raise NotPurged(f"{text!r} is too short: give at least {SHORTEST_TEXT} characters")
        wanted.literals.append(text)
    wanted.patterns += literal_patterns(wanted.literals)
    for expression in args.regex:
        try:
            wanted.patterns.append(re.compile(expression))
        except re.error as error:
            raise NotPurged(f"{expression!r} is no regular expression: {error}") from error
    for name in args.source:
        _want_source(wanted, store, memory, name)
    if not wanted.patterns and not wanted.whole and not wanted.entries:
        raise NotPurged("say what is to go: an entry, an object, or --text PATTERN")
    entries = [entry for id in wanted.entries if (entry := memory.get(id)) is not None]
    wanted.patterns += lines_in_prompts(store, entries)
    return wanted


def _want_source(wanted: _Wanted, store: LocalStore, memory: UserActs, name: str) -> None:
    """An entry of memory, or an object with its text in all versions; with what came from it."""
    from foredeck.memory.entry import MARK
    from foredeck.memory.purging import family_of, ids_of, said_by_tool

    if name.startswith(MARK):
        wanted.entries.update(ids_of(family_of(memory, memory.find(name).id)))
        return
    head = find_object(store, name).head
    for version in store.history(head.id):
        if isinstance(digest := version.fields.get("text_hash"), str):
            wanted.whole.add(digest)
            _want_short(wanted, store, version)
    wanted.entries.update(ids_of(family_of(memory, head.id)))
    wanted.entries.update(ids_of(said_by_tool(memory, head.fields.get("turn_ref"))))
    if head.type == "toolcall":
        _want_notes(wanted, store, head)


def _want_notes(wanted: _Wanted, store: LocalStore, result: Head) -> None:
    """What was noted of it: wherever that is a whole text, and where it is long inside others."""
    from foredeck.model.canonical import hash_text
    from foredeck.observations.purging import LONG_NOTE, noted_of, texts_noted
    from foredeck.store.redaction import literal_patterns

    texts = texts_noted(store, noted_of(store, result))
    wanted.whole.update(map(hash_text, texts))
    wanted.patterns += literal_patterns(text for text in texts if len(text) >= LONG_NOTE)


def _want_short(wanted: _Wanted, store: LocalStore, version: Head) -> None:
    """A short text has no blob of its own: it goes wherever it stands as it is."""
    from foredeck.memory.purging import SHORTEST_TEXT
    from foredeck.model.kinds import kind_of
    from foredeck.model.messages import LONG_STRING
    from foredeck.store.redaction import literal_patterns

    document = store.get(version.id, kind_of(version.type), version.token)
    text = "" if document is None else document.content or ""
    if SHORTEST_TEXT <= len(text) < LONG_STRING:
        wanted.literals.append(text)
        wanted.patterns += literal_patterns([text])


def _confirm(args: Namespace, purge: Purge) -> None:
    if args.yes:
        return
    if sys.stdin.isatty():
        print(_told(purge, "would be written again"))
    confirm("This cannot be undone. Purge it?", nothing="nothing was purged")


def _host_files(store: LocalStore, wanted: _Wanted) -> list[str]:
    """Files of the host's that hold the text: they are not foredeck's, and are not touched."""
    redaction, found = wanted.redaction(), []
    for head in store.query("session"):
        path = head.fields.get("host_file")
        try:
            data = Path(path).read_bytes() if path else b""
        except OSError:
            continue
        if redaction.data(data) != data:
            found.append(str(path))
    return sorted(set(found))


def _report(args: Namespace, purge: Purge, files: list[str]) -> int:
    done = not args.dry_run
    if args.json:
        described: dict[str, Any] = {
            "purged": done,
            "documents": len(purge.ids),
            "versions": dict(sorted(purge.changed.items())),
            "blobs": len(purge.stale),
            "sessions": sorted(purge.sessions),
            "host_files": files,
        }
        print_json(described)
        return 0
    print(_told(purge, "written again" if done else "would be written again"))
    for path in files:
        print(printable(f"Pi's own file still holds it: {path}"))
    if done and not purge.is_empty:
        print("`foredeck vacuum` gives the space back to the disk.")
    return 0


def _told(purge: Purge, what: str) -> str:
    if purge.is_empty:
        return "Nothing that is stored holds it."
    versions = sum(purge.changed.values())
    return (
        f"{counted(len(purge.ids), 'document')} and {counted(len(purge.stale), 'text')} {what}: "
        f"{counted(versions, 'version')} in which it stands as [purged]. Prompts of "
        f"{counted(len(purge.sessions), 'session')} are not byte for byte what was sent any more."
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="*",
        help="an entry of memory (m-k3f9), or an object: its text in all versions, and the entries "
        "of memory that came from it",
    )
    parser.add_argument(
        "--text", metavar="PATTERN", action="append", default=[], help="this very text, everywhere"
    )
    parser.add_argument(
        "--regex",
        metavar="RE",
        action="append",
        default=[],
        help="what matches this regular expression of Python's, everywhere",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change; do nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Put a text out of everything that is stored: all versions of files, messages, tool\n"
        "results, notes, memory, and the recorded prompts, in which [purged] stands for it, and\n"
        "which are not byte for byte what was sent any more. The index of `foredeck search` is\n"
        "emptied and made again. With an entry of memory, or an object, all that came from it\n"
        "goes, and what had made room for it comes back. Files on your disk, Pi's own session\n"
        "files (which are named), exports, backups and other machines' copies are not reached.\n"
        "End Pi first. One that is interrupted is finished by the next `foredeck purge`."
    ),
    example="foredeck purge --text sk-live-51H8 --dry-run",
    configure=_configure,
    run=_run,
)
