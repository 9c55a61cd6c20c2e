"""`foredeck bench recall`: whether what a long conversation said is found by questions about it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.figures import machine
    from foredeck_bench.search.recall import measure_recall

    with Progress("bench recall") as progress:
        found = measure_recall(args.corpus, progress.advance)
    if args.json:
        print_json({"machine": machine(), **found})
    else:
        _print_text(found)
    return 0


def _print_text(found: dict[str, Any]) -> None:
    parts = {
        name: one for name, one in found.items() if isinstance(one, dict) and "foredeck" in one
    }
    for name, part in parts.items():
        print(f"{name}: {part['questions']} questions")
        searches = [(one, figures) for one, figures in part.items() if isinstance(figures, dict)]
        heads = ("", *searches[0][1])
        rows = [(one, *(f"{value:.1f}" for value in figures.values())) for one, figures in searches]
        print(table([heads, *rows]))
        ahead, low, high = part["ahead_of_fts5_hit@10"]
        print(f"ahead of FTS5 at hit@10: {ahead:+.1f} ({low:+.1f} to {high:+.1f})\n")
    exact, latency = found["exact"], found["latency_cpu_ms"]
    print(
        f"{exact['queries']} queries of three words that one message has: first "
        f"{exact['hit@1']:.1f}%, in the first three {exact['hit@3']:.1f}%"
    )
    print(f"a question takes {latency['p50']} ms of the processor, {latency['p95']} at p95")


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        type=Path,
        help="a folder with corpus.json (conversations, questions and the messages that answer "
        "them) and, in histories/, the conversations as session files",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Ask a corpus of long conversations questions whose answering messages are known, each\n"
        "in the project of its conversation: how often such a message comes first, among the\n"
        "first five and ten, and the mean reciprocal rank; the same of sessions, in the order of\n"
        "their best message. Beside it FTS5 with a stemmer and BM25, with an index for each\n"
        "conversation; by categories and by halves (odd and even conversations, to choose\n"
        "constants on one and report them on the other). Then queries of three words that\n"
        "exactly one message has."
    ),
    example="foredeck bench recall ../shared/locomo --json",
    configure=_configure,
    run=_run,
)
