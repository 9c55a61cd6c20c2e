"""`foredeck prune`: old messages lose their text."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.output import print_json, typed
from foredeck.cli.person import check_person, confirm
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store
from foredeck.lookup.texts import counted, short_count
from foredeck.names.finding import find_session
from foredeck.pruning import Pruning, erasure_of, plan_pruning
from foredeck.store.clock import DAY_MS, now_ms
from foredeck.store.erasing import erase
from foredeck.store.protocol import Store

DAYS = 30


def _prune(args: Namespace) -> int:
    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
    before_ms = now_ms() - args.days * DAY_MS
    with opened_store(args) as store, Progress("looking through the store") as progress:
        sessions = _sessions(store, args.session)
        plans, looked = plan_pruning(store, sessions, before_ms, progress.advance)
        is_done = not args.dry_run and any(plan.messages or plan.texts for plan in plans)
        if is_done:
            _confirm(args, plans)
            erase(config, store, erasure_of(store, plans, looked), lambda _: progress.advance())
    if args.json:
        print_json({"pruned": is_done, "sessions": [_described(plan) for plan in plans]})
    else:
        _print(plans, "lost their text" if is_done else "would lose their text")
        if is_done:
            print(typed("`foredeck vacuum` gives the space back to the disk."))
    return 0


def _sessions(store: Store, names: list[str]) -> list[str]:
    if names:
        return list(dict.fromkeys(find_session(store, name) for name in names))
    return [str(head.fields["session_id"]) for head in store.query("session")]


def _confirm(args: Namespace, plans: list[Pruning]) -> None:
    if args.yes:
        return
    if sys.stdin.isatty():
        _print(plans, "would lose their text")
    confirm("This cannot be undone. Prune it?", nothing="nothing was pruned")


def _described(plan: Pruning) -> dict[str, object]:
    return {
        "session": plan.session,
        "messages": len(plan.messages),
        "bytes": plan.bytes,
        "young": plan.young,
        "uncovered": plan.uncovered,
        "linked": plan.linked,
    }


def _print(plans: list[Pruning], what: str) -> None:
    for plan in plans:
        if plan.messages:
            told = f"{counted(len(plan.messages), 'message')} {what} ({short_count(plan.bytes)}B)"
            print(f"Session {plan.session}: {told}.")
    print(
        f"{counted(sum(len(plan.messages) for plan in plans), 'message')} {what}. Kept: "
        f"{sum(plan.young for plan in plans):,} too recent, "
        f"{sum(plan.uncovered for plan in plans):,} not summarized, "
        f"{sum(plan.linked for plan in plans):,} linked to open tasks."
    )


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 36_500:
        raise ArgumentTypeError(f"must be a number of days, not {text!r}")
    return int(text)


def _configure(parser: ArgumentParser) -> None:
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
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be removed, and remove nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Remove the text of old messages from the store for good, to save space. A message\n"
        "loses its text if it is old enough, a summary or an observation covers it, and no\n"
        "open task is linked to it. Its entry stays: it reads `(archived)`, keeps its place,\n"
        "its tool calls and its distinct words, and search still finds it by them. Tool\n"
        "results, files, summaries and long texts of yours are objects of their own and are\n"
        "kept, as is every text that anything else needs. The turns inside a compaction are\n"
        "removed with them. The text is removed from the store's file and its log, and from\n"
        "XTDB's local copy and database; the next search rebuilds its index. Copies on other\n"
        "machines, exports, backups and Pi's own session files are not changed; a session\n"
        "that Pi resumes may bring text back. Close Pi first: if some of the text is used\n"
        "meanwhile, nothing is removed."
    ),
    example="foredeck prune --dry-run",
    configure=_configure,
    run=_prune,
)
