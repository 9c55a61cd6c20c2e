"""The account of a session in words: `foredeck cost`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from foredeck.accounting.asked import asked_lines
from foredeck.cli.output import table
from foredeck.lookup.texts import counted, short_count, when

if TYPE_CHECKING:
    from foredeck.accounting.account import Account, AccountLine, RebaseBalance
    from foredeck.accounting.asked import AskedAccount

ALL_CALLS = 40
"""A session of more calls shows those at which something happened."""

_HEAD = ("call", "time", "plain", "prompt", "cached", "reported", "cost", "plain's", "what", "lost")
_NOTE = """
plain, prompt: tokens of plain Pi's prompt and of foredeck's; cached: what of it the cache's rule
lets be found, reported: what the provider says was found; cost, plain's: in uncached input tokens;
lost: tokens that the call before had left in the cache and this one did not find, by cause."""
_REBASE_NOTE = """
shorter by: tokens that left the prompt; lost: of what was in the cache, what had to be sent again;
paid: what that has cost more than reading it, back since: what the shorter prompts have cost less
up to the end; weighed: what the decision went by. All but tokens are in uncached input tokens."""
_IDEAL = ", every prefix that was sent before is found (--cache takes a provider's rule)"


def cost_text(
    name: str, account: Account, asked: AskedAccount | None = None, *, every_call: bool = False
) -> str:
    """Tables and totals, as printed. `asked`: what foredeck itself has asked of a model."""
    if not account.lines:
        return f"Session {name} has made no call yet."
    parts = [_title(name, account), _calls(account, every_call=every_call)]
    if account.rebases:
        parts.append(_rebases(account))
    parts += [_lost(account), _total(account)]
    reported = _reported(account)
    own = _asked(asked)
    return "\n\n".join(part for part in (*parts, own, reported) if part)


def _title(name: str, account: Account) -> str:
    models = ", ".join(dict.fromkeys(line.model for line in account.lines))
    measured = (
        f"measured over {counted(account.reports, 'call')}"
        if account.reports
        else "fitted to the recorded usage"
        if account.reported == "plain"
        else "an estimate: no provider has counted yet"
    )
    return (
        f"{name}: {counted(len(account.lines), 'call')}, {models}\n"
        f"cache: {account.cache}{_IDEAL if account.cache == 'ideal' else ''}\n"
        f"it expires after {account.ttl_s:g} s; "
        f"{account.rate:.2f} characters a token ({measured})"
    )


def _calls(account: Account, *, every_call: bool) -> str:
    lines = account.lines
    if len(lines) > ALL_CALLS and not every_call:
        lines = [line for line in lines if line.lost or line.kind == "rebase"]
    left = len(account.lines) - len(lines)
    if not lines:
        return f"No call lost anything or was a rebase (--all shows all {left:,})."
    shown = table([_HEAD, *_rows(account, lines)]) + _NOTE
    return (
        f"{shown}\n{counted(left, 'further call')} lost nothing (--all shows them)"
        if left
        else shown
    )


def _rows(account: Account, lines: list[AccountLine]) -> Iterator[tuple[str, ...]]:
    """Times with their date where the session went on for more than a day."""
    is_ours = account.reported == "ours"
    days = {when(line.time_ms).split(" ", 1)[0] for line in account.lines}
    for line in lines:
        time = when(line.time_ms)
        yield _call(line, time if len(days) > 1 else time.split(" ", 1)[-1], is_ours=is_ours)


def _call(line: AccountLine, time: str, *, is_ours: bool) -> tuple[str, ...]:
    ours = line.ours
    return (
        str(line.call),
        time,
        _k(line.plain.tokens),
        _k(ours.tokens),
        _k(ours.cached),
        _k(line.reported.read) if line.reported and is_ours else "-",
        _k(ours.cost),
        _k(line.plain.cost),
        f"{line.kind} ({line.reason})" if line.reason else line.kind,
        ", ".join(f"{cause} {_k(tokens)}" for cause, tokens in line.lost.items()) or "-",
    )


def _rebases(account: Account) -> str:
    head = ("rebase", "reason", "shorter by", "lost", "paid", "back since", "weighed")
    return table([head, *map(_rebase, account.rebases)]) + _REBASE_NOTE


def _rebase(rebase: RebaseBalance) -> tuple[str, ...]:
    return (
        f"call {rebase.call}",
        rebase.reason,
        _k(rebase.saved),
        _k(rebase.lost),
        _k(rebase.paid),
        _k(rebase.back),
        ", ".join(f"{name} {_k(value)}" for name, value in rebase.weighed.items()) or "-",
    )


def _lost(account: Account) -> str:
    if not account.lost:
        return "No cache hit was lost."
    lines = [f"  {cause}: {_k(tokens)}" for cause, tokens in account.lost.most_common()]
    text = "\n".join(["Tokens that were in the cache and were not found again:", *lines])
    if account.lost["unexplained"]:
        return (
            f"{text}\nWhat is unexplained is a defect of foredeck, the provider's doing, or that "
            "of an extension\nloaded after foredeck."
        )
    return text


def _total(account: Account) -> str:
    plain, ours = account.plain_cost, account.cost
    share = f" ({100 * ours / plain:.1f}%)" if plain else ""
    text = (
        f"Total, in uncached input tokens: plain Pi {_k(plain)}, foredeck {_k(ours)}{share}; "
        f"cached {_k(account.cached)}, uncached {_k(account.uncached)} tokens"
    )
    money = account.money
    if money is None:
        return text
    return f"{text}\nIn money: plain Pi ${money[0]:.2f}, foredeck ${money[1]:.2f}"


def _asked(asked: AskedAccount | None) -> str:
    """The questions of foredeck's own, which the total does not hold."""
    if asked is None or not asked.calls:
        return ""
    head = f"Beside that, foredeck's own questions to a model: ${asked.cost:.4f}"
    return "\n".join([head, *(f"  {line}" for line in asked_lines(asked))])


def _reported(account: Account) -> str:
    """What the provider counted beside what was predicted."""
    rows = list(_compared(account))
    if not rows:
        return ""
    whose = "foredeck's" if account.reported == "ours" else "plain Pi's, as recorded"
    head = f"Reported by the provider over {counted(account.compared, 'call')} ({whose}):"
    return "\n".join([head, *(f"  {row}" for row in rows)])


def _compared(account: Account) -> Iterator[str]:
    for name, predicted, reported in account.comparison():
        if predicted and not reported:
            yield f"{name}: predicted {_k(predicted)}, none reported"
            continue
        apart = f" ({100 * (reported / predicted - 1):+.1f}%)" if predicted else ""
        yield f"{name}: predicted {_k(predicted)}, reported {_k(reported)}{apart}"


def _k(count: float) -> str:
    return short_count(round(count)) if count >= 0 else f"-{short_count(round(-count))}"
