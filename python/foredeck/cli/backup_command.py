"""`foredeck backup` and `restore`: the store as a file and back, or a session's files."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer, print_content
from foredeck.cli.person import check_person, named_or_chosen
from foredeck.cli.stored import opened_store, store_if_any
from foredeck.config import ensure_home
from foredeck.derived.layer import FOLDER
from foredeck.errors import ConfigError, ForedeckError, NotFound, StoreUnavailable
from foredeck.lookup.sessions import count_calls
from foredeck.memory.trust import KEY_FILE
from foredeck.model.documents import progress_in, session_object_id
from foredeck.model.figures import counted, short_bytes, when
from foredeck.names import find_session, sessions_called
from foredeck.store.backup import BackupReport
from foredeck.store.place import PENDING_PURGE, store_place
from foredeck.store.store import Store
from foredeck.timeline import rewinding
from foredeck.timeline.rewind_command import changes, preview, report
from foredeck.timeline.states import own_path


def run(args: Namespace) -> int:
    """`foredeck backup`."""
    config = resolve_config(args).config
    _check_no_purge(config.home)
    target = args.file.expanduser().absolute()
    with Progress("backing up, step") as progress:
        report = store_place(config).back_up(target, progress.advance, verify=args.verify)
    lines = [f"{_contents(report)}. It is checked, and only you can read it."]
    if report.verified is not None:
        lines.append(f"Compared with the store: identical; SHA-256 {report.verified}")
    lines += report.hints
    if (key := config.home / KEY_FILE).exists():
        lines.append(f"Keep {key} with it: it shows which entries of memory are your own.")
    return answer(args, asdict(report), lines)


def _restore_store(args: Namespace) -> int:
    config = resolve_config(args).config
    check_person(config.home, "Replacing the store")
    _check_no_purge(config.home)
    ensure_home(config.home)
    with Progress("restoring, step") as progress:
        report = store_place(config).restore(
            Path(args.what).expanduser().absolute(), progress.advance, force=args.force
        )
    # What was worked out from the store that is no longer there is made again when needed.
    for file in (config.home / FOLDER).glob("*"):
        file.unlink()
    lines = [f"{_contents(report)}. It is the store now."]
    if report.kept is not None:
        kept = f"The store from before is kept as {report.kept}"
        lines.append(f"{kept}: delete it once you do not need it.")
    return answer(args, asdict(report), [*lines, *report.hints])


def _contents(made: BackupReport) -> str:
    counts = ", ".join(counted(number, noun) for noun, number in made.counts.items())
    newest = "" if made.newest_ms is None else f", the newest of {when(made.newest_ms)}"
    return f"{made.file}: {counts}{newest}, {short_bytes(made.bytes)}"


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
        args.what = named_or_chosen(args, args.what)
        return _restore_files(args)
    if used := [name for name in _OF_FILES if getattr(args, name)]:
        raise ConfigError(f"--{used[0].replace('_', '-')} needs --call N or --undo")
    if args.what is None:
        raise ConfigError("which backup? Give its file, or --call N for a session's files.")
    if not Path(args.what).expanduser().is_file():
        raise _not_a_backup(args)
    return _restore_store(args)


def _not_a_backup(args: Namespace) -> ForedeckError:
    """What to type in place of a word that names no backup."""
    with store_if_any(args) as store:
        sessions = [] if store is None else sessions_called(store, args.what)
        if store is None or len(sessions) != 1:
            return NotFound(
                f"{args.what}: no such backup. To bring back the files of a session: "
                "`foredeck restore SESSION --call 7`"
            )
        _check_calls(store, sessions[0])
        calls = count_calls(store, sessions[0])
    return ConfigError(
        f"restore the files of session {args.what} to which call, 1 to {calls}? "
        f"`foredeck restore {args.what} --call {calls}`; with --dry-run it only says what would "
        "change."
    )


def _check_calls(store: Store, session: str) -> None:
    """Raises `CannotRewind` if no call is recorded."""
    if not count_calls(store, session):
        head = store.head(session_object_id(session))
        if head is not None and progress_in(head.fields) is not None:
            raise rewinding.CannotRewind(
                f"session {session} was read from a history: nothing to restore."
            )
        raise rewinding.CannotRewind(f"session {session} has made no call yet: nothing to restore.")


def _restore_files(args: Namespace) -> int:
    if args.diff and not args.dry_run:
        raise ConfigError("--diff needs --dry-run: without it the files are restored")
    home = resolve_config(args).config.home
    with opened_store(args) as store:
        session = find_session(store, args.what)
        _check_calls(store, session)
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
        result = rewinding.apply(
            store, home, session, plan, overwrite=args.overwrite, named=bool(args.path)
        )
        return _print_result(args, result, cwd)


def _folder_of(store: Store, session: str) -> str:
    head = store.head(session_object_id(session))
    return os.path.realpath(str(head.fields.get("cwd") or "/") if head else "/")


def _plan(store: Store, session: str, args: Namespace) -> rewinding.RewindPlan:
    if args.undo:
        plan = rewinding.plan_for_undo(store, session)
    else:
        plan = rewinding.plan_for_call(store, session, args.call)
    if not args.path:
        return plan
    paths = {own_path(str(path)) for path in args.path}
    files = [file for file in plan.files if file.path in paths]
    uncovered = [path for path in plan.uncovered if path in paths]
    if missing := sorted(paths - {*uncovered, *(file.path for file in files)}):
        names = ", ".join(missing)
        seen = "As far as is known the" if plan.blind else "The"
        raise rewinding.CannotRewind(f"{seen} tools of session {session} have not changed {names}.")
    return rewinding.RewindPlan(files, uncovered)


def _show_plan(args: Namespace, store: Store, plan: rewinding.RewindPlan, cwd: str) -> int:
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


def _print_result(
    args: Namespace, result: rewinding.Rewound, cwd: str, *, went_on: bool = False
) -> int:
    lines = [report(result, cwd)]
    if went_on:
        lines.insert(0, "Only finished a restore that was interrupted: run the command again.")
    if result.skipped:
        lines.append("--overwrite restores these as well, and keeps what is there now.")
    value = {**asdict(result), "went_on": went_on}
    return answer(args, value, lines, 0 if result.is_whole else 1)
