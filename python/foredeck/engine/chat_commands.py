"""Commands about the chat: what was compacted, what `/foredeck off` costs."""

from __future__ import annotations

from foredeck.context.calls.call import SUMMARY_CHARS
from foredeck.context.compactions import last_compaction, preview
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.host import dollars
from foredeck.hosts.protocol import CommandResult
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted
from foredeck.store.clock import now_ms


def compact_command(opened: OpenedSession, arguments: str) -> str:
    """`/foredeck compact`: the newest compaction, or what one would say now."""
    objects, chat = opened.session.objects, opened.session.chat
    if arguments == "--preview":
        return preview(objects, chat, SUMMARY_CHARS)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now. /compact compacts."
        )
    return last_compaction(objects, chat.compactions)


MUCH_DOLLARS = 0.05
MUCH_REASONING = 10
"""Beyond either the user is asked first."""


def cost_of_off(opened: OpenedSession, _arguments: str) -> CommandResult:
    """What the next call costs more and loses."""
    chat = opened.session.chat
    plan, record = chat.branch.plan, chat.branch_record
    first = _first_edited(plan)
    if record is None or first is None:
        return {"text": ""}
    model, items = record.model, plan.items[first:]
    age_ms = now_ms() - max(record.time_ms, record.cache.warmed_ms)
    is_warm = age_ms <= (model.ttl_s or DEFAULT_TTL_S) * 1000
    tokens = int(sum(item.chars for item in items) / record.stats.rate) if is_warm else 0
    price = tokens * max(0.0, model.write - model.read) * model.input_price / 1_000_000
    reasoning = sum(
        plan.seals.binds(item) and REASONING not in op.folded
        for item, op in zip(items, plan.ops[first:], strict=True)
    )
    cost = f" ({dollars(price)})" if price else ""
    parts = [
        f"reads {tokens:,} tokens anew that are in the provider's cache now{cost}"
        if tokens
        else "",
        f"loses the reasoning behind {counted(reasoning, 'answer')}" if reasoning else "",
    ]
    parts = [part for part in parts if part]
    if not parts:
        return {"text": ""}
    is_much = price >= MUCH_DOLLARS or reasoning >= MUCH_REASONING
    return {"text": f"The next call {' and '.join(parts)}.", "asks": is_much}


def _first_edited(plan: Plan) -> int | None:
    for index, op in enumerate(plan.ops):
        if plan.says.get(index) or op.blocks is not None or plan.is_omitted(index):
            return index
    return None
