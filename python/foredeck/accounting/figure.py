"""The one figure: cost beside that of plain Pi, in the host's currency, or in uncached input tokens
without prices.

Plain Pi's side is what Pi would have sent at the same calls; ours includes foredeck's questions.
Calls without foredeck count on neither side.

In sessions read from a history both sides are what their providers counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foredeck.context.messages.shape import time_of
from foredeck.context.rebase import prices_of
from foredeck.model.call_values import DEFAULT_READ, DEFAULT_WRITE, ModelSpending
from foredeck.model.calls import CallRecord
from foredeck.model.figures import Amounts, amounts, counted, model_name, money, short_count
from foredeck.model.records import AskedDocument
from foredeck.prices import Cost, dollars, prices
from foredeck.store.protocol import Head
from foredeck.store.store import Store

LEAST_MONEY, LEAST_TOKENS = 0.01, 2_000
"""A smaller difference has no share, and the status line is silent."""


@dataclass(frozen=True, slots=True)
class CostFigure:
    """What calls have cost, and would have with plain Pi."""

    calls: int = 0
    plain: float = 0.0
    ours: float = 0.0
    """Questions included."""
    questions: float = 0.0
    in_money: bool = True
    is_estimate: bool = False
    """Whether no provider has counted a prompt yet."""
    unpriced: frozenset[str] = frozenset()
    """The models without a known price."""

    def __add__(self, other: CostFigure) -> CostFigure:
        """Both together; of figures in different units only the calls."""
        if not other.calls or not self.calls:
            return self if self.calls else other
        if self.in_money != other.in_money:
            raise ValueError("dollars and tokens cannot be added: sum each by itself")
        return CostFigure(
            self.calls + other.calls,
            self.plain + other.plain,
            self.ours + other.ours,
            self.questions + other.questions,
            self.in_money,
            self.is_estimate or other.is_estimate,
            self.unpriced | other.unpriced,
        )

    @property
    def saved(self) -> float:
        return self.plain - self.ours

    @property
    def matters(self) -> bool:
        """Whether the difference is more than a short session's."""
        return abs(self.saved) >= (LEAST_MONEY if self.in_money else LEAST_TOKENS)

    @property
    def short(self) -> str:
        """`$1.20 saved (41%)`, `$0.002 more so far`."""
        about = "~" if self.is_estimate else ""
        saved = self.amounts.saved.removeprefix("-") + ("" if self.in_money else " tokens")
        if not any(digit in saved for digit in "123456789"):
            return f"{about}nothing saved so far"
        if self.saved < 0:
            return f"{about}{saved} more so far"
        if not self.matters:
            return f"{about}{saved} saved so far"
        return f"{about}{saved} saved ({self.share})"

    @property
    def share(self) -> str:
        return f"{100 * self.saved / self.plain:.0f}%" if self.saved > 0 and self.matters else ""

    @property
    def sentence(self) -> str:
        """The figure with both sides of it."""
        if not self.calls:
            return "No call has gone out with foredeck yet."
        both = self.amounts
        return (
            f"{self.short}: {both.ours} instead of {both.plain} "
            f"with plain Pi, over {counted(self.calls, 'call')}"
        )

    @property
    def amounts(self) -> Amounts:
        """Both sides and what was saved, as people read them."""
        return amounts(self.plain, self.ours, in_money=self.in_money)

    def amount(self, value: float) -> str:
        """Money or tokens, as people read them."""
        return money(value) if self.in_money else f"{short_count(value)} tokens"

    def to_json(self) -> dict[str, Any]:
        digits = 6 if self.in_money else 0
        return {
            "calls": self.calls,
            "unit": "dollars" if self.in_money else "uncached input tokens",
            "plain_pi": round(self.plain, digits),
            "foredeck": round(self.ours, digits),
            "questions": round(self.questions, digits),
            "saved": round(self.saved, digits),
            "estimate": self.is_estimate,
            "unpriced": sorted(self.unpriced),
            "cost": self.amounts.ours + ("" if self.in_money else " tokens"),
            "short": self.short,
            "text": self.sentence,
        }


def unpriced_lines(models: Iterable[str]) -> list[str]:
    """Messages to the user about models without prices."""
    names = ", ".join(sorted(set(map(model_name, models))))
    return [f"No price is known of {names}: such sessions count in tokens."] if names else []


def figure_of(
    spent: Iterable[ModelSpending],
    questions: Iterable[AskedDocument] = (),
    *,
    is_estimate: bool = False,
) -> CostFigure:
    """The figure of these sums and questions."""
    rows, questions_sent = list(spent), [each for each in questions if each.outcome != "refused"]
    in_money = all(row.price for row in rows)
    prices = [row.price / 1_000_000 if in_money else 1.0 for row in rows]
    own = sum(cost_of(each) if in_money else _tokens(each) for each in questions_sent)
    plain = sum(row.plain * price for row, price in zip(rows, prices, strict=True))
    ours = sum(row.ours * price for row, price in zip(rows, prices, strict=True))
    calls = sum(row.calls for row in rows)
    unpriced = frozenset(row.model for row in rows if row.calls and not row.price)
    return CostFigure(calls, plain, ours + own, own, in_money, is_estimate, unpriced)


def session_figure(
    store: Store,
    session: str,
    newest: CallRecord | None,
    questions: Iterable[AskedDocument] | None = None,
) -> CostFigure:
    """The figure of a stored session; `newest`: the record of its newest call."""
    if newest is None:
        return CostFigure()
    # A call without the engine has no report of its own, and says nothing of the ones before.
    estimate = not newest.stats.reports and not newest.is_host
    asked = stored_questions(store, session) if questions is None else questions
    return figure_of(newest.spent, asked, is_estimate=estimate)


def figure_lines(store: Store, session: str, newest: CallRecord | None) -> list[str]:
    """The figure for the user, with foredeck's own questions."""
    questions = stored_questions(store, session)
    figure = session_figure(store, session, newest, questions)
    lines = [f"{figure.sentence}."] if figure.calls else [figure.sentence]
    if sums := asked_sums(questions):
        lines.append(
            f"foredeck's own questions are {figure.amount(figure.questions)} of it: "
            + ", ".join(f"{name} {each.calls:,}" for name, each in sums.items())
            + "."
        )
    if figure.is_estimate and figure.calls:
        lines.append("~: an estimate, until the provider has counted three prompts.")
    return lines


def _tokens(asked: AskedDocument) -> float:
    return asked.read * DEFAULT_READ + asked.written * DEFAULT_WRITE + asked.fresh


# Questions of foredeck's own


@dataclass(slots=True)
class AskedSum:
    """Questions of one purpose; `cost` in dollars, expected if the end was not seen."""

    calls: int = 0
    failed: int = 0
    read: int = 0
    written: int = 0
    fresh: int = 0
    output: int = 0
    cost: float = 0.0

    def add(self, asked: AskedDocument) -> None:
        """Take in one question that was sent."""
        self.calls += 1
        self.failed += asked.outcome != "answered"
        self.read += asked.read
        self.written += asked.written
        self.fresh += asked.fresh
        self.output += asked.output
        self.cost += cost_of(asked)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cost": round(self.cost, 6)}


def cost_of(asked: AskedDocument) -> float:
    """What a question has cost, or was expected to."""
    if asked.outcome == "refused":
        return 0.0
    return asked.price if asked.cost is None else asked.cost


def stored_questions(store: Store, session: str) -> list[AskedDocument]:
    heads = store.query("asked", {"session": session})
    questions = [AskedDocument.model_validate({**head.fields, "content": None}) for head in heads]
    return sorted(questions, key=lambda asked: (asked.time_ms, asked.id))


def asked_sums(questions: Iterable[AskedDocument]) -> dict[str, AskedSum]:
    sums: dict[str, AskedSum] = {}
    for question in questions:
        if question.outcome != "refused":
            sums.setdefault(question.purpose, AskedSum()).add(question)
    return dict(sorted(sums.items()))


def asked_lines(sums: Mapping[str, AskedSum]) -> list[str]:
    return [_line(purpose, each) for purpose, each in sums.items()]


def _line(purpose: str, each: AskedSum) -> str:
    times = "once" if each.calls == 1 else f"{each.calls:,} times"
    failed = f", {each.failed:,} without an answer" if each.failed else ""
    read = f" ({each.read:,} from the cache)" if each.read else ""
    tokens = each.read + each.written + each.fresh
    return (
        f"{purpose}: asked {times}{failed}; {tokens:,} tokens in{read}, {each.output:,} out, "
        f"${each.cost:.4f}"
    )


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
