"""`foredeck bench excerpts`: how much of what an agent wrote its observer is shown."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.errors import ForedeckError

_SHORT = 44


class NoChunk(ForedeckError):
    """A recording has no chunk of that number."""

    exit_code = 2


def _run(args: Namespace) -> int:
    from foredeck.histories.recordings import find_recordings
    from foredeck_bench.excerpts import measure_excerpts, total_of

    paths = find_recordings(args.paths)
    if args.print is not None:
        _print_chunk(paths[0], args.print)
        return 0
    with Progress("reading", total=len(paths)) as progress:
        found = {}
        for path in paths:
            found[path.name] = measure_excerpts(path)
            progress.advance(note=path.name)
    total = total_of(found.values())
    if args.json:
        sessions = {name: asdict(figures) for name, figures in found.items()}
        print_json({"sessions": sessions, "total": asdict(total)})
        return 0
    rows = [
        (name[:_SHORT], str(f.chunks), str(f.calls), str(f.names), f"{f.share:.1%}", f.per_chunk)
        for name, f in [*found.items(), ("total", total)]
        if f.chunks
    ]
    print(table([("", "chunks", "calls", "names", "shown", "tokens a chunk, of"), *rows]))
    print(
        "\nnames: identifiers that calls of write and edit have written anew; shown: the share that"
        "\nstands in what an observer of that chunk is shown."
    )
    return 0


def _print_chunk(path: Path, number: int) -> None:
    """What a model would be asked about one chunk."""
    from foredeck.observations.chunks import ChunkRules
    from foredeck_bench.excerpts import chunks_of, question_about

    chunks = list(chunks_of(path, ChunkRules()))
    if not 0 < number <= len(chunks):
        raise NoChunk(f"{path.name} has {len(chunks)} chunks.")
    asked = question_about(chunks[number - 1])
    print(f"{asked.system}\n\n{asked.text}")


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="session files of Pi, or folders"
    )
    parser.add_argument(
        "--print", metavar="N", type=int, help="print the question about chunk N of the first file"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Cut recorded sessions into the chunks that an observer would be asked about, and count\n"
        "how many of the names that the agent wrote stand in what it is shown. No model runs."
    ),
    example="foredeck bench excerpts ../shared/transcripts",
    configure=_configure,
    run=_run,
)
