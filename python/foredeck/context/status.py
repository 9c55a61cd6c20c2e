"""How much of the session the model sees, and what that costs: status line, `/foredeck cost`."""

from __future__ import annotations

from collections import Counter

from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.state.session import Session
from foredeck.model.call_values import CallStats
from foredeck.model.calls import CallRecord


def status_line(record: CallRecord) -> str:
    """From the record of the newest call. A `~` says that no provider has counted yet."""
    stats = record.stats
    sent, host = tokens_of(stats, stats.chars_sent), tokens_of(stats, stats.chars_host)
    less = f", {100 * (host - sent) // host}% saved" if host > sent > 0 else ""
    about = "" if stats.reports else "~"
    parts = [f"foredeck {about}{short(sent)} of {short(host)} tokens{less}"]
    saved = saved_so_far(record)
    if saved:
        parts.append(saved)
    if stats.rebase_in:
        parts.append(f"next rebase in {stats.rebase_in}+ calls")
    parts += [f"{stats.active} active", f"{stats.folded} folded"]
    return ", ".join(parts)


def tokens_of(stats: CallStats, chars: int) -> int:
    """Tokens behind one of the counts of characters in `stats`."""
    return int((chars - stats.images * IMAGE_CHARS) / stats.rate) + stats.image_tokens


def saved_so_far(record: CallRecord) -> str:
    """What folding has saved on the branch, in the host's currency; empty where the model has no
    price, or where it is less than a cent."""
    plain, ours = spent(record)
    saved = (plain - ours) * price_of(record)
    if abs(saved) < 0.01:
        return ""
    return f"${saved:.2f} saved so far" if saved > 0 else f"${-saved:.2f} dearer so far"


def spent(record: CallRecord) -> tuple[float, float]:
    """What the branch has cost up to this call with nothing folded, and as it went out: in
    uncached input tokens."""
    # The cost is kept by the default rate, so that a calibration in mid-session changes nothing.
    scale = CHARS_PER_TOKEN / record.stats.rate
    return record.cost.plain * scale, record.cost.ours * scale


def price_of(record: CallRecord) -> float:
    """Of one uncached input token, in the host's currency; 0 where it is not known."""
    return record.model.input_price / 1_000_000


def cost_so_far(session: Session) -> str:
    """`/foredeck cost`: what the branch has cost, beside what it would have with nothing folded."""
    chain = session.log.chain(session.branch.call, session.load_record)
    if not chain:
        return "No call has been made yet."
    record = chain[-1]
    plain, ours = spent(record)
    price = price_of(record)
    share = f": {100 * ours / plain:.0f}%" if plain else ""
    lines = [
        f"{len(chain)} calls on this branch cost {short(int(ours))} uncached input tokens, with "
        f"nothing folded {short(int(plain))}{share}."
    ]
    if price:
        lines.append(f"At the model's prices: ${ours * price:.2f} instead of ${plain * price:.2f}.")
    decisions = [each.decision for each in chain]
    reasons = Counter(str(each.reason) for each in decisions if each.is_rebase)
    rebases = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    lines.append(f"Rebases: {rebases or 'none'}.")
    reports, rate = record.stats.reports, record.stats.rate
    measured = f"measured over {reports} calls" if reports else "an estimate so far"
    lines.append(f"{rate:.2f} characters make a token, {measured}.")
    lines.append(f"foredeck cost {session.id} shows it call by call, with every lost cache hit.")
    return "\n".join(lines)


def short(count: int) -> str:
    """A count of tokens in few characters: 950, 12.3k."""
    return str(count) if count < 1000 else f"{count / 1000:.1f}k"
