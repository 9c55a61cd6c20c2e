"""`foredeck backup` and `restore`: the store as a file and back, and the files of a session as they
were at a call."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, print_content
from foredeck.cli.person import check_person
from foredeck.cli.stored import opened_store
from foredeck.config import ensure_home
from foredeck.derived.layer import FOLDER
from foredeck.errors import ConfigError, NotFound, StoreUnavailable
from foredeck.memory.trust import KEY_FILE
from foredeck.model.documents import session_object_id
from foredeck.model.figures import counted, short_count, when
from foredeck.names import find_session
from foredeck.store.kind import PENDING_PURGE, BackupReport, store_kind
from foredeck.store.protocol import Store
from foredeck.timeline import rewinding
from foredeck.timeline.rewind_command import changes, preview, report
from foredeck.timeline.rewinding import RewindPlan, Rewound
from foredeck.timeline.states import own_path


def run(args: Namespace) -> int:
    """`foredeck backup`."""
    config = resolve_config(args).config
    _check_no_purge(config.home)
    target = args.file.expanduser().absolute()
    with Progress("backing up, step") as progress:
        made = store_kind(config.store).back_up(
            config, target, progress.advance, verify=args.verify
        )
    lines = [f"{_contents(made)}. It is checked, and only you can read it."]
    if made.verified is not None:
        lines.append(f"Compared with the store: identical; SHA-256 {made.verified}")
    lines += made.hints
    if (key := config.home / KEY_FILE).exists():
        lines.append(f"Keep {key} with it: it shows which entries of memory are your own.")
    return answer(args, asdict(made), lines)


def _restore_store(args: Namespace) -> int:
    """Put the backup `args.what` in the place of the configured store."""
    config = resolve_config(args).config
    check_person(config.home, "Replacing the store")
    _check_no_purge(config.home)
    ensure_home(config.home)
    with Progress("restoring, step") as progress:
        done = store_kind(config.store).restore(
            config, Path(args.what).expanduser().absolute(), progress.advance, force=args.force
        )
    # What was worked out from the store that is no longer there is made again when needed.
    for file in (config.home / FOLDER).glob("*"):
        file.unlink()
    lines = [f"{_contents(done)}. It is the store now."]
    if done.kept is not None:
        kept = f"The store from before is kept as {done.kept}"
        lines.append(f"{kept}: delete it once you do not need it.")
    return answer(args, asdict(done), [*lines, *done.hints])


def _contents(made: BackupReport) -> str:
    counts = ", ".join(counted(number, noun) for noun, number in made.counts.items())
    newest = "" if made.newest_ms is None else f", the newest of {when(made.newest_ms)}"
    return f"{made.file}: {counts}{newest}, {short_count(made.bytes)} bytes"


def _check_no_purge(home: Path) -> None:
    """Raise `StoreUnavailable` where a purge is unfinished."""
    # Half of one belongs neither into a backup, nor to be finished in another store.
    if (home / PENDING_PURGE).exists():
        raise StoreUnavailable("a purge was interrupted: `foredeck purge` finishes it")


# Restoring


_OF_FILES = ("path", "to", "dry_run", "diff", "overwrite")


def run_restore(args: Namespace) -> int:
    """`foredeck restore`."""
    if args.call is not None or args.undo:
        return _restore_files(args)
    if used := [name for name in _OF_FILES if getattr(args, name)]:
        raise ConfigError(f"--{used[0].replace('_', '-')} needs --call N or --undo")
    if not Path(args.what).expanduser().is_file():
        raise NotFound(
            f"{args.what}: no such backup. To bring back the files of a session: "
            "`foredeck restore SESSION --call 7`"
        )
    return _restore_store(args)


def _restore_files(args: Namespace) -> int:
    if args.diff and not args.dry_run:
        raise ConfigError("--diff needs --dry-run: without it the files are restored")
    home = resolve_config(args).config.home
    with opened_store(args) as store:
        session = find_session(store, args.what)
        cwd = _folder_of(store, session)
        steps = rewinding.interrupted(home, session)
        if steps is not None and not args.dry_run:
            return _print_result(
                args, rewinding.go_on(store, home, session, steps), cwd, went_on=True
            )
        plan = _plan(store, session, args)
        if args.dry_run:
            return _show_plan(args, store, plan, cwd)
        if args.to is not None:
            args.to.mkdir(parents=True, exist_ok=True)
            return _print_result(args, rewinding.copy_to(store, plan, cwd, args.to), cwd)
        done = rewinding.apply(
            store, home, session, plan, overwrite=args.overwrite, named=bool(args.path)
        )
        return _print_result(args, done, cwd)


def _folder_of(store: Store, session: str) -> str:
    head = store.head(session_object_id(session))
    return os.path.realpath(str(head.fields.get("cwd") or "/") if head else "/")


def _plan(store: Store, session: str, args: Namespace) -> RewindPlan:
    if args.undo:
        plan = rewinding.plan_for_undo(store, session)
    else:
        plan = rewinding.plan_for_call(store, session, args.call)
    if not args.path:
        return plan
    wanted = {own_path(str(path)) for path in args.path}
    files = [file for file in plan.files if file.path in wanted]
    uncovered = [path for path in plan.uncovered if path in wanted]
    if missing := sorted(wanted - {*uncovered, *(file.path for file in files)}):
        names = ", ".join(missing)
        seen = "As far as is known the" if plan.blind else "The"
        raise rewinding.CannotRewind(f"{seen} tools of session {session} have not changed {names}.")
    return rewinding.RewindPlan(files, uncovered)


def _show_plan(args: Namespace, store: Store, plan: RewindPlan, cwd: str) -> int:
    files = [
        {
            "path": file.path,
            "action": file.action,
            "changed_by_others": file.foreign,
            "changed_by_others_in_between": file.between,
        }
        for file in plan.files
    ]
    value = {"files": files, "uncovered": plan.uncovered, "blind": plan.blind}
    answer(args, value, preview(plan, cwd))
    if not args.json and args.diff and (text := changes(store, plan, cwd)):
        print()
        print_content(text + "\n")
    return 0


def _print_result(args: Namespace, result: Rewound, cwd: str, *, went_on: bool = False) -> int:
    lines = [report(result, cwd)]
    if went_on:
        lines.insert(0, "Only finished a restore that was interrupted: run the command again.")
    if result.skipped:
        lines.append("--overwrite restores these as well, and keeps what is there now.")
    value = {**asdict(result), "went_on": went_on}
    return answer(args, value, lines, 0 if result.is_whole else 1)
