"""Protocol parameters (docs/protocol.md) to neutral requests."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from foredeck.context.cache.cached import rule_of
from foredeck.context.cache.economics import prices_of
from foredeck.context.messages.items import Item
from foredeck.context.state.request import Model, Outcome, Request
from foredeck.context.window.compacting import Wish
from foredeck.hosts.pi.messages import Message, to_item
from foredeck.hosts.pi.system import written_out
from foredeck.model.compactions import AskedBy

Params = Mapping[str, Any]

_LONG_S = {"anthropic": 3600.0, "openai": 86_400.0, "azure-openai": 86_400.0}
"""What the long retention means where the model record does not say, by the wire's beginning."""


def to_request(
    params: Params, blobs: dict[str, bytes], stored: Container[str] = frozenset()
) -> Request:
    """The request behind `context/assemble`; messages to be stored go to `blobs`.

    `stored`: addresses of messages that need not be. A resumed session sends thousands of them.
    """
    messages = params.get("messages") or []
    entries = params.get("entries") or []
    system = params.get("system")
    padded = [*entries, *([None] * (len(messages) - len(entries)))]
    return Request(
        keep=params.get("keep") or 0,
        items=[
            _item(message, entry, blobs, stored)
            for message, entry in zip(messages, padded, strict=False)
        ],
        time_ms=int(params.get("time_ms") or 0),
        model=to_model(params.get("model")),
        outcomes=[to_outcome(outcome) for outcome in params.get("outcomes") or ()],
        system=None if system is None else written_out(system),
        tools=params.get("tools"),
        warmed_ms=int(params.get("warmed_ms") or 0),
    )


def _item(
    message: Message, entry: str | None, blobs: dict[str, bytes], stored: Container[str]
) -> Item:
    own: dict[str, bytes] = {}
    item = to_item(message, entry, own)
    if item.key.address not in stored:
        blobs.update(own)
    return item


def to_wish(params: Params) -> Wish:
    """The request behind `session/compact`; what it tells of messages is not stored as such."""
    unused: dict[str, bytes] = {}
    reasons: dict[str, AskedBy] = {"manual": "user", "overflow": "overflow"}
    return Wish(
        by=reasons.get(str(params.get("reason")), "threshold"),
        items=[to_item(message, None, unused) for message in params.get("messages") or ()],
        previous=str(params.get("previous") or ""),
        instructions=str(params.get("instructions") or ""),
        tokens=int(params.get("tokens") or 0),
        reserve=int(params.get("reserve") or 0),
        new_chars=int(params.get("new_chars") or 0),
        time_ms=int(params.get("time_ms") or 0),
        model=to_model(params.get("model")),
    )


def to_model(model: Params | None) -> Model | None:
    """Pi's model record, with the cache retention that Pi asks the provider for."""
    if not model:
        return None
    window = model.get("contextWindow")
    cost = model["cost"] if isinstance(model.get("cost"), dict) else {}
    per_million = cost.get("input")
    provider, id, api = (str(model.get(name) or "") for name in ("provider", "id", "api"))
    prices = prices_of(cost)
    if model.get("retention") == "none":
        prices = replace(prices, cached=False)
    return Model(
        provider=provider,
        id=id,
        api=api,
        window=int(window) if isinstance(window, int | float) and window > 0 else None,
        cache_ttl_s=_ttl_s(model, api),
        prices=prices,
        cache=rule_of(api, provider, id),
        marks=api == "anthropic-messages",
        input_price=float(per_million) if isinstance(per_million, int | float) else 0.0,
    )


def _ttl_s(model: Params, api: str) -> float | None:
    """For how long the provider keeps a prompt: as the record says, else as its documents do."""
    tier = "long" if model.get("retention") == "long" else "short"
    lifetimes = model.get("promptCache")
    told = lifetimes.get(tier) if isinstance(lifetimes, dict) else None
    if isinstance(told, int | float) and told > 0:
        return float(told)
    return next((s for wire, s in _LONG_S.items() if tier == "long" and api.startswith(wire)), None)


def to_outcome(outcome: Params) -> Outcome:
    """One entry of `outcomes`."""
    call = outcome.get("call")
    return Outcome(
        kind=outcome["kind"],
        call=int(call) if call is not None else None,
        edited=int(outcome.get("edited") or 0),
        ending=bool(outcome.get("ending")),
        messages=int(outcome.get("messages") or 0),
        time_ms=int(outcome.get("time_ms") or 0),
        reason=str(outcome.get("reason") or ""),
    )
