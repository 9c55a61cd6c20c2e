"""`foredeck forget`: erases whole sessions."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, typed
from foredeck.cli.person import check_person, confirm, named_or_chosen
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused
from foredeck.model.figures import counted, short_bytes
from foredeck.names import find_session
from foredeck.store.at_work import engines_at_work
from foredeck.store.erasing import Forgetting, erase, erasure_of, plan_forgetting
from foredeck.store.store import Store

_VACUUM = "`foredeck doctor --vacuum` gives the space back to the disk."


def run(args: Namespace) -> int:
    """`foredeck forget`."""
    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
    args.session = args.session or [named_or_chosen(args, None)]
    with opened_store(args) as store, Progress("looking through the store") as progress:
        sessions = list(dict.fromkeys(_session(store, name) for name in args.session))
        if not args.dry_run:
            _check_closed(config.home, sessions)
        plans = plan_forgetting(store, sessions, progress.advance)
        if not args.dry_run:
            progress.clear()
            confirm(
                "This cannot be undone. Delete it?",
                nothing="nothing was deleted",
                yes=args.yes,
                show=lambda: print("\n".join(_summary(plan, "would go") for plan in plans)),
            )
            # Again: a session may have been opened while the user was asked.
            _check_closed(config.home, sessions)
            erase(
                config,
                store,
                erasure_of(plans),
                lambda sessions: progress.advance(note=f"erasing {sessions[0]}"),
            )
        if store.is_shared and not args.json:
            print(
                "Which sessions other machines have open cannot be seen here. Where this is one of "
                "them it goes on there, and what it writes is stored again."
            )
    return _report(args, plans)


def _session(store: Store, name: str) -> str:
    """The session that is meant. Raises `NotFound`."""
    # Of a session that was erased while it was open only calls may be left.
    return name if store.query("call", {"session": name}, limit=1) else find_session(store, name)


def _check_closed(home: Path, sessions: list[str]) -> None:
    for engine in engines_at_work(home):
        if engine.session in sessions:
            where = f" (process {engine.host})" if engine.host else ""
            raise CommandRefused(
                f"session {engine.session} is open in Pi{where}: end it there first"
            )


def _report(args: Namespace, plans: list[Forgetting]) -> int:
    erased = not args.dry_run
    described = [
        {
            "session": plan.session,
            "erased": erased,
            "documents": len(plan.documents),
            "blobs": len(plan.blobs),
            "bytes": plan.bytes,
            "kept": plan.kept,
        }
        for plan in plans
    ]
    lines = [_summary(plan, "erased" if erased else "would go") for plan in plans]
    value = described[0] if len(args.session) == 1 else {"sessions": described}
    return answer(args, value, [*lines, *([typed(_VACUUM)] if erased else [])])


def _summary(plan: Forgetting, what: str) -> str:
    note = f"; {counted(plan.kept, 'object')} shared with other sessions stay" if plan.kept else ""
    return (
        f"Session {plan.session}: {counted(len(plan.documents), 'document')} and "
        f"{counted(len(plan.blobs), 'text')} ({short_bytes(plan.bytes)}) {what}{note}."
    )
