"""What a list needs for a provider to accept it: says fill gaps, strays are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from foredeck.context.messages.items import Item, ToolUse, text_block
from foredeck.context.plan.ops import Say
from foredeck.context.wording import history_cut, no_named_result, no_result
from foredeck.model.messages import answered_by, newest_answer


@dataclass(slots=True)
class Repairs:
    says: dict[int, list[Say]] = field(default_factory=dict)
    omitted: set[int] = field(default_factory=set)


def repair(items: Sequence[Item], start: int = 0) -> Repairs:
    """The repairs from index `start` on; earlier ones count as made."""
    repairs = Repairs()
    pending: list[ToolUse] = []
    strays: list[Item] = []
    has_begun = any(map(_begins, islice(items, start)))
    # From the newest answer before `start`: results of its calls may only come now.
    for index in range(max(0, newest_answer(items, start, sent=True)), len(items)):
        item = items[index]
        if item.kind == "result":
            at = answered_by([call.id for call in pending], item.call_id)
            if at is not None:
                pending.pop(at)
                continue
            if index >= start:
                repairs.omitted.add(index)
            # Also those before `start`: what was said of them is said in the same way again.
            strays.append(item)
            continue
        # No model sees it, so it does not come between a call and its result.
        if item.kind == "opaque":
            continue
        _close(pending, strays, index, start, repairs)
        if item.kind == "assistant" and not item.unsent:
            pending = list(item.calls)
            if not has_begun:
                repairs.says.setdefault(index, []).insert(0, _beginning())
        has_begun = has_begun or _begins(item)
    _close(pending, strays, len(items), start, repairs)
    if not has_begun:
        repairs.says.setdefault(len(items), []).append(_beginning())
    return repairs


def _begins(item: Item) -> bool:
    return item.kind in ("user", "context", "assistant") and not item.unsent


def _beginning() -> Say:
    return Say("list_start", [text_block(history_cut())])


def _close(
    pending: list[ToolUse], strays: list[Item], index: int, start: int, repairs: Repairs
) -> None:
    if pending and index >= start:
        content = [text_block(no_named_result() if strays else no_result())]
        if len(pending) == len(strays) == 1:
            # No other can be meant.
            content = strays[0].blocks
        repairs.says.setdefault(index, []).extend(
            Say("no_result", content, call_id=call.id, tool=call.tool) for call in pending
        )
    pending.clear()
    strays.clear()
