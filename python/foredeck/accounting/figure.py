"""The one figure: what was sent has cost, beside what plain Pi's prompts would have cost.

Cost is in the host's currency, or in uncached input tokens where a model has no price. It is that
of the prompts; answers cost the same either way. Plain Pi's side is what Pi would have sent at
the same calls: everything in full, compacted where the window is full, without foredeck's tools,
their calls and results. On the other side are the prompts that went out and the questions that
foredeck itself has asked of a model. Calls that went out without foredeck count on neither side.
Every screen prints this figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foredeck.model.call_values import ModelSpending
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted, money
from foredeck.model.records import AskedDocument
from foredeck.store.protocol import Store

LEAST_MONEY, LEAST_TOKENS = 0.01, 2_000
"""Up to here a difference is of a short session: it has no share, and the status line is silent."""


@dataclass(frozen=True, slots=True)
class CostFigure:
    """What calls have cost, and what they would have with plain Pi."""

    calls: int = 0
    plain: float = 0.0
    ours: float = 0.0
    """Questions included."""
    questions: float = 0.0
    in_money: bool = True
    is_estimate: bool = False
    """Whether no provider has counted a prompt yet."""

    def __add__(self, other: CostFigure) -> CostFigure:
        """Both together; of figures in different units only the calls."""
        if not other.calls or not self.calls:
            return self if self.calls else other
        return CostFigure(
            self.calls + other.calls,
            self.plain + other.plain,
            self.ours + other.ours,
            self.questions + other.questions,
            self.in_money,
            self.is_estimate or other.is_estimate,
        )

    @property
    def saved(self) -> float:
        """How much less was spent; negative for more."""
        return self.plain - self.ours

    @property
    def matters(self) -> bool:
        """Whether the difference is more than that of a short session."""
        return abs(self.saved) >= (LEAST_MONEY if self.in_money else LEAST_TOKENS)

    @property
    def short(self) -> str:
        """`$1.20 saved (41%)`, `$0.002 more so far`."""
        about = "~" if self.is_estimate else ""
        if self.amount(abs(self.saved)) in ("$0.00", "0 tokens"):
            return f"{about}nothing saved so far"
        if self.saved < 0:
            return f"{about}{self.amount(-self.saved)} more so far"
        if not self.matters:
            return f"{about}{self.amount(self.saved)} saved so far"
        return f"{about}{self.amount(self.saved)} saved ({self.share})"

    @property
    def share(self) -> str:
        """What was saved, as a share of plain Pi's cost; empty for none."""
        return f"{100 * self.saved / self.plain:.0f}%" if self.saved > 0 and self.matters else ""

    @property
    def sentence(self) -> str:
        """The figure with both sides of it."""
        if not self.calls:
            return "No call has gone out with foredeck yet."
        return (
            f"{self.short}: {self._bare(self.ours)} instead of {self._bare(self.plain)} "
            f"with plain Pi, over {counted(self.calls, 'call')}"
        )

    def amount(self, value: float) -> str:
        """Money or tokens, as people read them."""
        return money(value) if self.in_money else f"{_short(value)} tokens"

    def _bare(self, value: float) -> str:
        return self.amount(value).removesuffix(" tokens")

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        digits = 6 if self.in_money else 0
        return {
            "calls": self.calls,
            "unit": "dollars" if self.in_money else "uncached input tokens",
            "plain_pi": round(self.plain, digits),
            "foredeck": round(self.ours, digits),
            "questions": round(self.questions, digits),
            "saved": round(self.saved, digits),
            "estimate": self.is_estimate,
            "cost": self.amount(self.ours),
            "short": self.short,
            "text": self.sentence,
        }


def figure_of(
    spent: Iterable[ModelSpending],
    questions: Iterable[AskedDocument] = (),
    *,
    is_estimate: bool = False,
) -> CostFigure:
    """The figure of these sums and questions."""
    rows, asked = list(spent), [each for each in questions if each.outcome != "refused"]
    in_money = all(row.price for row in rows)
    prices = [row.price / 1_000_000 if in_money else 1.0 for row in rows]
    own = sum(cost_of(each) if in_money else _tokens(each) for each in asked)
    plain = sum(row.plain * price for row, price in zip(rows, prices, strict=True))
    ours = sum(row.ours * price for row, price in zip(rows, prices, strict=True))
    calls = sum(row.calls for row in rows)
    return CostFigure(calls, plain, ours + own, own, in_money, is_estimate)


def session_figure(
    store: Store,
    session: str,
    newest: CallRecord | None,
    questions: Iterable[AskedDocument] | None = None,
) -> CostFigure:
    """The figure of a stored session. `newest`: the record of its newest call; `questions`: those
    of foredeck's own, where they are read already."""
    if newest is None:
        return CostFigure()
    # A call without the engine has no report of its own, and says nothing of the ones before.
    estimate = not newest.stats.reports and not newest.is_host
    asked = stored_questions(store, session) if questions is None else questions
    return figure_of(newest.spent, asked, is_estimate=estimate)


def figure_lines(store: Store, session: str, newest: CallRecord | None) -> list[str]:
    """The figure for the user, and how much of it foredeck's own questions are."""
    questions = stored_questions(store, session)
    figure = session_figure(store, session, newest, questions)
    lines = [f"{figure.sentence}."] if figure.calls else [figure.sentence]
    if asked := asked_sums(questions):
        lines.append(
            f"foredeck's own questions are {figure.amount(figure.questions)} of it: "
            + ", ".join(f"{name} {each.calls:,}" for name, each in asked.items())
            + "."
        )
    if figure.is_estimate and figure.calls:
        lines.append("~: an estimate, until the provider has counted three prompts.")
    return lines


def _tokens(asked: AskedDocument) -> float:
    # By the prices of most providers: a cached token costs a tenth, a written one a quarter more.
    return asked.read * 0.1 + asked.written * 1.25 + asked.fresh


def _short(count: float) -> str:
    if count < 1000:
        return str(round(count))
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"


# Questions of foredeck's own


@dataclass(slots=True)
class AskedSum:
    """Questions of one purpose. Tokens are those of the provider's counts, `cost` is in dollars;
    a question whose end was not seen counts with the price that was expected."""

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
        """For programs."""
        return {**asdict(self), "cost": round(self.cost, 6)}


def cost_of(asked: AskedDocument) -> float:
    """What a question has cost, or was expected to where that is not known; one refused,
    nothing."""
    if asked.outcome == "refused":
        return 0.0
    return asked.price if asked.cost is None else asked.cost


def stored_questions(store: Store, session: str) -> list[AskedDocument]:
    """All questions of a session, the oldest first."""
    heads = store.query("asked", {"session": session})
    found = [AskedDocument.model_validate({**head.fields, "content": None}) for head in heads]
    return sorted(found, key=lambda asked: (asked.time_ms, asked.id))


def asked_sums(questions: Iterable[AskedDocument]) -> dict[str, AskedSum]:
    """The sums of the questions that were sent, by purpose."""
    sums: dict[str, AskedSum] = {}
    for asked in questions:
        if asked.outcome != "refused":
            sums.setdefault(asked.purpose, AskedSum()).add(asked)
    return dict(sorted(sums.items()))


def asked_lines(sums: Mapping[str, AskedSum]) -> list[str]:
    """For the user: one line for each purpose; none where nothing was asked."""
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
