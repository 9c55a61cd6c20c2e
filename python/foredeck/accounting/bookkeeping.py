"""Charges each call by a cache's rule, and explains each loss."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from foredeck.accounting.account import (
    Account,
    AccountingMethod,
    AccountLine,
    Charge,
    Money,
    RebaseBalance,
)
from foredeck.accounting.cache import CACHES, STEP_TOKENS, Cache, CachedPrompt, Hit, PromptMaker
from foredeck.accounting.figure import CostFigure, figure_of, session_figure
from foredeck.accounting.stored import StoredCall, StoredCalls
from foredeck.context.rebase import Prices
from foredeck.context.state.call_log import spent_at, spent_by
from foredeck.context.state.gauge import weighed
from foredeck.model.call_values import CHARS_PER_TOKEN, DEFAULT_TTL_S, CallStats
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey, entry_at
from foredeck.model.records import call_id
from foredeck.store.store import Store

NOISE_TOKENS = 64
NOISE_SHARE = 0.1
"""A reported hit may be this much shorter than predicted: providers count a little differently."""


def account_of(
    calls: Iterable[StoredCall], method: AccountingMethod, figure: CostFigure | None = None
) -> Account:
    """The account of a session's calls; `figure`: their cost, if known."""
    listed = list(calls)
    records = [call.record for call in listed]
    books = _Bookkeeper(_opened(records, method, figure), method)
    for call in listed:
        books.enter(call)
    return books.account


def stored_account(
    store: Store, session: str, method: AccountingMethod, advance: Callable[[], None]
) -> Account:
    calls = StoredCalls(store, session)
    figure = session_figure(store, session, calls.newest)
    books = _Bookkeeper(_opened(calls.records, method, figure), method)
    for call in calls:
        books.enter(call)
        advance()
    return books.account


def _opened(
    records: Sequence[CallRecord], method: AccountingMethod, figure: CostFigure | None
) -> Account:
    gauged = (record.stats for record in reversed(records) if record.stats.rate)
    stats = next(gauged, CallStats(rate=CHARS_PER_TOKEN))
    ttls = (record.model.ttl_s for record in reversed(records))
    return Account(
        method.cache or _cache_of(records),
        method.ttl_s or next(filter(None, ttls), DEFAULT_TTL_S),
        method.rate or stats.rate,
        stats.reports,
        method.reported,
        figure or figure_of(spent_by(records)),
    )


def _cache_of(records: Sequence[CallRecord]) -> str:
    if records and records[-1].cache.rule == "breakpoints":
        return "breakpoints"
    api = records[-1].model.api if records else ""
    if api.startswith(("anthropic", "bedrock")):
        return "anthropic"
    return "openai" if api.startswith(("openai", "azure")) else "ideal"


class _Bookkeeper:
    """Enters calls into an account, in order."""

    def __init__(self, account: Account, method: AccountingMethod) -> None:
        self.account = account
        self._method = method
        self._ours: Cache = CACHES[account.cache](account.ttl_s)
        self._ideal: Cache = CACHES["ideal"](account.ttl_s)
        self._our_prompts = PromptMaker(account.rate)
        self._last: tuple[StoredCall, float] | None = None
        self._sent: CachedPrompt | None = None
        """The last prompt."""
        self._open: list[tuple[RebaseBalance, int]] = []
        """Rebases whose savings last, with the first message they changed."""

    def enter(self, call: StoredCall) -> None:
        """Add the next call."""
        model, rate = call.model, self.account.rate
        prices = Prices(model.read, model.write)
        head = call.around.chars / rate
        name = f"{model.name}\0{call.around.hash}"
        time_ms = call.record.time_ms
        prompt = self._our_prompts.make(name, call.sent, head, call.mark)
        warmed = self._warm(call)
        hit = self._ours.request(prompt, time_ms)
        lost = self._lost(call, hit, self._ideal.request(prompt, time_ms), head, warmed)
        self._compare(call, hit, lost)
        decision = call.record.decision
        spent = spent_at(call.record, call.reported)
        line = AccountLine(
            call.ordinal,
            time_ms,
            model.name,
            decision.kind,
            decision.reason or "",
            self._plain(call, spent.plain),
            Charge(prompt.tokens, hit.read, spent.ours * self._scale(call.record)),
            {cause: round(tokens) for cause, tokens in lost.items() if round(tokens) > 0},
            model.input_price,
            call.record.lost.sum,
            call.record.cache.read,
            call.usage,
        )
        self.account.lines.append(line)
        self._follow_rebases(call, line, prices)
        self._last, self._sent = (call, prompt.tokens), prompt

    def _scale(self, record: CallRecord) -> float:
        # Only a recording is scaled: it is replayed without what its provider had counted.
        return self._rescaled(record) if self._method.reported == "plain" else 1.0

    def _rescaled(self, record: CallRecord) -> float:
        return (record.stats.rate or CHARS_PER_TOKEN) / self.account.rate

    def _plain(self, call: StoredCall, cost: float) -> Charge:
        record = call.record
        scaled, plain = cost * self._scale(record), record.cache.baseline
        if plain is None:
            # What stood around the messages of a call without the engine is in no count of it.
            chars = record.stats.chars_host + (call.around.chars if record.is_host else 0)
            return Charge(chars / self.account.rate, 0.0, scaled)
        scale = self._rescaled(record)
        return Charge(sum(plain) * scale, plain.read * scale, scaled)

    def _warm(self, call: StoredCall) -> int:
        """When the host renewed the cache, in milliseconds; 0 if it did not."""
        warmed = call.record.cache.warmed_ms
        if warmed and self._sent is not None:
            for cache in (self._ours, self._ideal):
                cache.request(self._sent, warmed)
        return warmed

    def _lost(
        self, call: StoredCall, hit: Hit, ideal: Hit, head: float, warmed: int
    ) -> dict[str, float]:
        if self._last is None:
            return {}
        last, total = self._last
        if not last.model.name:
            # Of a call before foredeck it is not known which model had cached what.
            return {}
        # What has left the prompt is not sent again.
        total -= call.record.stats.shorter_by / self.account.rate
        gap = call.record.time_ms - max(warmed, last.record.time_ms)
        around = cause_around(last, call, expired=gap > self.account.ttl_s * 1000)
        if around is not None:
            return {around: total - hit.read}
        lost: dict[str, float] = {}
        shared = common_messages(last, call)
        unchanged = total
        ours: str = cause_of_ours(last, call)
        if shared < len(last.keys):
            unchanged = head + self._tokens(last, shared)
            cause = cause_in_list(last, call, shared)
            lost[cause] = total - max(unchanged, ideal.read)
            if not continues(last, call):
                # The bytes are those of the branch that the host has gone back to.
                ours = cause
        if unchanged - ideal.read >= 1:
            lost[ours] = lost.get(ours, 0.0) + unchanged - ideal.read
        beyond = min(total, ideal.read) - hit.read
        if beyond >= STEP_TOKENS:
            # The bytes are cached, but the rule does not reach them from here: blame whatever
            # moved the point up to which the rule finds anything.
            most: str = max(lost, key=lambda each: lost[each], default="provider's rule")
            lost[most] = lost.get(most, 0.0) + beyond
        return lost

    def _tokens(self, call: StoredCall, end: int) -> float:
        """Tokens before message `end` of the host's list."""
        before = call.sent[: bisect_left(call.sent_at, end)]
        return sum(shape.chars for shape in before) / self.account.rate

    def _compare(self, call: StoredCall, hit: Hit, lost: dict[str, float]) -> None:
        """Notes an unexplained loss if the reported hit is much shorter than predicted."""
        if call.usage is None or self.account.reported != "ours":
            return
        # The provider counts in tokens of its own.
        missing = hit.read - call.usage.read / self._provider_ratio()
        if missing > NOISE_TOKENS + NOISE_SHARE * hit.read:
            cause = "another extension" if call.rewritten else "unexplained"
            lost[cause] = lost.get(cause, 0.0) + missing

    def _provider_ratio(self) -> float:
        """The provider's tokens for one of ours, on the last prompt."""
        if self._last is None:
            return 1.0
        last, total = self._last
        counted = last.usage.fresh + last.usage.read + last.usage.written if last.usage else 0
        return counted / total if counted and total else 1.0

    def _follow_rebases(self, call: StoredCall, line: AccountLine, prices: Prices) -> None:
        cold = line.ours.cached == 0
        if self._last is not None:
            shared = common_messages(self._last[0], call)
            # What changed before a rebase's first message has ended what it saves.
            self._open = [(rebase, start) for rebase, start in self._open if start <= shared]
        if line.kind == "rebase":
            self._open.append(self._begin(call, line, prices))
        for rebase, _ in self._open:
            # Where nothing was cached, the tokens that are gone would have been written anew.
            back = rebase.saved * (prices.write if cold else prices.read)
            rebase.back += back
            rebase.money.back += back * line.price / 1_000_000

    def _begin(
        self, call: StoredCall, line: AccountLine, prices: Prices
    ) -> tuple[RebaseBalance, int]:
        lost = sum(tokens for cause, tokens in line.lost.items() if cause.startswith("rebase"))
        decision = call.record.decision
        figures = weighed(call.record)
        saved, paid = int(figures.pop("saves")), lost * prices.rewrite
        reasoning = line.reasoning.tokens
        money = Money(paid * line.price / 1_000_000)
        rebase = RebaseBalance(
            line.call, line.reason, lost, saved, reasoning, paid, 0.0, money, figures
        )
        self.account.rebases.append(rebase)
        return rebase, decision.changed_from or 0


# Why a hit was lost


Cause = Literal[
    "expiry",
    "model switch",
    "system prompt or tools",
    "host edit: compaction",
    "host edit: branch",
    "uncompact",
    "another extension",
    "rebase: free",
    "rebase: paid",
    "rebase: forced",
    "without foredeck",
    "layout",
    "provider's rule",
    "unexplained",
]

FREE = frozenset({"cold", "model", "history", "system", "layout", "look-back"})
FORCED = frozenset({"high-water", "tier", "window", "withdrawn"})


def common_messages(last: StoredCall, call: StoredCall) -> int:
    length = min(len(last.keys), len(call.keys))
    if continues(last, call):
        # As nearly always. The record says it, and nothing of thousands of messages is compared.
        return min(length, call.record.shared)
    pairs = zip(last.keys, call.keys, strict=False)
    shared = (n for n, (one, other) in enumerate(pairs) if one.address != other.address)
    return next(shared, length)


def continues(last: StoredCall, call: StoredCall) -> bool:
    """Whether a call continues the branch of the one before."""
    return call.record.parent == call_id(last.record.session, last.ordinal)


def cause_around(last: StoredCall, call: StoredCall, *, expired: bool) -> Cause | None:
    """Why no prefix could be found at all, if so."""
    if last.model.name != call.model.name:
        return "model switch"
    if last.around.hash != call.around.hash:
        return "system prompt or tools"
    return "expiry" if expired else None


def cause_in_list(last: StoredCall, call: StoredCall, index: int) -> Cause:
    """Who changed the host's list from message `index` on."""
    old = last.keys[index] if index < len(last.keys) else None
    new = call.keys[index] if index < len(call.keys) else None
    # What `uncompact` puts back has no entry in the host's file.
    if _is_summary(last, index) and new is not None and new.entry is None:
        return "uncompact"
    if _is_summary(call, index):
        return "host edit: compaction"
    # A branch or a compaction brings other entries; only an extension changes one that stays. What
    # is but a place says nothing.
    entry = old.entry if old is not None and new is not None and old.entry == new.entry else None
    if entry not in (None, entry_at(index)):
        return "another extension"
    # A message that an extension adds has no entry either. A host without any entries says nothing.
    entries = any(key.entry is not None for key in (*last.keys, *call.keys))
    if entries and (
        _is_injected(old, call.keys, last.keys) or _is_injected(new, last.keys, call.keys)
    ):
        return "another extension"
    return "host edit: branch"


def _is_summary(call: StoredCall, index: int) -> bool:
    message = call.messages[index] if index < len(call.messages) else {}
    return message.get("role") == "compactionSummary"


def _is_injected(
    key: MessageKey | None, others: Sequence[MessageKey], own: Sequence[MessageKey]
) -> bool:
    if key is None or key.entry is not None or key.address in {k.address for k in others}:
        return False
    after = own[next(n for n, k in enumerate(own) if k is key) + 1 :]
    return bool({k.address for k in after} & {k.address for k in others})


def cause_of_ours(last: StoredCall, call: StoredCall) -> Cause:
    """Why bytes of ours changed at a call."""
    decision = call.record.decision
    if decision.is_host:
        return "without foredeck"
    if call.record.layout == "pools":
        return "layout"
    if not decision.is_rebase:
        return "without foredeck" if last.record.is_host else "unexplained"
    if decision.reason in FORCED:
        return "rebase: forced"
    return "rebase: free" if decision.reason in FREE else "rebase: paid"
