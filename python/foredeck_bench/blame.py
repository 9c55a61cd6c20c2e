"""How long `foredeck blame` takes on a file with many lines and many versions."""

from __future__ import annotations

import random
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch
from foredeck.timeline.blame import blame
from foredeck_bench.made_documents import file_document

SHAPES = [(100_000, 20), (500, 2000)]
"""Lines and versions of the files that are asked for."""

MOST_S = 2.0

LINES_CHANGED = 4
"""At most so many lines are taken out and put in by each version, in one place."""


def run_blame(
    lines: int, versions: int, seed: int = 0, advance: Callable[[str], None] = lambda _note: None
) -> dict[str, Any]:
    """Store so many versions of a file of about so many lines, and ask who wrote its lines. Times
    in seconds. `right`: whether each line is put down to the version that brought it."""
    generator = random.Random(seed)
    texts = [f"line {number} of version 0" for number in range(lines)]
    brought = [0] * lines
    with tempfile.TemporaryDirectory(prefix="foredeck-blame-") as name:
        config = Config(home=Path(name))
        with closing(open_store(config)) as store:
            for number in range(versions):
                if number:
                    _edit(texts, brought, number, generator)
                document = file_document(0, "\n".join(texts) + "\n")
                store.commit(Batch([document]))
                advance(f"version {number + 1}")
        with closing(open_store(config)) as store:
            heads = store.history(document.id)
            began, busy = time.perf_counter(), time.process_time()
            found = blame(store, heads)
            took, busy = time.perf_counter() - began, time.process_time() - busy
    times = [head.time_ms for head in heads]
    right = [line.author.time_ms for line in found] == [times[number] for number in brought]
    return {
        "lines": len(found),
        "versions": len(heads),
        "seconds": round(took, 2),
        "busy": round(busy, 2),
        "right": right,
    }


def _edit(texts: list[str], brought: list[int], number: int, generator: random.Random) -> None:
    """Take some lines out, and put others in their place."""
    at = generator.randrange(len(texts))
    out, put_in = generator.randint(1, LINES_CHANGED), generator.randint(1, LINES_CHANGED)
    texts[at : at + out] = [f"line {at + n} of version {number}" for n in range(put_in)]
    brought[at : at + out] = [number] * put_in


# The command


def _run(args: Namespace) -> int:
    shapes = SHAPES if args.lines is None else [(args.lines, args.versions)]
    with Progress("storing", total=sum(versions for _, versions in shapes)) as progress:
        found = [
            run_blame(lines, versions, advance=lambda note: progress.advance(note=note))
            for lines, versions in shapes
        ]
    ok = all(each["right"] and each["seconds"] <= MOST_S for each in found)
    if args.json:
        print_json({"files": found, "ok": ok})
    else:
        names = ("lines", "versions", "seconds", "busy", "right")
        print(table([names, *(tuple(str(each[name]) for name in names) for each in found)]))
    return 0 if ok else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--lines",
        metavar="N",
        type=positive,
        help="lines of the file (default: two files, of 100,000 lines and of 500)",
    )
    parser.add_argument(
        "--versions",
        metavar="N",
        type=positive,
        default=20,
        help="with --lines: versions of it (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make files of many lines and of many versions, and ask who wrote each line: a file of\n"
        "100,000 lines in 20 versions, and one of 500 lines in 2,000. `busy` is processor time.\n"
        "Exit code 1 where a line is put down to the wrong version, or it took over 2 s."
    ),
    example="foredeck bench blame --json",
    configure=_configure,
    run=_run,
)
