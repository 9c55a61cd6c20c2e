"""`foredeck replay`: recorded sessions through the engine, on private stores."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from foredeck.accounting.figure import CostFigure, unpriced_lines
from foredeck.cli.output import Progress, answer, coloured, filled, fitted_table
from foredeck.model.call_values import DEFAULT_TTL_S, SHORT_REASONS
from foredeck.model.figures import counted, short_count
from foredeck.model.own_tools import DEFAULT_FACILITIES, Facility, definition_chars
from foredeck_agents.histories.lines import lines_lost
from foredeck_agents.histories.recordings import find_recordings
from foredeck_agents.histories.records import TranscriptError
from foredeck_lab.replay.as_model import replayed_model
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.run import replay

_NAME_WIDTH = 16
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
        warm=args.warm,
    )
    with Progress("replaying file", total=len(paths)) as progress:

        def advance(name: str, done: int, calls: int) -> None:
            # Before a file's first call it is not known yet how many it has.
            note = f"call {done}/{calls}, {name}" if calls else name
            progress.advance(0 if calls else 1, note=note)

        result = replay(paths, options, keep=args.keep, advance=advance)
    if (
        len(paths) == 1
        and not result["total"]["calls"]
        and (error := result["sessions"][0]["error"])
    ):
        raise TranscriptError(error)
    total = result["total"]
    code = 1 if total["errors"] or total["invalid_prompts"] else 0
    return answer(args, result, _lines(result, tools), code)


def _lines(result: dict[str, Any], tools: tuple[Facility, ...]) -> Iterator[str]:
    sessions, total = result["sessions"], result["total"]
    yield from (f"{cost['text']}." for cost in result["costs"])
    yield from unpriced_lines(name for cost in result["costs"] for name in cost["unpriced"])
    plain, ours = (sum(session["refreshes"][side] for session in sessions) for side in (0, 1))
    if plain or ours:
        yield (
            f"Sent again to keep the cache warm: plain Pi's prompts {counted(plain, 'time')}, "
            f"foredeck's {counted(ours, 'time')}; both are counted."
        )
    yield f"{_verdict(total)}\n"
    in_money = any(cost["unit"] == "dollars" for cost in result["costs"])
    unit = "" if in_money else " tokens"
    costs = (f"plain Pi{unit}", f"foredeck{unit}", "saved")
    rows: list[tuple[str, ...]] = [("session", "calls", *costs, "peak", "folded", "rewritten")]
    rows += [_session_row(session, in_money=in_money) for session in sessions]
    if len(sessions) > 1:
        own = (_figure(session) for session in sessions if session["in_money"] == in_money)
        rows.append(_row("total", total, sum(own, CostFigure())))
    yield fitted_table(rows, goes_on=True)
    for session in sessions:
        for trouble in _troubles(session):
            yield coloured(f"{session['file']}: {trouble}", "red")
    note = (
        "peak: characters of the largest prompt, with foredeck; folded: messages that are one line "
        "at the end; rewritten: how often the prompt was, and why. No model ran: this is what a "
        "model would have been shown, not what it would have done with it."
    )
    yield f"\n{filled(note)}"
    each = ", ".join(f"{facility} {definition_chars(facility) // 4}" for facility in tools)
    tokens = f"{definition_chars(*tools) // 4} tokens{f' ({each})' if each else ''}"
    yield f"Definitions of foredeck's tools, in every prompt: {tokens}."


def _row(
    name: str, counts: dict[str, Any], figure: CostFigure, peak: str = "", folded: str = ""
) -> tuple[str, ...]:
    reasons = ((SHORT_REASONS.get(why, why), n) for why, n in counts["decisions"].items())
    return (
        name,
        str(counts["calls"]),
        # What cannot be counted in the table's unit is blank.
        *((*figure.amounts[:2], figure.share) if figure.calls else ("", "", "")),
        peak,
        folded,
        ", ".join(f"{why} {n}" for why, n in reasons if why not in _NO_REBASES),
    )


def _session_row(session: dict[str, Any], *, in_money: bool) -> tuple[str, ...]:
    name = session["file"].removesuffix(".jsonl")
    if len(name) > _NAME_WIDTH:
        name = f"{name[: _NAME_WIDTH - 9]}…{name[-8:]}"
    figure = _figure(session) if session["in_money"] == in_money else CostFigure()
    return _row(
        name, session, figure, short_count(session["peak_foredeck"]), str(session["folded"])
    )


def _figure(session: dict[str, Any]) -> CostFigure:
    plain, ours = session["cost_plain"], session["cost_foredeck"]
    return CostFigure(session["calls"], plain, ours, in_money=session["in_money"])


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
