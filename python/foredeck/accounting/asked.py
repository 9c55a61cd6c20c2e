"""What foredeck itself has asked of a model in a session, summed up by what it was for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.records import AskedDocument
from foredeck.store.protocol import Store


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


@dataclass(slots=True)
class AskedAccount:
    """All questions of a session, by purpose."""

    purposes: dict[str, AskedSum] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """How many were sent."""
        return sum(each.calls for each in self.purposes.values())

    @property
    def cost(self) -> float:
        """What all of them cost, in dollars."""
        return sum(each.cost for each in self.purposes.values())

    def to_json(self) -> dict[str, Any]:
        """For `--json`: by purpose, its counts."""
        return {
            name: {
                **{field: getattr(each, field) for field in AskedSum.__slots__},
                "cost": round(each.cost, 6),
            }
            for name, each in sorted(self.purposes.items())
        }


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


def asked_account(questions: Iterable[AskedDocument]) -> AskedAccount:
    """The sums of these questions."""
    account = AskedAccount()
    for asked in questions:
        if asked.outcome != "refused":
            account.purposes.setdefault(asked.purpose, AskedSum()).add(asked)
    return account


def asked_lines(account: AskedAccount) -> list[str]:
    """For the user: one line for each purpose; none where nothing was asked."""
    return [_line(name, each) for name, each in sorted(account.purposes.items())]


def _line(purpose: str, each: AskedSum) -> str:
    times = "once" if each.calls == 1 else f"{each.calls:,} times"
    failed = f", {each.failed:,} without an answer" if each.failed else ""
    read = f" ({each.read:,} from the cache)" if each.read else ""
    tokens = each.read + each.written + each.fresh
    return (
        f"{purpose}: asked {times}{failed}; {tokens:,} tokens in{read}, {each.output:,} out, "
        f"${each.cost:.4f}"
    )
