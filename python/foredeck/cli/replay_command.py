"""`foredeck replay`: recorded sessions through the engine, on private stores."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from foredeck.cli.output import Progress, answer, coloured, fitted_table
from foredeck.context.rebase import DEFAULT_TTL_S
from foredeck.histories.lines import lines_lost
from foredeck.histories.recordings import find_recordings
from foredeck.model.figures import counted, short_count
from foredeck.model.own_tools import DEFAULT_FACILITIES, Facility, definition_chars
from foredeck.replay.as_model import replayed_model
from foredeck.replay.options import ReplayOptions
from foredeck.replay.run import replay

_NAME_WIDTH = 32
_NO_REBASES = ("append", "host")


def run(args: Namespace) -> int:
    """`foredeck replay`."""
    paths = find_recordings(args.paths)
    tools = DEFAULT_FACILITIES if args.tools is None else args.tools
    model = replayed_model(args.as_model) if args.as_model else None
    options = ReplayOptions(
        store=args.store,
        layout=args.layout,
        policy=args.policy,
        prompts=args.prompts,
        window=args.window,
        settings=tuple(args.set),
        tools=tools,
        ttl_s=args.ttl or (model.ttl_s if model else DEFAULT_TTL_S),
        cache=args.cache or (model.cache if model else "ideal"),
        prices=args.prices,
        as_model=model,
    )
    with Progress("replaying file", total=len(paths)) as progress:

        def advance(name: str, done: int, calls: int) -> None:
            # Before a file's first call it is not known yet how many it has.
            note = f"call {done}/{calls}, {name}" if calls else name
            progress.advance(0 if calls else 1, note=note)

        result = replay(paths, options, keep=args.keep, advance=advance)
    total = result["total"]
    code = 1 if total["errors"] or total["invalid_prompts"] else 0
    return answer(args, result, _lines(result, tools), code)


def _lines(result: dict[str, Any], tools: tuple[Facility, ...]) -> Iterator[str]:
    sessions, total = result["sessions"], result["total"]
    yield from (f"{cost['text']}." for cost in result["costs"])
    yield f"{_verdict(total)}\n"
    head = ("session", "calls", "tools", "plain", "foredeck", "share", "peak", "folded", "rebases")
    rows = [head, *map(_session_row, sessions)]
    if len(sessions) > 1:
        rows.append(_row("total", total))
    yield fitted_table(rows)
    for session in sessions:
        for trouble in _troubles(session):
            yield coloured(f"{session['file']}: {trouble}", "red")
    yield (
        "\nplain, foredeck: characters of the messages, summed over all calls; peak: of the\n"
        "largest prompt, with foredeck. No model ran: this is what a model would have been\n"
        "shown, not what it would have done with it."
    )
    each = ", ".join(f"{facility} {definition_chars(facility) // 4}" for facility in tools)
    tokens = f"{definition_chars(*tools) // 4} tokens{f' ({each})' if each else ''}"
    yield f"Definitions of foredeck's tools, in every prompt: {tokens}."


def _row(name: str, counts: dict[str, Any], peak: str = "", folded: str = "") -> tuple[str, ...]:
    plain, ours = counts["chars_plain"], counts["chars_foredeck"]
    rebases = (f"{why} {n}" for why, n in counts["decisions"].items() if why not in _NO_REBASES)
    return (
        name,
        str(counts["calls"]),
        str(counts["tool_calls"]),
        short_count(plain),
        short_count(ours),
        f"{100 * ours / plain:.0f}%" if plain else "-",
        peak,
        folded,
        ", ".join(rebases) or "-",
    )


def _session_row(session: dict[str, Any]) -> tuple[str, ...]:
    name = session["file"].removesuffix(".jsonl")
    if len(name) > _NAME_WIDTH:
        name = f"{name[:18]}…{name[-13:]}"
    return _row(name, session, short_count(session["peak_foredeck"]), str(session["folded"]))


def _troubles(session: dict[str, Any]) -> list[str]:
    found = []
    if session["error"]:
        found.append(f"stopped at call {session['calls'] + 1}: {session['error']}")
    if session["invalid_prompts"]:
        found.append(counted(session["invalid_prompts"], "invalid prompt"))
    if session["skipped_lines"]:
        lines = counted(session["skipped_lines"], "line")
        found.append(f"left out {lines}: {lines_lost(session['lost_lines'])}")
    return found


def _verdict(total: dict[str, Any]) -> str:
    text = f"{counted(total['sessions'], 'session')}, {counted(total['calls'], 'call')}"
    if not total["errors"] and not total["invalid_prompts"]:
        return f"{text}: every prompt valid, no error."
    invalid = counted(total["invalid_prompts"], "invalid prompt")
    return f"{text}: {invalid}, {counted(total['errors'], 'error')}."
