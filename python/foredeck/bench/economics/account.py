"""The account of one session: what each call cost, plain and with foredeck, and every lost hit.

Costs are in uncached input tokens at the prices of the model at hand. What was reported by the
provider stands beside what the rule of its cache predicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from foredeck.bench.economics.cache import CACHES, STEP_TOKENS, Cache, Hit, prompt_of
from foredeck.bench.economics.causes import (
    cause_around,
    cause_in_list,
    cause_of_ours,
    common_messages,
    continues,
)
from foredeck.bench.economics.shapes import Shape
from foredeck.bench.economics.stored import StoredCall
from foredeck.context.economics import Prices
from foredeck.context.items import Usage
from foredeck.context.rebase import CHARS_PER_TOKEN, DEFAULT_TTL_S

NOISE_TOKENS = 64
"""A hit that is reported so much shorter than predicted is a difference in counting."""

NOISE_SHARE = 0.1


Reported = Literal["ours", "plain"]


@dataclass(frozen=True, slots=True)
class Method:
    """How a session is charged. What is None is taken from its records."""

    cache: str | None = None
    ttl_s: float | None = None
    rate: float | None = None
    """Characters per token."""
    head: tuple[float, float] | None = None
    """Tokens before the messages, plain and with foredeck."""
    reported: Reported = "ours"
    """Of which prompts the provider's figures are."""


@dataclass(slots=True)
class Charge:
    """Tokens of one prompt, and their cost."""

    tokens: float = 0.0
    cached: float = 0.0
    cost: float = 0.0


@dataclass(slots=True)
class Line:
    """One call of the account."""

    call: int
    time_ms: int
    model: str
    kind: str
    reason: str
    plain: Charge
    ours: Charge
    lost: dict[str, int]
    """Tokens that the call before had left in the cache and this one did not find, by cause."""
    price: float
    """Of a million uncached input tokens, in the host's currency; 0 where it is not known."""
    reported: Usage | None = None

    def to_json(self) -> dict[str, Any]:
        """The call as `--json` prints it."""
        usage = None if self.reported is None else self.reported._asdict()
        return {**_rounded(asdict(self)), "reported": usage}


@dataclass(slots=True)
class Rebase:
    """What a rebase cost and has brought back since."""

    call: int
    reason: str
    lost: int
    """Tokens that were in the cache and were not found again because of it."""
    saved: int
    """Tokens by which the prompt became shorter."""
    paid: float
    """What writing the rest of the lost ones anew has cost more than reading it."""
    back: float
    """What the shorter prompts have cost less since, this call's included."""
    weighed: dict[str, float]
    """What the decision weighed, as recorded: rent, premium and the like."""


@dataclass(slots=True)
class Account:
    """All calls of a session, and its rebases."""

    cache: str
    ttl_s: float
    rate: float
    reports: int
    """Counts of the provider behind `rate`; 0: it is an estimate."""
    reported: Reported = "ours"
    """Of which prompts the figures are that the provider reported."""
    lines: list[Line] = field(default_factory=list)
    rebases: list[Rebase] = field(default_factory=list)

    @property
    def plain_cost(self) -> float:
        """What plain Pi would have cost, in uncached input tokens."""
        return sum(line.plain.cost for line in self.lines)

    @property
    def cost(self) -> float:
        """What the session has cost."""
        return sum(line.ours.cost for line in self.lines)

    @property
    def cached(self) -> float:
        """Tokens that were read from the cache."""
        return sum(line.ours.cached for line in self.lines)

    @property
    def uncached(self) -> float:
        """Tokens that were not."""
        return sum(line.ours.tokens - line.ours.cached for line in self.lines)

    @property
    def money(self) -> tuple[float, float] | None:
        """Cost of plain Pi and of foredeck in the host's currency; None where a price is missing
        or the prices are a profile's."""
        if self.reported != "ours" or not all(line.price for line in self.lines):
            return None
        plain = sum(line.plain.cost * line.price for line in self.lines) / 1_000_000
        return plain, sum(line.ours.cost * line.price for line in self.lines) / 1_000_000

    @property
    def compared(self) -> int:
        """How many calls the provider has reported of."""
        return sum(line.reported is not None for line in self.lines)

    def comparison(self) -> list[tuple[str, float, float]]:
        """Name, predicted and reported tokens, over the calls that were reported."""
        told = [(line, line.reported) for line in self.lines if line.reported is not None]
        if not told:
            return []
        charges = [line.ours if self.reported == "ours" else line.plain for line, _ in told]
        prompts = sum(charge.tokens for charge in charges)
        cached = sum(charge.cached for charge in charges)
        return [
            ("prompts", prompts, sum(usage.total for _, usage in told)),
            ("read from the cache", cached, sum(usage.read for _, usage in told)),
        ]

    def to_json(self) -> dict[str, Any]:
        """The account as `--json` prints it; tokens rounded."""
        total = {
            "plain_cost": round(self.plain_cost),
            "cost": round(self.cost),
            "cached_tokens": round(self.cached),
            "uncached_tokens": round(self.uncached),
            "lost_tokens": dict(self.lost.most_common()),
            "money": None if self.money is None else [round(each, 4) for each in self.money],
            "reported": {
                name: {"predicted": round(predicted), "reported": round(reported)}
                for name, predicted, reported in self.comparison()
            },
        }
        return {
            "cache": self.cache,
            "ttl_s": self.ttl_s,
            "chars_per_token": self.rate,
            "reported_calls": self.reports,
            "reported_of": self.reported,
            "calls": [line.to_json() for line in self.lines],
            "rebases": [_rounded(asdict(rebase)) for rebase in self.rebases],
            "total": total,
        }

    @property
    def lost(self) -> Counter[str]:
        """All lost hits by cause, in tokens."""
        total: Counter[str] = Counter()
        for line in self.lines:
            total.update(line.lost)
        return total


def account_of(
    calls: Iterable[StoredCall],
    method: Method,
    plain: Iterable[Sequence[Shape]] | None = None,
) -> Account:
    """The account of a session's calls. `plain`: what the host alone would have sent at each,
    where that is not the list that it gave."""
    listed = list(calls)
    newest = next((c.record for c in reversed(listed) if c.record["stats"].get("rate")), None)
    stats = {} if newest is None else newest["stats"]
    ttls = (c.record["model"].get("ttl_s") for c in reversed(listed))
    account = Account(
        method.cache or _cache_of(listed),
        method.ttl_s or next(filter(None, ttls), DEFAULT_TTL_S),
        method.rate or stats.get("rate") or CHARS_PER_TOKEN,
        stats.get("reports") or 0,
        method.reported,
    )
    clerk = _Clerk(account, method)
    for call, shapes in zip(listed, plain or (c.plain for c in listed), strict=True):
        clerk.enter(call, shapes)
    return account


def _cache_of(calls: Sequence[StoredCall]) -> str:
    """The rule of the provider that was called last."""
    api = calls[-1].record["model"].get("api", "") if calls else ""
    if api.startswith(("anthropic", "bedrock")):
        return "anthropic"
    return "openai" if api.startswith(("openai", "azure")) else "ideal"


class _Clerk:
    """Enters calls into an account, in order."""

    def __init__(self, account: Account, method: Method) -> None:
        self._account = account
        self._method = method
        self._plain: Cache = CACHES[account.cache](account.ttl_s)
        self._ours: Cache = CACHES[account.cache](account.ttl_s)
        self._ideal: Cache = CACHES["ideal"](account.ttl_s)
        self._last: tuple[StoredCall, float] | None = None
        self._open: list[tuple[Rebase, int]] = []
        """Rebases whose savings last, with the first message that they have changed."""

    def enter(self, call: StoredCall, plain: Sequence[Shape]) -> None:
        """The next call."""
        model, rate = call.record["model"], self._account.rate
        prices = Prices(model.get("read", 0.1), model.get("write", 1.25))
        heads = self._method.head or (
            (call.around.chars - call.around.own_chars) / rate,
            call.around.chars / rate,
        )
        name = f"{model.get('name') or ''}\0{call.around.hash}"
        mark = str(call.record["decision"].get("mark") or "")
        time_ms = call.record["time_ms"]
        theirs = prompt_of(name, plain, heads[0], rate, "")
        prompt = prompt_of(name, [shape for _, shape in call.sent], heads[1], rate, mark)
        hit = self._ours.request(prompt, time_ms)
        lost = self._lost(call, hit, self._ideal.request(prompt, time_ms), heads[1])
        self._compare(call, hit, lost)
        decision = call.record["decision"]
        line = Line(
            call.ordinal,
            time_ms,
            str(model.get("name") or ""),
            str(decision.get("kind") or ""),
            str(decision.get("reason") or ""),
            _charge(theirs.tokens, self._plain.request(theirs, time_ms), prices),
            _charge(prompt.tokens, hit, prices),
            {cause: round(tokens) for cause, tokens in lost.items() if round(tokens) > 0},
            float(model.get("input") or 0),
            call.usage,
        )
        self._account.lines.append(line)
        self._follow_rebases(call, line, prices)
        self._last = (call, prompt.tokens)

    def _lost(self, call: StoredCall, hit: Hit, ideal: Hit, head: float) -> dict[str, float]:
        """What the last call had left in the cache and this one did not find there."""
        if self._last is None:
            return {}
        last, total = self._last
        gap = call.record["time_ms"] - last.record["time_ms"]
        around = cause_around(last, call, expired=gap > self._account.ttl_s * 1000)
        if around is not None:
            return {around: total - hit.read}
        lost: dict[str, float] = {}
        shared = common_messages(last, call)
        standing = total
        ours: str = cause_of_ours(call)
        if shared < len(last.keys):
            standing = head + self._tokens(last, shared)
            cause = cause_in_list(last, call, shared)
            lost[cause] = total - max(standing, ideal.read)
            if not continues(last, call):
                # The bytes are those of the branch that the host has gone back to.
                ours = cause
        if standing - ideal.read >= 1:
            lost[ours] = lost.get(ours, 0.0) + standing - ideal.read
        beyond = min(total, ideal.read) - hit.read
        if beyond >= STEP_TOKENS:
            # What only its rule keeps from being found is lost by what has moved the hit.
            most: str = max(lost, key=lambda each: lost[each], default="provider's rule")
            lost[most] = lost.get(most, 0.0) + beyond
        return lost

    def _tokens(self, call: StoredCall, end: int) -> float:
        """Tokens that went out before message `end` of the host's list."""
        chars = sum(shape.chars for index, shape in call.sent if index < end)
        return chars / self._account.rate

    def _compare(self, call: StoredCall, hit: Hit, lost: dict[str, float]) -> None:
        """A hit that the provider reports much shorter than its rule says has no explanation."""
        if call.usage is None or self._account.reported != "ours":
            return
        missing = hit.read - call.usage.read
        if missing > NOISE_TOKENS + NOISE_SHARE * hit.read:
            lost["unexplained"] = lost.get("unexplained", 0.0) + missing

    def _follow_rebases(self, call: StoredCall, line: Line, prices: Prices) -> None:
        cold = line.ours.cached == 0
        if self._last is not None:
            shared = common_messages(self._last[0], call)
            self._open = [(rebase, start) for rebase, start in self._open if start <= shared]
        if line.kind == "rebase":
            self._open.append(self._begin(call, line, prices))
        for rebase, _ in self._open:
            rebase.back += rebase.saved * (prices.write if cold else prices.read)

    def _begin(self, call: StoredCall, line: Line, prices: Prices) -> tuple[Rebase, int]:
        lost = sum(tokens for cause, tokens in line.lost.items() if cause.startswith("rebase"))
        decision = call.record["decision"]
        weighed = {k: float(v) for k, v in decision.items() if isinstance(v, int | float)}
        start = int(weighed.pop("from", 0))
        saved = max(0, round(self._unfolded(call) - line.ours.tokens))
        rebase = Rebase(
            line.call,
            line.reason,
            lost,
            saved,
            max(0, lost - saved) * prices.premium,
            0.0,
            weighed,
        )
        self._account.rebases.append(rebase)
        return rebase, start

    def _unfolded(self, call: StoredCall) -> float:
        """Tokens that the prompt would have had with what was sent before as it was."""
        if self._last is None:
            return 0.0
        last, total = self._last
        shared = common_messages(last, call)
        gone = self._tokens(last, len(last.keys) + 1) - self._tokens(last, shared)
        new = sum(shape.chars for index, shape in call.sent if index >= shared)
        return total - (gone if shared < len(last.keys) else 0.0) + new / self._account.rate


def _rounded(value: Any) -> Any:
    """JSON with whole numbers: a fraction of a token says nothing."""
    if isinstance(value, dict):
        return {k: v if k == "price" else _rounded(v) for k, v in value.items()}
    return round(value) if isinstance(value, float) else value


def _charge(tokens: float, hit: Hit, prices: Prices) -> Charge:
    rest = tokens - hit.read - hit.written
    cost = hit.read * prices.read + hit.written * prices.write + rest
    return Charge(tokens, hit.read, cost)
