"""Whether one more question may be asked: shares, hours and failures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.accounting.asked import cost_of
from foredeck.model.asked import AskedDocument
from foredeck.store.clock import HOUR_MS, MINUTE_MS

LONGEST_PAUSE_MIN = 60
RATE_LIMIT_PAUSE_MIN = 5

_RATE_LIMITS = (
    "429",
    "529",
    "rate limit",
    "rate_limit",
    "overloaded",
    "too many requests",
    "quota",
)
_SENT = ("open", "answered", "useless", "timed_out", "cancelled")
_FAILURES = ("useless", "timed_out")


@dataclass(frozen=True, slots=True)
class Caps:
    """`share`: of what the session has cost, the most that questions may; `per_hour`: how many."""

    share: float
    per_hour: int


@dataclass(frozen=True, slots=True)
class Spending:
    """What one more question would mean, in dollars.

    `session`: what the agent's calls have cost so far; `price`: what the question is expected to;
    `worth`: what an answer saves, None where that is not the point; `insisted`: the user knows the
    price and wants it asked.
    """

    session: float
    price: float
    worth: float | None = None
    insisted: bool = False


def why_not(
    asked: Sequence[AskedDocument], spending: Spending, caps: Caps, now_ms: int
) -> str | None:
    """Why a question is not asked now; None where it may be. `asked`: all before, oldest first."""
    if spending.insisted:
        return _paused(asked, now_ms)
    return (
        _not_worth_it(spending)
        or _paused(asked, now_ms)
        or _too_many(asked, caps, now_ms)
        or _too_dear(asked, spending, caps)
    )


def _not_worth_it(spending: Spending) -> str | None:
    if spending.worth is None or spending.price <= spending.worth:
        return None
    return f"it would cost {_dollars(spending.price)} and save {_dollars(spending.worth)}"


def _too_many(asked: Sequence[AskedDocument], caps: Caps, now_ms: int) -> str | None:
    recent = [each for each in asked if each.time_ms > now_ms - HOUR_MS and each.outcome in _SENT]
    if len(recent) < caps.per_hour:
        return None
    return f"{len(recent)} questions were asked within the hour (asking.per_hour)"


def _too_dear(asked: Sequence[AskedDocument], spending: Spending, caps: Caps) -> str | None:
    spent = sum(map(cost_of, asked))
    allowed = caps.share * spending.session
    if spent + spending.price <= allowed:
        return None
    return (
        f"it would cost {_dollars(spending.price)}; questions may cost {caps.share:.0%} of the "
        f"session's {_dollars(spending.session)} (asking.share), and have cost {_dollars(spent)}"
    )


def _paused(asked: Sequence[AskedDocument], now_ms: int) -> str | None:
    """After failures: a minute, doubled with each one more; longer where the provider says that
    it is asked too much."""
    failures = _last_failures(asked)
    if not failures:
        return None
    last = failures[-1]
    first = RATE_LIMIT_PAUSE_MIN if is_rate_limit(last.reason) else 1
    minutes = min(LONGEST_PAUSE_MIN, first * 2 ** min(len(failures) - 1, 10))
    left = (last.ended_ms or last.time_ms) + minutes * MINUTE_MS - now_ms
    if left <= 0:
        return None
    return f"the last question failed ({last.reason}); the next is in {-(-left // MINUTE_MS)} min"


def _last_failures(asked: Sequence[AskedDocument]) -> list[AskedDocument]:
    """The questions since the last answer that failed, oldest first."""
    failures: list[AskedDocument] = []
    for each in reversed(asked):
        if each.outcome == "answered":
            break
        if each.outcome in _FAILURES:
            failures.append(each)
    return failures[::-1]


def is_rate_limit(reason: str) -> bool:
    """Whether a provider has said that it is asked too much."""
    said = reason.lower()
    return any(words in said for words in _RATE_LIMITS)


def _dollars(amount: float) -> str:
    return f"${amount:.4f}" if amount < 1 else f"${amount:.2f}"
