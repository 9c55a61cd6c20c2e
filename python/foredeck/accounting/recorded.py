"""What answers have cost by their providers' counts, in sessions read from a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foredeck.accounting.figure import CostFigure
from foredeck.context.messages.shape import time_of
from foredeck.context.rebase import prices_of
from foredeck.model.costs import Cost, dollars
from foredeck.prices import prices
from foredeck.store.protocol import Head

COUNTS = {"input": "input", "cacheRead": "read", "cacheWrite": "written", "output": "output"}
"""What a provider counts, as hosts and pages name it."""


def used(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's counts, the cost in dollars (`money`), and that of the prompt alone
    (`prompt`)."""
    usage = meta.get("usage") or {}
    given = {name: usage.get(name) for name in COUNTS}
    counts = {name: count if isinstance(count, int) else 0 for name, count in given.items()}
    paid = usage.get("cost")
    if isinstance(paid, dict):
        money, output = paid.get("total"), paid.get("output")
    else:
        cost = listed(meta)
        money = None if cost is None else dollars(cost, counts)
        prompt = None if cost is None else dollars(cost, {**counts, "output": 0})
        output = None if money is None or prompt is None else money - prompt
    total = money if isinstance(money, int | float) and money > 0 else None
    output_tokens = output if isinstance(output, int | float) else 0.0
    return {
        **{ours: counts[theirs] for theirs, ours in COUNTS.items()},
        "money": total,
        "prompt": None if total is None else total - output_tokens,
    }


def listed(meta: Mapping[str, Any]) -> Cost | None:
    """The listed prices of the model at that time."""
    return prices(str(meta.get("model")), str(meta.get("provider")), time_of(dict(meta)))


def recorded_figure(turns: Iterable[Head]) -> CostFigure:
    """The cost of these turns' prompts, the same on both sides."""
    calls, money, tokens, unpriced = 0, 0.0, 0.0, set[str]()
    for head in turns:
        meta = head.fields.get("assistant_meta") or {}
        usage = used(meta)
        if not usage["input"] + usage["read"] + usage["written"]:
            continue
        calls += 1
        if usage["prompt"] is None:
            unpriced.add(str(meta.get("model") or ""))
            model = prices_of(listed(meta))
            tokens += usage["input"] + model.read * usage["read"] + model.write * usage["written"]
        else:
            money += usage["prompt"]
    in_money = money > 0 or not unpriced
    cost = money if in_money else tokens
    return CostFigure(
        calls, cost, cost, in_money=in_money, is_estimate=True, unpriced=frozenset(unpriced)
    )
