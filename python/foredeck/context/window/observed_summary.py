"""The summary of chat that the host gives up, where notes cover parts of it: these in their
order, and between them what a summary without a model says of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foredeck.context.messages.items import Item
from foredeck.context.state.objects import Objects
from foredeck.context.state.stand_ins import StandIn, StandIns, span_of
from foredeck.context.window.summary import ASKED_CHARS
from foredeck.context.window.transcript import split_turns
from foredeck.context.wording import turn_line, turns_span
from foredeck.model.quoting import block
from foredeck.model.short_texts import shortened

Summarise = Callable[[Sequence[Item], int], str]
"""A summary of these messages, the first user turn among which has that number; no heading."""

LEAST_CHARS = 200
"""Of one note, however many there are."""


def observed_summary(
    objects: Objects,
    stand_ins: StandIns | None,
    items: Sequence[Item],
    first: int,
    chars: int,
    summarise: Summarise,
    around: Sequence[str] = (),
) -> str | None:
    """What is to cover these messages, at most this many characters; None where no note covers
    any of them.

    `first`: number of their first user turn. `around`: lines that follow the heading.
    """
    stretches = _stretches(stand_ins, items)
    if not stretches:
        return None
    ordinal, turn = len(objects.index) + 1, first - 1
    share = max(LEAST_CHARS, chars // (2 * len(stretches) + 1) - 100)
    lines: list[str] = []
    done = 0
    for start, end, stand_in in [*stretches, (len(items), len(items), None)]:
        gap = items[done:start]
        if any(item.kind != "opaque" for item in gap):
            lines.append(summarise(gap, turn + 1)[:share])
            turn += sum(item.kind == "user" for item in gap)
        if stand_in is not None:
            asked = sum(item.kind == "user" for item in items[start:end])
            lines.append(f"{turns_span(turn + 1, turn + max(1, asked))}, from notes:")
            lines += _asked(items[start:end], turn + 1)
            lines.append(block(stand_in.text)[:share])
            turn += asked
        done = end
    return "\n".join([_heading(ordinal, first, max(first, turn)), *around, *lines])[:chars]


def _stretches(
    stand_ins: StandIns | None, items: Sequence[Item]
) -> list[tuple[int, int, StandIn | None]]:
    """What notes cover of the messages, in their order; of two for one message, the longer."""
    known = () if stand_ins is None else stand_ins.known()
    places = {item.key.address: index for index, item in enumerate(items)}
    found: list[tuple[int, int, StandIn | None]] = []
    for stand_in in sorted(known, key=lambda each: -len(each.covers)):
        stretch = span_of(stand_in, places, items)
        if stretch and all(stretch[1] <= start or end <= stretch[0] for start, end, _ in found):
            found.append((*stretch, stand_in))
    return sorted(found, key=lambda each: each[0])


def _asked(items: Sequence[Item], first: int) -> list[str]:
    """What the user said in a stretch: no note replaces that in the prompt, so none need say it."""
    turns = split_turns(items, first)
    said = ((turn.number, shortened(turn.asked, ASKED_CHARS)) for turn in turns)
    return [turn_line(number, text) for number, text in said if text]


def _heading(ordinal: int, first: int, last: int) -> str:
    return (
        f"[foredeck] {turns_span(first, last)}, from notes, not the user's words. "
        f'activate "@{ordinal} turns A-B" shows these turns in full, "@{ordinal}::lost" what is '
        "left out here."
    )
