"""The host wants to compact: whether it has to, and by which summary.

The host counts its own raw messages where it cannot trust the provider's count, so it asks too
early; folding often helps where it would give up chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from foredeck.context.cache.rebase import WaterMarks
from foredeck.context.messages.items import Item
from foredeck.context.plan.plan import Plan
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.foldable import FoldFinder
from foredeck.context.state.chat import Branch, Chat, by_summary
from foredeck.context.state.features import StandIn, StandIns, span_of
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import CompactionRequest
from foredeck.context.window.budget import SUMMARY_SHARE, host_limit, marks_below, usable_window
from foredeck.context.window.compactions import (
    Compacted,
    SummaryRequest,
    compact,
    lines_around,
    summary_lines,
)
from foredeck.context.window.fitting import last_cut_point
from foredeck.context.window.summary import ASKED_CHARS
from foredeck.context.window.transcript import split_turns
from foredeck.context.wording import turn_line, turns_span
from foredeck.model.figures import shortened
from foredeck.model.observations import Writer
from foredeck.model.quoting import block

SummaryAuthor = Literal["foredeck", "model"]
LEAST_SUMMARY_CHARS = 400

OWN_SHARE = (
    "foredeck cancels Pi's own compaction with this model and folds at {share:.0%} of its window "
    "instead: compaction.reserveTokens in Pi's settings keeps {reserve:,} of {window:,} tokens "
    "free, so Pi would compact at every call. With a lower value there Pi no longer tries."
)
"""What the user reads, once in a session."""


LEAST_CHARS = 200
"""Of one note, however many there are."""


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """What the user can change about compactions."""

    automatic: SummaryAuthor = "foredeck"
    manual: SummaryAuthor = "model"
    summary_chars: int = 8000
    marks: WaterMarks = field(default_factory=WaterMarks)


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """`cancel`: there is room. `host`: the host's model shall write the summary. `summary`: it is
    written already."""

    action: Literal["cancel", "host", "summary"]
    made: Compacted | None = None
    keep: str | None = None
    """The host's entry id of the first message that stays; None: the one that the host has in
    mind."""
    notice: str = ""
    """What the user is to know of it, once."""


def decide_compaction(
    context: RenderContext,
    inbox: Inbox,
    stand_ins: StandIns | None,
    folds: FoldFinder,
    request: CompactionRequest,
    settings: CompactionSettings,
) -> CompactionDecision:
    """What to do. A compaction that is made here is committed before this returns; one that the
    host's model shall write, or another extension writes instead, waits for `finish_compaction`."""
    inbox.compaction = request
    objects, chat, gauge = context.objects, context.chat, context.gauge
    if request.by == "threshold" and _leaves_too_little(request):
        return CompactionDecision("cancel", notice=_own_share(request, settings.marks.high))
    if request.by == "threshold" and _has_room(context, folds, request):
        return CompactionDecision("cancel")
    writer = settings.manual if request.by == "user" else settings.automatic
    if writer == "model" or request.instructions:
        return CompactionDecision("host")
    further = _further(chat, gauge, request, settings) if request.by == "threshold" else []
    keep = None
    if further:
        *items, first = further
        request, keep = replace(request, items=[*request.items, *items]), first.key.entry
    made = _make(objects, chat, stand_ins, gauge, request, settings.summary_chars)
    return CompactionDecision("summary", made, keep)


def _leaves_too_little(request: CompactionRequest) -> bool:
    """Whether the host would compact all the time: `fit` keeps prompts in the window instead."""
    window = request.model.window if request.model else None
    return window is not None and host_limit(window, request.reserve) is None


def _own_share(request: CompactionRequest, share: float) -> str:
    window = (request.model.window if request.model else None) or 0
    return OWN_SHARE.format(share=share, window=window, reserve=request.reserve)


def finish_compaction(
    objects: Objects,
    chat: Chat,
    inbox: Inbox,
    stand_ins: StandIns | None,
    summary: str,
    writer: Writer = "model",
) -> Compacted | None:
    """Another has written the summary: the object of what was compacted."""
    request = inbox.pop_compaction()
    if request is None or not request.items or not summary:
        return None
    return _make(objects, chat, stand_ins, Gauge(), request, len(summary), writer, summary)


def _has_room(context: RenderContext, folds: FoldFinder, request: CompactionRequest) -> bool:
    """Whether the next prompt, with everything folded that may be, leaves the host's reserve."""
    chat, gauge = context.chat, context.gauge
    window = usable_window(chat.compactions, request.model, gauge)
    if window is None:
        return False
    limit = window - request.reserve
    # The engine has only been started: no request has brought the messages yet.
    if not len(chat.branch.plan):
        newest = chat.log.last
        return newest is None or gauge.tokens(newest.stats.chars_sent) <= limit
    return _expected(chat, gauge, request) - gauge.tokens(folds.all_chars(context)) <= limit


def _expected(chat: Chat, gauge: Gauge, request: CompactionRequest) -> int:
    """Tokens of the next prompt, with nothing folded."""
    expected = gauge.prompt(chat.branch.plan, _around(chat))
    expected += gauge.tokens(request.new_chars)
    # While nothing was measured, all that stands against the host's own count is an estimate.
    return expected if gauge.calls else max(expected, request.tokens)


def _further(
    chat: Chat, gauge: Gauge, request: CompactionRequest, settings: CompactionSettings
) -> list[Item]:
    """What the host would keep and had better give up, too, and the first message that stays: in a
    small window what it keeps fills most of it, and it would compact again soon. Empty: nothing."""
    window, plan = usable_window(chat.compactions, request.model, gauge), chat.branch.plan
    places = {item.key.address: index for index, item in enumerate(plan.items)}
    last = places.get(request.items[-1].key.address) if request.items else None
    if window is None or last is None:
        return []
    chars = plan.chars
    goal = marks_below(settings.marks, request.model, window).low * window
    left = _expected(chat, gauge, request) - gauge.tokens(sum(chars[: last + 1]))
    if left <= goal:
        return []
    best = None
    for index in range(last + 1, last_cut_point(plan) + 1):
        item = plan.items[index]
        if item.kind in ("user", "assistant") and not item.void and item.key.entry:
            best = index
            if left <= goal:
                break
        left -= gauge.tokens(chars[index])
    return [] if best is None else plan.items[last + 1 : best + 1]


def pinned_in(branch: Branch, items: Sequence[Item]) -> list[int]:
    """Handles of what is pinned and is nowhere else in the chat than in these messages."""
    plan, gone = branch.plan, {item.key.address for item in items}
    return sorted(
        ordinal
        for ordinal in branch.sets.pins
        if all(plan.items[index].key.address in gone for index in plan.holders.get(ordinal, ()))
    )


def _around(chat: Chat) -> int:
    """Characters beside the messages, as the newest call had them."""
    record = chat.branch_record
    if record is None:
        return 0
    return max(0, record.stats.chars_sent - chat.branch.plan.chars_sent)


def _make(
    objects: Objects,
    chat: Chat,
    stand_ins: StandIns | None,
    gauge: Gauge,
    request: CompactionRequest,
    chars: int,
    writer: Writer = "foredeck",
    written: str | None = None,
) -> Compacted:
    window = usable_window(chat.compactions, request.model, gauge)
    share = chars if window is None else int(SUMMARY_SHARE * window * gauge.rate)
    previous = by_summary(chat.compactions, request.previous) if request.previous else None
    before = chat.compactions.get(previous or "")
    last = 0 if before is None else int(before["last_turn"])
    items = _as_known(chat.branch, request.items)
    begins = before is not None or (bool(items) and items[0].kind == "user")
    first, pinned = last + (1 if begins else 2), pinned_in(chat.branch, items)
    wanted = SummaryRequest(
        request.by,
        max(LEAST_SUMMARY_CHARS, min(chars, share)),
        request.time_ms,
        request.instructions,
        _refused(chat, request),
        written,
        writer,
    )
    if written is None and stand_ins is not None:
        around = lines_around(objects, previous, pinned)
        written = _observed_summary(
            objects, stand_ins, items, wanted, first, max(chars, share), around
        )
        wanted = replace(wanted, written=written)
    made = compact(objects, chat, items, wanted, first=first, previous=previous, pinned=pinned)
    objects.workspace.commit()
    return made


def _as_known(branch: Branch, items: Sequence[Item]) -> list[Item]:
    """The items with the entry ids by which the session knows them, and with what their calls
    asked for."""
    known = {item.key.address: item.key for item in branch.plan.items}
    list = Plan()
    for item in items:
        list.append(replace(item, key=known.get(item.key.address, item.key)))
    return list.items


def _refused(chat: Chat, request: CompactionRequest) -> dict[str, Any]:
    """The prompt that the provider has refused as too long."""
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
    """What is to cover these messages, at most this many characters; None where no note covers
    any of them.

    `request`: how messages are summed up that no note covers. `first`: number of their first user
    turn. `around`: lines that follow the heading.
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
            lines.append(summary_lines(objects, request, gap, turn + 1)[:share])
            turn += sum(item.kind == "user" for item in gap)
        if stand_in is not None:
            asked = sum(item.kind == "user" for item in items[start:end])
            lines.append(f"{turns_span(turn + 1, turn + max(1, asked))}, from notes:")
            lines += _asked(items[start:end], turn + 1)
            lines.append(block(stand_in.text)[:share])
            turn += asked
        done = end
    return "\n".join([_heading(ordinal, first, max(first, turn)), *around, *lines])[:chars]


def _stretches(stand_ins: StandIns, items: Sequence[Item]) -> list[tuple[int, int, StandIn | None]]:
    """What notes cover of the messages, in their order; of two for one message, the longer."""
    places = {item.key.address: index for index, item in enumerate(items)}
    found: list[tuple[int, int, StandIn | None]] = []
    for stand_in in sorted(stand_ins.known(), key=lambda each: -len(each.covers)):
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
