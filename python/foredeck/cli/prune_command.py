"""`foredeck prune`: old messages lose their text."""

from __future__ import annotations

from argparse import Namespace

from foredeck.cli.common import resolve_config
from foredeck.cli.output import print_json, typed
from foredeck.cli.person import check_person, confirm
from foredeck.cli.progress import Progress
from foredeck.cli.stored import opened_store
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, short_count
from foredeck.names.finding import find_session
from foredeck.pruning import Pruning, erasure_of, plan_pruning
from foredeck.store.clock import DAY_MS, now_ms
from foredeck.store.erasing import erase
from foredeck.store.protocol import Store


def run(args: Namespace) -> int:
    """`foredeck prune`."""
    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
    before_ms = now_ms() - args.days * DAY_MS
    with opened_store(args) as store, Progress("looking through the store") as progress:
        sessions = _sessions(store, args.session)
        plans, scanned = plan_pruning(store, sessions, before_ms, progress.advance)
        is_done = not args.dry_run and any(plan.messages or plan.texts for plan in plans)
        if is_done:
            confirm(
                "This cannot be undone. Prune it?",
                nothing="nothing was pruned",
                yes=args.yes,
                show=lambda: _print(plans, "would lose their text"),
            )
            erase(config, store, erasure_of(store, plans, scanned), lambda _: progress.advance())
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
    return [head.view(SessionDocument).session_id for head in store.query("session")]


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
            removed = (
                f"{counted(len(plan.messages), 'message')} {what} ({short_count(plan.bytes)}B)"
            )
            print(f"Session {plan.session}: {removed}.")
    print(
        f"{counted(sum(len(plan.messages) for plan in plans), 'message')} {what}. Kept: "
        f"{sum(plan.young for plan in plans):,} too recent, "
        f"{sum(plan.uncovered for plan in plans):,} not summarized, "
        f"{sum(plan.linked for plan in plans):,} linked to open tasks."
    )
