"""`foredeck backup`: the store as a file; and the store from such a file, for `restore`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, print_json
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
    if args.json:
        print_json(asdict(made))
        return 0
    print(f"{_contents(made)}. It is checked, and only you can read it.")
    if made.verified is not None:
        print(f"Compared with the store: identical; SHA-256 {made.verified}")
    _print_hints(made)
    if (key := config.home / KEY_FILE).exists():
        print(f"Keep {key} with it: it shows which entries of memory are your own.")
    return 0


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
    _discard_layers(config.home)
    if args.json:
        print_json(asdict(done))
        return 0
    print(f"{_contents(done)}. It is the store now.")
    if done.kept is not None:
        print(f"The store from before is kept as {done.kept}: delete it once you do not need it.")
    _print_hints(done)
    return 0


def _contents(made: BackupReport) -> str:
    counts = ", ".join(counted(number, noun) for noun, number in made.counts.items())
    newest = "" if made.newest_ms is None else f", the newest of {when(made.newest_ms)}"
    return f"{made.file}: {counts}{newest}, {short_count(made.bytes)} bytes"


def _print_hints(made: BackupReport) -> None:
    for hint in made.hints:
        print(hint)


def _check_no_purge(home: Path) -> None:
    """Raise `StoreUnavailable` where a purge is unfinished."""
    # Half of one belongs neither into a backup, nor to be finished in another store.
    if (home / PENDING_PURGE).exists():
        raise StoreUnavailable("a purge was interrupted: `foredeck purge` finishes it")


def _discard_layers(home: Path) -> None:
    """What was worked out from the store that is no longer there: it is made again when needed."""
    for file in (home / FOLDER).glob("*"):
        file.unlink()
