"""What a message list needs so that a provider accepts it.

Hosts hand over lists with holes: a call that was interrupted and has no result, a result whose
call another extension took away, a history that begins in the middle. The holes are closed here,
by messages of ours between the host's, and by leaving out what nothing can answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from foredeck.context.messages.items import Item, ToolUse, text_block
from foredeck.context.plan.ops import Say
from foredeck.context.wording import history_cut, no_result
from foredeck.model.messages import answered_by, newest_answer


@dataclass(slots=True)
class Repairs:
    """Messages to insert (before the index) and messages to leave out."""

    says: dict[int, list[Say]] = field(default_factory=dict)
    omitted: set[int] = field(default_factory=set)


def repair(items: Sequence[Item], start: int = 0) -> Repairs:
    """The repairs at or after index `start`; those before it are taken as made."""
    repairs = Repairs()
    pending: list[ToolUse] = []
    begun = any(map(_begins, islice(items, start)))
    # From the newest answer before `start`: results of its calls may only come now.
    for index in range(max(0, newest_answer(items, start, sent=True)), len(items)):
        item = items[index]
        if item.kind == "result":
            at = answered_by([call.id for call in pending], item.call_id)
            if at is not None:
                pending.pop(at)
            elif index >= start:
                repairs.omitted.add(index)
            continue
        # No model sees it, so it does not come between a call and its result.
        if item.kind == "opaque":
            continue
        _close(pending, index, start, repairs)
        if item.kind == "assistant" and not item.unsent:
            pending = list(item.calls)
            if not begun:
                repairs.says.setdefault(index, []).insert(0, _beginning())
        begun = begun or _begins(item)
    _close(pending, len(items), start, repairs)
    if not begun:
        repairs.says.setdefault(len(items), []).append(_beginning())
    return repairs


def _begins(item: Item) -> bool:
    """Whether the prompt has begun once it has this message."""
    return item.kind in ("user", "context", "assistant") and not item.unsent


def _beginning() -> Say:
    return Say("list_start", [text_block(history_cut())])


def _close(pending: list[ToolUse], index: int, start: int, repairs: Repairs) -> None:
    """Answer the calls that got no result before message `index`."""
    if pending and index >= start:
        repairs.says.setdefault(index, []).extend(
            Say("no_result", [text_block(no_result())], call_id=call.id, tool=call.tool)
            for call in pending
        )
    pending.clear()
