"""What the first prompt in the other agent costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from foredeck.context.messages.shape import Message, to_item
from foredeck.model.calls import CallRecord
from foredeck.model.messages import text_in
from foredeck.model.quoting import looks_like_ours
from foredeck.model.records import call_id
from foredeck.model.wrappings import asked
from foredeck.prices import Cost, prices, rates_at
from foredeck.store.store import Store
from foredeck_agents.carry.origin import CALLS, messages_of

MOST_SESSIONS = 20
"""Newest sessions of the agent that are asked for their models."""


class Priced(NamedTuple):
    model: str
    cost: Cost

    def dollars(self, tokens: int) -> float:
        """What a prompt costs that the provider reads for the first time."""
        rates = rates_at(self.cost, tokens)
        return tokens * float(rates.get("cacheWrite") or rates.get("input") or 0) / 1_000_000


def priced(models: Iterable[str]) -> Priced | None:
    """The first of these models that has a price."""
    for model in filter(None, models):
        provider, _, id = model.rpartition("/")
        cost = prices(id, provider.partition("/")[0])
        if cost and cost.get("input"):
            return Priced(model, cost)
    return None


def chars_beside(store: Store, harness: str) -> int:
    """Characters that the agent sends beside the chat: instructions, tools, and what it adds to
    the user's messages. By its newest session; 0 without one."""
    for session in islice(_newest(store, harness), MOST_SESSIONS):
        for number in range(1, CALLS + 2):
            head = store.head(call_id(session, number))
            if head is None:
                break
            record = CallRecord(head.fields)
            if record.system is not None:
                messages = [each.message for each in messages_of(store, record)]
                chat = sum(to_item(m, None, {}).chars - _added_chars(m) for m in messages)
                return record.stats.chars_host - chat
    return 0


def _added_chars(message: Message) -> int:
    """Characters of a message that its agent has written."""
    if message.get("role") in ("assistant", "toolResult"):
        return 0
    text = text_in(message.get("content"))
    if looks_like_ours(text):
        return 0
    return len(text) - len(asked(text) if message.get("role") == "user" else "")


def models_of(store: Store, harness: str) -> Iterator[str]:
    """Models that the agent has used here, newest session first."""
    for session in islice(_newest(store, harness), MOST_SESSIONS):
        turns = store.query("turn", {"session": session})
        metas = (head.fields.get("assistant_meta") or {} for head in reversed(turns))
        yield next((f"{m.get('provider') or ''}/{m['model']}" for m in metas if m.get("model")), "")


def _newest(store: Store, harness: str) -> Iterator[str]:
    heads = store.query("session", {"harness": harness})
    return (str(head.fields["session_id"]) for head in reversed(heads))
