"""Messages as turns, word for word, and as an observer sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from foredeck.context import wording
from foredeck.context.messages.items import Item, ToolUse, args_display
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.model.quoting import block
from foredeck.store.clock import MINUTE_MS

if TYPE_CHECKING:  # only a session that is observed loads what observations are made of
    from foredeck.observations.chunks import SourceCall, SourceMessage

PAUSE_MS = 30 * MINUTE_MS
"""A longer pause gets a mark."""


@dataclass(slots=True)
class ChatTurn:
    """A user turn, numbered along the branch."""

    number: int
    items: list[Item] = field(default_factory=list)

    @property
    def asked(self) -> str:
        return "\n".join(item.said for item in self.items if item.kind == "user").strip()

    @property
    def answered(self) -> str:
        texts = [i.said for i in self.items if i.kind == "assistant" and not i.unsent]
        return next((text for text in reversed(texts) if text.strip()), "").strip()


@dataclass(frozen=True, slots=True)
class TranscriptNames:
    """Lookups of a transcript."""

    call: Callable[[str], int | None]
    """Handle by the provider's id."""
    cwd: str = ""
    zone: tzinfo | None = None
    """None: the machine's."""

    def time(self, time_ms: int) -> str:
        """`2026-02-02 03:40 +01:00`; empty for 0."""
        if time_ms <= 0:
            return ""
        moment = datetime.fromtimestamp(time_ms / 1000, self.zone)
        moment = moment if self.zone else moment.astimezone()
        offset = moment.strftime("%z")
        return f"{moment:%Y-%m-%d %H:%M} {offset[:3]}:{offset[3:5]}"


def split_turns(items: Sequence[Item], first: int) -> list[ChatTurn]:
    """`first`: number of the first user turn; messages before it belong to the one before."""
    turns: list[ChatTurn] = []
    number = first - 1
    for item in items:
        if item.kind == "opaque":
            continue
        if item.kind == "user":
            number += 1
        if not turns or turns[-1].number != number:
            turns.append(ChatTurn(number))
        turns[-1].items.append(item)
    return turns


def pause_marks(items: Sequence[Item], names: TranscriptNames) -> dict[int, str]:
    """A line on each pause, by the index of the message after it."""
    marks: dict[int, str] = {}
    before = 0
    for index, item in enumerate(items):
        if before and item.time_ms - before > PAUSE_MS:
            marks[index] = wording.pause(item.time_ms - before, names.time(item.time_ms))
        before = item.time_ms or before
    return marks


def markdown(turn: ChatTurn, names: TranscriptNames) -> str:
    """A turn as Markdown, without thinking, results as lines."""
    when = next((names.time(item.time_ms) for item in turn.items if item.time_ms > 0), "")
    lines = [wording.turn_heading(turn.number, when)]
    results = {item.call_id: item for item in turn.items if item.kind == "result"}
    marks = pause_marks(turn.items, names)
    for index, item in enumerate(turn.items):
        if index in marks:
            lines.append(marks[index])
        text = item.said
        if item.kind in ("user", "assistant", "context") and text.strip():
            lines += [wording.message_heading(item.kind, stopped=item.unsent), block(text)]
        lines += [_call_line(call.id, results.get(call.id), item, names) for call in item.calls]
    return "\n".join(lines) + "\n"


def _call_line(id: str, result: Item | None, item: Item, names: TranscriptNames) -> str:
    call = next(c for c in item.calls if c.id == id)
    status = "none" if result is None else "fail" if result.failed else "ok"
    args = args_display(call.arguments, names.cwd)
    return wording.call_line(names.call(id), call.tool, args, status)


def observable(
    items: Sequence[Item],
    tokens: Callable[[float], int],
    *,
    cwd: str = "",
    first_turn: int = 1,
    is_ours: Callable[[Item], bool] = lambda _item: False,
) -> list[SourceMessage]:
    """The messages as an observer sees them, one per item.

    `tokens` converts characters; `is_ours`: foredeck wrote it.
    """
    from foredeck.observations.chunks import SourceMessage

    return [
        SourceMessage(
            address=item.key.address,
            kind=item.kind,
            text=item.text if item.kind == "result" else item.said,
            tokens=tokens(item.chars),
            time_ms=item.time_ms,
            turn=max(0, first_turn - 1 + item.turn),
            calls=tuple(_call(call, cwd) for call in item.calls),
            call_id=item.call_id,
            tool=item.tool,
            shown=args_display(item.arguments, cwd),
            failed=item.failed,
            unsent=item.unsent,
            is_ours=item.tool in OWN_TOOLS or is_ours(item),
        )
        for item in items
    ]


def _call(call: ToolUse, cwd: str) -> SourceCall:
    from foredeck.observations.chunks import SourceCall

    return SourceCall(call.id, call.tool, args_display(call.arguments, cwd), call.arguments)
