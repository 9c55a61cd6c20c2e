"""`foredeck bench facts`: what is found of early messages at the end of a very long session."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.lookup.texts import short_count

_HEAD = ("", "cost", "asked", "all-in", "mean", "peak", "last", "in prompt", "found")


def _run(args: Namespace) -> int:
    from foredeck.histories.recordings import find_recordings
    from foredeck_bench.facts import run_facts
    from foredeck_bench.facts_plot import facts_svg
    from foredeck_bench.long_session import join_sessions, make_facts, write_session

    paths = find_recordings(args.paths)
    if args.write is not None:
        write_session(join_sessions(paths, args.calls, make_facts(args.facts)), args.write)
    with Progress("replaying", total=3 * args.calls) as progress:
        result = run_facts(
            *(paths, args.calls, args.facts, args.window, lambda: progress.advance()),
            eager=args.eager,
        )
    if args.plot is not None:
        title = f"{result['calls']:,} calls of one session, joined from recorded ones"
        args.plot.write_text(facts_svg(result["rows"], title), encoding="utf-8")
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 1 if any(row["invalid_prompts"] for row in result["rows"]) else 0


def _print(result: dict[str, Any]) -> None:
    print(table([_HEAD, *map(_row, result["rows"])]))
    print(
        "\ncost: of all prompts and questions, in uncached input tokens; asked: of it, for "
        "observations;\nall-in: with one more call for each call that lacked something; mean, "
        "peak, last: tokens of a\nprompt; in prompt: share of the planted facts that stand in the "
        "last one; found: there or by\none search (plain Pi has none). No model ran: all "
        "summaries and notes are made by rules."
    )
    for row in result["rows"]:
        shares = (f"{name} {100 * s:.0f}%" for name, s in row["found_by_speaker"].items())
        print(f"{row['row']}: {', '.join(shares)}")
    for row in result["rows"]:
        if row["questions"]:
            condensed, again = row["reflections"], row["summaries"]
            print(
                f"{row['questions']} questions; {condensed} condensed notes, {again} of them again."
            )
    print(f"{result['calls']:,} calls, {result['messages']:,} messages, {result['facts']} facts.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["row"],
        short_count(round(row["cost"])),
        f"{row['questions']}: {short_count(round(row['asked']))}",
        short_count(round(row["all_in"])),
        *(short_count(row[name]) for name in ("mean_tokens", "peak_tokens", "last_tokens")),
        f"{100 * row['in_prompt']:.1f}%",
        f"{100 * row['found']:.1f}%",
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="session files of Pi, or folders"
    )
    parser.add_argument(
        "--calls", type=positive, default=3000, help="of the joined session (default: 3000)"
    )
    parser.add_argument("--facts", type=positive, default=90, help="to plant (default: 90)")
    parser.add_argument(
        "--window", type=positive, default=200_000, help="of the model, in tokens (default: 200000)"
    )
    parser.add_argument(
        "--eager",
        action="store_true",
        help="observe from the first threshold on, not only where that pays",
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the joined session")
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="write prompt size and cost by call, as SVG"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Join recorded sessions into one of thousands of calls, plant facts in its early\n"
        "messages, and say at its end which of them are found, and what the session has cost:\n"
        "with observations, with a summary without a model, and with compactions as plain Pi\n"
        "makes them. Exit code 1: a provider would refuse a prompt."
    ),
    example="foredeck bench facts ../shared/transcripts --plot facts.svg",
    configure=_configure,
    run=_run,
)
