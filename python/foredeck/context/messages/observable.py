"""The conversation as an observer is shown it, made of items.

In a module of its own: only a session that is observed loads what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foredeck.context.arguments import args_display
from foredeck.context.messages.items import Item, ToolUse
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.observations.chunks import SourceCall, SourceMessage


def observable(
    items: Sequence[Item],
    tokens: Callable[[float], int],
    *,
    cwd: str = "",
    first_turn: int = 1,
    is_ours: Callable[[Item], bool] = lambda _item: False,
) -> list[SourceMessage]:
    """The messages, one for each item.

    `tokens`: of this many characters (`Gauge.tokens`). `first_turn`: what to call the first user
    turn of the list. `is_ours`: whether a message holds what foredeck has written, as a summary
    of its own does; results of its tools are found here.
    """
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
    return SourceCall(call.id, call.tool, args_display(call.arguments, cwd), call.arguments)
