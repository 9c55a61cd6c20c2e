"""`foredeck forget`: erases whole sessions, or old texts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from foredeck import pruning
from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, typed
from foredeck.cli.person import check_person, confirm, named_or_chosen
from foredeck.cli.stored import opened_store
from foredeck.config import Config
from foredeck.errors import CommandRefused
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, short_bytes
from foredeck.names import find_session
from foredeck.store.at_work import engines_at_work
from foredeck.store.clock import DAY_MS, now_ms
from foredeck.store.erasing import Forgetting, erase, erasure_of, plan_forgetting
from foredeck.store.store import Store

_VACUUM = "`foredeck doctor --vacuum` gives the space back to the disk."


def run(args: Namespace) -> int:
    """`foredeck forget`."""
    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
    if args.texts:
        return _prune(args, config)
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


def _prune(args: Namespace, config: Config) -> int:
    before_ms = now_ms() - args.days * DAY_MS
    with opened_store(args) as store, Progress("looking through the store") as progress:
        sessions = _sessions_to_prune(store, args.session)
        plans, scanned = pruning.plan_pruning(store, sessions, before_ms, progress.advance)
        is_done = not args.dry_run and any(plan.messages or plan.texts for plan in plans)
        if is_done:
            progress.clear()
            confirm(
                "This cannot be undone. Prune it?",
                nothing="nothing was pruned",
                yes=args.yes,
                show=lambda: print("\n".join(_pruned(plans, "would lose their text"))),
            )
            erasure = pruning.erasure_of(store, plans, scanned)
            erase(config, store, erasure, lambda _: progress.advance())
    value = {"pruned": is_done, "sessions": [_pruned_json(plan) for plan in plans]}
    lines = [*_pruned(plans, "lost their text" if is_done else "would lose their text")]
    return answer(args, value, [*lines, *([typed(_VACUUM)] if is_done else [])])


def _sessions_to_prune(store: Store, names: list[str]) -> list[str]:
    if names:
        return list(dict.fromkeys(find_session(store, name) for name in names))
    return [head.view(SessionDocument).session_id for head in store.query("session")]


def _pruned_json(plan: pruning.Pruning) -> dict[str, object]:
    numbers = ("bytes", "young", "uncovered", "linked")
    counts = {name: getattr(plan, name) for name in numbers}
    return {"session": plan.session, "messages": len(plan.messages), **counts}


def _pruned(plans: list[pruning.Pruning], what: str) -> Iterator[str]:
    for plan in plans:
        if plan.messages:
            messages = counted(len(plan.messages), "message")
            yield f"Session {plan.session}: {messages} {what} ({short_bytes(plan.bytes)})."
    yield (
        f"{counted(sum(len(plan.messages) for plan in plans), 'message')} {what}. Kept: "
        f"{sum(plan.young for plan in plans):,} too recent, "
        f"{sum(plan.uncovered for plan in plans):,} not summarized, "
        f"{sum(plan.linked for plan in plans):,} linked to open tasks."
    )
