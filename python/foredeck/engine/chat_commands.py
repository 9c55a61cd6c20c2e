"""What the user is told of the chat: `/foredeck compact`, and what `/foredeck off` would cost."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from foredeck.context.calls.call import SUMMARY_CHARS
from foredeck.context.compactions import last_compaction, names_of, preview, report_of
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import split_turns
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Chat, by_summary
from foredeck.context.summary import losses_of
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ForedeckError, ToolError
from foredeck.hosts.host import dollars
from foredeck.hosts.protocol import CommandResult
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted
from foredeck.store.clock import now_ms

log = logging.getLogger(__name__)

ADOPTED = "A summary from while foredeck was not on"


def compact_text(opened: OpenedSession, arguments: str) -> str:
    objects, chat = opened.session.objects, opened.session.chat
    if arguments == "--preview":
        return preview(objects, chat, SUMMARY_CHARS)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now. /compact compacts."
        )
    return adopted_compaction(opened) or last_compaction(objects, chat.compactions)


def adopted_compaction(opened: OpenedSession) -> str | None:
    """Reports on the summary that begins the chat, if the engine did not see it being made."""
    objects, chat = opened.session.objects, opened.session.chat
    summary = _summary_at_front(chat.branch.plan)
    if summary is None or by_summary(chat.compactions, summary) is not None:
        return None
    document = objects.document()
    if document is None or document.host_file is None:
        return None
    try:
        items = summarized(document.harness, Path(document.host_file), summary)
    except (ForedeckError, ValueError, LookupError, TypeError) as error:
        log.info("what a summary covers is not known: %s", error)
        return None
    if not items:
        return None
    lost = losses_of(split_turns(items, 1), names_of(objects), summary)
    return report_of(ADOPTED, summary, lost)


def _summary_at_front(plan: Plan) -> str | None:
    items = plan.items
    if not items or items[0].kind != "context" or not items[0].blocks:
        return None
    return str(items[0].blocks[0].get("text") or "") or None


READERS: Mapping[str, str] = {"pi": "foredeck_agents.histories.pi"}
"""Modules by host, imported on first use; each has a function `summarized`."""


def summarized(host: str, file: Path, summary: str) -> Sequence[Item]:
    """The messages that a summary in a host's session file stands for. Raises `ForedeckError`."""
    if host not in READERS:
        return ()
    items: Sequence[Item] = import_module(READERS[host]).summarized(file, summary)
    return items


MUCH_DOLLARS = 0.05
MUCH_REASONING = 10
"""Beyond either the user is asked first."""


def cost_of_off(chat: Chat) -> CommandResult:
    """What the next call costs more and loses."""
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
