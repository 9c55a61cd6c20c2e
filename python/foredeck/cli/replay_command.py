"""`foredeck replay`: recorded sessions through the engine, on private stores."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import coloured, print_json, screen_width, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.context.cache.economics import definition_chars
from foredeck.histories.recordings import find_recordings
from foredeck.lookup.texts import counted, short_count
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.store.registry import STORES

_NAME_WIDTH = 32


def _run(args: Namespace) -> int:
    # Loads the engine, which takes a second that --help and a wrong option do without.
    from foredeck.replay.options import ReplayOptions
    from foredeck.replay.run import replay

    paths = find_recordings(args.paths)
    tools = DEFAULT_FACILITIES if args.tools is None else args.tools
    options = ReplayOptions(
        store=args.store,
        layout=args.layout,
        policy=args.policy,
        prompts=args.prompts,
        window=args.window,
        settings=tuple(args.set),
        tools=tools,
        ttl_s=args.ttl,
        cache=args.cache,
        prices=args.prices,
    )
    with Progress("replaying file", total=len(paths)) as progress:

        def advance(name: str, done: int, calls: int) -> None:
            # Before a file's first call it is not known yet how many it has.
            note = f"call {done}/{calls}, {name}" if calls else name
            progress.advance(0 if calls else 1, note=note)

        result = replay(paths, options, keep=args.keep, advance=advance)
    if args.json:
        print_json(result)
    else:
        _print_text(result, tools)
    total = result["total"]
    return 1 if total["errors"] or total["invalid_prompts"] else 0


def _print_text(result: dict[str, Any], tools: tuple[Facility, ...]) -> None:
    sessions, total = result["sessions"], result["total"]
    for cost in result["costs"]:
        print(f"{cost['text']}.")
    print(f"{_verdict(total)}\n")
    head = ("session", "calls", "tools", "plain", "foredeck", "share", "peak", "folded", "rebases")
    rows = [head, *map(_row, sessions)]
    if len(sessions) > 1:
        rows.append(_total_row(total))
    print("\n".join(line[: screen_width()].rstrip() for line in table(rows).split("\n")))
    for session in sessions:
        for trouble in _troubles(session):
            print(coloured(f"{session['file']}: {trouble}", "red"))
    print(
        "\nplain, foredeck: characters of the messages, summed over all calls; peak: of the\n"
        "largest prompt, with foredeck. No model ran: this is what a model would have been\n"
        "shown, not what it would have done with it."
    )
    print(_definitions(tools))


def _definitions(tools: tuple[Facility, ...]) -> str:
    each = [f"{facility} {definition_chars([facility]) // 4}" for facility in tools]
    total = definition_chars(tools) // 4
    which = f" ({', '.join(each)})" if each else ""
    return f"Definitions of foredeck's tools, in every prompt: {total} tokens{which}."


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    return (
        _short_name(session["file"]),
        str(session["calls"]),
        str(session["tool_calls"]),
        short_count(session["chars_plain"]),
        short_count(session["chars_foredeck"]),
        _share(session),
        short_count(session["peak_foredeck"]),
        str(session["collapsed"]),
        _rebases(session["decisions"]),
    )


def _total_row(total: dict[str, Any]) -> tuple[str, ...]:
    return (
        "total",
        str(total["calls"]),
        str(total["tool_calls"]),
        short_count(total["chars_plain"]),
        short_count(total["chars_foredeck"]),
        _share(total),
        "",
        "",
        _rebases(total["decisions"]),
    )


def _short_name(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    return stem if len(stem) <= _NAME_WIDTH else f"{stem[:18]}…{stem[-13:]}"


def _share(counts: dict[str, Any]) -> str:
    plain, ours = counts["chars_plain"], counts["chars_foredeck"]
    return f"{100 * ours / plain:.0f}%" if plain else "-"


def _rebases(decisions: dict[str, int]) -> str:
    counts = [
        f"{reason} {n}" for reason, n in decisions.items() if reason not in ("append", "host")
    ]
    return ", ".join(counts) or "-"


def _troubles(session: dict[str, Any]) -> list[str]:
    found = []
    if session["error"]:
        found.append(f"stopped at call {session['calls'] + 1}: {session['error']}")
    if session["invalid_prompts"]:
        found.append(counted(session["invalid_prompts"], "invalid prompt"))
    if session["skipped_lines"]:
        lines = counted(session["skipped_lines"], "line")
        found.append(f"left out {lines} that hold no JSON; was the file cut off?")
    return found


def _verdict(total: dict[str, Any]) -> str:
    text = f"{counted(total['sessions'], 'session')}, {counted(total['calls'], 'call')}"
    if not total["errors"] and not total["invalid_prompts"]:
        return f"{text}: every prompt valid, no error."
    invalid = counted(total["invalid_prompts"], "invalid prompt")
    return f"{text}: {invalid}, {counted(total['errors'], 'error')}."


def facilities_of(text: str) -> tuple[Facility, ...]:
    """The facilities that an argument lists. Raises `ArgumentTypeError`."""
    asked = [] if text == "none" else text.split(",")
    if unknown := [name for name in asked if name not in FACILITY_TOOLS]:
        known = ", ".join(FACILITY_TOOLS)
        raise ArgumentTypeError(f"there is no {unknown[0]!r}; there are {known}, and none alone")
    return tuple(facility for facility in FACILITY_TOOLS if facility in asked)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="a session file of Pi (*.jsonl, any version of its format), of Claude Code or Codex, "
        "packed (*.jsonl.gz) or not, or a folder of them",
    )
    parser.add_argument(
        "--store",
        choices=tuple(STORES),
        default="sqlite",
        help="keep the objects in SQLite (default), or in an XTDB node of the run's own",
    )
    parser.add_argument(
        "--layout",
        metavar="L",
        default="anchored",
        help="anchored (default) or pools",
    )
    parser.add_argument(
        "--policy",
        metavar="P",
        default="adaptive",
        help="the policy that decides which content stays (default: %(default)s; see "
        "docs/configuration.md)",
    )
    parser.add_argument(
        "--tools",
        metavar="F,...",
        type=facilities_of,
        help="the groups of tools that are declared with every prompt, and paid for: "
        f"{', '.join(FACILITY_TOOLS)}, or none (default: {','.join(DEFAULT_FACILITIES)})",
    )
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=positive,
        default=300,
        help="after how long the provider's cache is assumed to expire (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        choices=("ideal", "anthropic", "openai"),
        default="ideal",
        help="the prompt cache to plan for: one that keeps every prefix (default), or one by a "
        "provider's documented rule",
    )
    parser.add_argument(
        "--prices",
        metavar="P",
        default="anthropic",
        help="anthropic (default: cached 0.1, written 1.25 of the input price), openai (0.1, 1), "
        "no-cache (every token in full), or a JSON file with input, cacheRead and cacheWrite",
    )
    parser.add_argument(
        "--prompts",
        metavar="DIR",
        type=Path,
        help="write every assembled prompt to DIR/<file stem>/<call>.json",
    )
    parser.add_argument(
        "--keep",
        metavar="DIR",
        type=Path,
        help="keep each session's store in DIR/<file stem>, a state folder: `foredeck sessions "
        "--home` reads it",
    )
    parser.add_argument(
        "--window",
        metavar="TOKENS",
        type=positive,
        default=200_000,
        help="context window of the recorded models, which recordings do not contain (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a configuration key; your own configuration is not used",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run recorded sessions through foredeck, call by call, and show what a model would have\n"
        "been shown: how much, what it would have cost beside plain Pi, how often it was\n"
        "rewritten and why, and whether a provider would accept every prompt. No model is\n"
        "asked. Each session is replayed on a private store; your own store and configuration\n"
        "are not used. Calls are those on the branch of the file's last entry. Sessions of\n"
        "Claude Code and Codex are replayed as if they had been Pi's, without their subagents.\n"
        "The exit code is 1 if a session had an error or an invalid prompt."
    ),
    example="foredeck replay ~/.pi/agent/sessions --prompts /tmp/prompts",
    configure=_configure,
    run=_run,
)
