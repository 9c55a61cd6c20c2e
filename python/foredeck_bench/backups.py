"""How long a backup takes, and what whoever writes meanwhile notices of it."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.store.copying import compare
from foredeck.store.protocol import Batch
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.store.sqlite.backup import back_up, opened_backup, restore
from foredeck_bench.made_documents import file_document

_CHARS = 1_000_000
"""Of each document that fills the store. Hexadecimal digits pack to about half."""
_BEFORE_S = 1.0
"""How long commits are timed with nobody beside them."""
_PAUSE_S = 0.005

Advance = Callable[[], None]


def run_backup(mib: int, advance: Advance = lambda: None) -> dict[str, Any]:
    """Fill a store, back it up beside somebody who commits 200 times a second at most, and restore
    it. Milliseconds are those of a commit. `equal`: whether the restored store holds what the
    other one held when the backup began, and nothing else."""
    with tempfile.TemporaryDirectory(prefix="foredeck-backup-") as name:
        store, backup, restored = (Path(name) / file for file in ("store", "backup", "restored"))
        with closing(open_sqlite(store)) as opened:
            _fill(opened, mib, advance)
        with _TimedCommits(store) as writer:
            time.sleep(_BEFORE_S)
            before = writer.taken()
            began = time.perf_counter()
            back_up(store, backup, lambda _steps, _what: advance())
            took = time.perf_counter() - began
            beside = writer.taken()
        began = time.perf_counter()
        restore(backup, restored, force=False, report=lambda _steps, _what: advance())
        back = time.perf_counter() - began
        with closing(open_sqlite(store)) as original, opened_backup(restored) as copy:
            equal = compare(original, copy).equal
        return {
            "mib": round(store.stat().st_size / 2**20),
            "backup_s": round(took, 2),
            "restore_s": round(back, 2),
            "before": _described(before),
            "beside": _described(beside),
            "equal": equal,
        }


def _fill(store: SqliteStore, mib: int, advance: Advance) -> None:
    generator = random.Random(0)
    for number in range(max(1, mib * 2**21 // _CHARS)):
        text = generator.randbytes(_CHARS // 2).hex()
        store.commit(Batch([file_document(number, text)]))
        advance()


@dataclass
class _TimedCommits:
    """Commits small versions from a thread, and keeps how long each took."""

    path: Path
    _times: list[float] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> _TimedCommits:
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def taken(self) -> list[float]:
        """Seconds of the commits since this was last asked, shortest first."""
        times, self._times = self._times, []
        return sorted(times)

    def _write(self) -> None:
        with closing(open_sqlite(self.path, busy_timeout_ms=60_000)) as store:
            number = 0
            while not self._ended.wait(_PAUSE_S):
                number += 1
                began = time.perf_counter()
                store.commit(Batch([file_document(-1, f"version {number}\n" * 50)]))
                self._times.append(time.perf_counter() - began)


def _described(times: list[float]) -> dict[str, float]:
    if not times:
        return {"commits": 0, "median_ms": 0.0, "longest_ms": 0.0}
    return {
        "commits": len(times),
        "median_ms": round(times[len(times) // 2] * 1000, 2),
        "longest_ms": round(times[-1] * 1000, 2),
    }


# The command


def _run(args: Namespace) -> int:
    with Progress("backup, step") as progress:
        found = run_backup(args.mib, progress.advance)
    if args.json:
        print_json(found)
        return 0 if found["equal"] else 1
    names = ("commits", "median_ms", "longest_ms")
    rows = [[when, *(str(found[when][name]) for name in names)] for when in ("before", "beside")]
    print(
        f"{found['mib']:,} MiB: backed up in {found['backup_s']} s, restored in "
        f"{found['restore_s']} s, {'equal' if found['equal'] else 'NOT EQUAL'}"
    )
    print(table([["commits of another", *names], *rows]))
    return 0 if found["equal"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mib",
        metavar="N",
        type=positive,
        default=250,
        help="size of the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Fill a store in SQLite, back it up while somebody else commits to it up to 200 times a\n"
        "second, restore the backup elsewhere, and compare. `before` and `beside` are the commits\n"
        "without and with a backup beside them. Exit code 1 where the two are not equal."
    ),
    example="foredeck bench backup --mib 50",
    configure=_configure,
    run=_run,
)
