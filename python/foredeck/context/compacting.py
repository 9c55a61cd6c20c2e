"""Compactions asked for by the host or `/foredeck compact`.

Hosts that count raw messages ask too early; folding often suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from foredeck.context.compactions import (
    Compacted,
    SummaryRequest,
    compact,
    lines_around,
    summary_lines,
)
from foredeck.context.fitting import (
    SUMMARY_SHARE,
    host_limit,
    last_cut_point,
    marks_below,
    usable_window,
)
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import split_turns
from foredeck.context.plan.plan import Plan
from foredeck.context.rebase import WaterMarks
from foredeck.context.rendering import RenderContext
from foredeck.context.rewriting.folding import FoldFinder
from foredeck.context.rewriting.replacing import span_of
from foredeck.context.state.chat import Branch, Chat, by_summary
from foredeck.context.state.facilities import StandIn, StandIns
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import CompactionRequest, Inbox, SummaryAuthor
from foredeck.context.summary import ASKED_CHARS
from foredeck.context.wording import turn_line, turns_span
from foredeck.model.figures import shortened
from foredeck.model.observations import Writer
from foredeck.model.quoting import block

LEAST_SUMMARY_CHARS = 400

OWN_SHARE = (
    "foredeck cancels Pi's own compaction with this model and folds at {share:.0%} of its window "
    "instead: compaction.reserveTokens in Pi's settings keeps {reserve:,} of {window:,} tokens "
    "free, so Pi would compact at every call. With a lower value there Pi no longer tries."
)
"""Shown to the user once in a session."""

LEAST_CHARS = 200
"""Least length of a note."""


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """`cancel`: there is room. `host`: the host's model writes the summary. `summary`: as
    written."""

    action: Literal["cancel", "host", "summary"]
    made: Compacted | None = None
    keep: str | None = None
    """Entry id of the first message that stays; None: the host chooses."""
    notice: str = ""
    """A message to the user, once."""


def decide_compaction(
    compaction: HostCompaction, inbox: Inbox, folds: FoldFinder, author: SummaryAuthor
) -> CompactionDecision:
    """Decides, and commits foredeck's own compaction; others wait for `finish_compaction`."""
    request = inbox.compaction = compaction.request
    is_automatic = request.by == "threshold"
    window = request.model.window if request.model else None
    if is_automatic and window is not None and host_limit(window, request.reserve) is None:
        # The host would compact all the time: `fit` keeps prompts in the window instead.
        share, reserve = compaction.high_water, request.reserve
        notice = OWN_SHARE.format(share=share, window=window, reserve=reserve)
        return CompactionDecision("cancel", notice=notice)
    if is_automatic and _has_room(compaction, folds):
        return CompactionDecision("cancel")
    if author == "model" or request.instructions:
        return CompactionDecision("host")
    further = _further(compaction) if is_automatic else []
    keep = None
    if further:
        *items, first = further
        request, keep = replace(request, items=[*request.items, *items]), first.key.entry
    chars = compaction.context.summary_chars
    compacted = _make(replace(compaction, request=request), chars)
    return CompactionDecision("summary", compacted, keep)


def finish_compaction(
    context: RenderContext, inbox: Inbox, stand_ins: StandIns | None, summary: str, writer: Writer
) -> None:
    """Makes a compaction with another's summary."""
    request = inbox.pop_compaction()
    if request is not None and request.items and summary:
        _make(HostCompaction(context, request, stand_ins), len(summary), writer, summary)


@dataclass(frozen=True, slots=True)
class HostCompaction:
    context: RenderContext
    request: CompactionRequest
    stand_ins: StandIns | None
    high_water: float = WaterMarks().high

    @property
    def window(self) -> int | None:
        """Token limit of a prompt; None if unknown."""
        context = self.context
        return usable_window(context.chat.compactions, self.request.model, context.gauge)

    @property
    def expected(self) -> int:
        """Tokens of the next prompt, unfolded."""
        chat, gauge, record = self.context.chat, self.context.gauge, self.context.chat.branch_record
        # Beside the messages, as the newest call had it.
        chars_before = 0 if record is None else record.stats.chars_sent
        around = max(0, chars_before - chat.branch.plan.chars_sent)
        expected = gauge.prompt(chat.branch.plan, around) + gauge.tokens(self.request.new_chars)
        # While nothing was measured, all that speaks against the host's own count is an estimate.
        return expected if gauge.calls else max(expected, self.request.tokens)


def _has_room(compaction: HostCompaction, folds: FoldFinder) -> bool:
    context, window = compaction.context, compaction.window
    chat, gauge = context.chat, context.gauge
    if window is None:
        return False
    limit = window - compaction.request.reserve
    # The engine has only been started: no request has brought the messages yet.
    if not len(chat.branch.plan):
        newest = chat.log.last
        return newest is None or gauge.tokens(newest.stats.chars_sent) <= limit
    return compaction.expected - gauge.tokens(folds.all_chars(context)) <= limit


def _further(compaction: HostCompaction) -> list[Item]:
    """What the host should give up beyond its plan: a small window would soon be full again."""
    request, window, plan = compaction.request, compaction.window, compaction.context.plan
    tokens = compaction.context.gauge.tokens
    last = plan.places.get(request.items[-1].key.address) if request.items else None
    if window is None or last is None:
        return []
    chars = plan.chars
    goal = marks_below(compaction.high_water, request.model, window).low * window
    remaining = compaction.expected - tokens(sum(chars[: last + 1]))
    if remaining <= goal:
        return []
    best = None
    for index in range(last + 1, last_cut_point(plan) + 1):
        item = plan.items[index]
        if item.kind in ("user", "assistant") and not item.unsent and item.key.entry:
            best = index
            if remaining <= goal:
                break
        remaining -= tokens(chars[index])
    return [] if best is None else plan.items[last + 1 : best + 1]


def pinned_in(branch: Branch, items: Sequence[Item]) -> list[int]:
    """Handles of pinned objects that only these messages show."""
    plan, gone = branch.plan, {item.key.address for item in items}
    return sorted(
        ordinal
        for ordinal in branch.sets.pins
        if all(plan.items[index].key.address in gone for index in plan.holders.get(ordinal, ()))
    )


def _make(
    compaction: HostCompaction, chars: int, writer: Writer = "foredeck", written: str | None = None
) -> Compacted:
    context, request, window = compaction.context, compaction.request, compaction.window
    objects, chat = context.objects, context.chat
    share = chars if window is None else int(SUMMARY_SHARE * window * context.gauge.rate)
    previous = by_summary(chat.compactions, request.previous) if request.previous else None
    before = chat.compactions.get(previous or "")
    last = 0 if before is None else int(before["last_turn"])
    items = _as_known(chat.branch, request.items)
    begins = before is not None or (bool(items) and items[0].kind == "user")
    first, pinned = last + (1 if begins else 2), pinned_in(chat.branch, items)
    summary_request = SummaryRequest(
        request.by,
        max(LEAST_SUMMARY_CHARS, min(chars, share)),
        request.time_ms,
        request.instructions,
        _refused(chat, request),
        written,
        writer,
    )
    if written is None and compaction.stand_ins is not None:
        around = lines_around(objects, previous, pinned)
        written = _observed_summary(
            objects, compaction.stand_ins, items, summary_request, first, max(chars, share), around
        )
        summary_request = replace(summary_request, written=written)
    compacted = compact(
        objects, chat, items, summary_request, first=first, previous=previous, pinned=pinned
    )
    objects.workspace.commit()
    return compacted


def _as_known(branch: Branch, items: Sequence[Item]) -> list[Item]:
    keys = {item.key.address: item.key for item in branch.plan.items}
    list = Plan()
    for item in items:
        list.append(replace(item, key=keys.get(item.key.address, item.key)))
    return list.items


def _refused(chat: Chat, request: CompactionRequest) -> dict[str, Any]:
    record = chat.branch_record
    if request.by != "overflow" or record is None or request.model is None:
        return {}
    return {"model": request.model.name, "chars": record.stats.chars_sent}


def _observed_summary(
    objects: Objects,
    stand_ins: StandIns,
    items: Sequence[Item],
    request: SummaryRequest,
    first: int,
    chars: int,
    around: Sequence[str],
) -> str | None:
    """The notes that cover these messages; None without any.

    `request`: how to summarise the rest.
    """
    spans = _spans(stand_ins, items)
    if not spans:
        return None
    ordinal, turn = len(objects.index) + 1, first - 1
    share = max(LEAST_CHARS, chars // (2 * len(spans) + 1) - 100)
    lines: list[str] = []
    position = 0
    for start, end, stand_in in [*spans, (len(items), len(items), None)]:
        gap = items[position:start]
        if any(item.kind != "opaque" for item in gap):
            lines.append(summary_lines(objects, request, gap, turn + 1)[:share])
            turn += sum(item.kind == "user" for item in gap)
        if stand_in is not None:
            questions = sum(item.kind == "user" for item in items[start:end])
            lines.append(f"{turns_span(turn + 1, turn + max(1, questions))}, from notes:")
            lines += _asked(items[start:end], turn + 1)
            lines.append(block(stand_in.text)[:share])
            turn += questions
        position = end
    return "\n".join([_heading(ordinal, first, max(first, turn)), *around, *lines])[:chars]


def _spans(stand_ins: StandIns, items: Sequence[Item]) -> list[tuple[int, int, StandIn | None]]:
    places = {item.key.address: index for index, item in enumerate(items)}
    spans: list[tuple[int, int, StandIn | None]] = []
    for stand_in in sorted(stand_ins.known(), key=lambda each: -len(each.covers)):
        span = span_of(stand_in, places, items)
        if span and all(span[1] <= start or end <= span[0] for start, end, _ in spans):
            spans.append((*span, stand_in))
    return sorted(spans, key=lambda each: each[0])


def _asked(items: Sequence[Item], first: int) -> list[str]:
    turns = split_turns(items, first)
    questions = ((turn.number, shortened(turn.asked, ASKED_CHARS)) for turn in turns)
    return [turn_line(number, text) for number, text in questions if text]


def _heading(ordinal: int, first: int, last: int) -> str:
    return (
        f"[foredeck] {turns_span(first, last)}, from notes, not the user's words. "
        f'activate "@{ordinal} turns A-B" shows these turns in full, "@{ordinal}::lost" what is '
        "left out here."
    )
