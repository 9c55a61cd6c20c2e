"""`foredeck backup`: the store as a file; and the store from such a file, for `restore`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.cli.person import check_person
from foredeck.config import ensure_home
from foredeck.derived.layer import FOLDER
from foredeck.errors import StoreUnavailable
from foredeck.memory.trust import KEY_FILE
from foredeck.model.figures import counted, short_count, when
from foredeck.store.kind import PENDING_PURGE, BackupReport, store_kind


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


def restore_store(args: Namespace) -> int:
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
