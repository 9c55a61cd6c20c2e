"""What the model sees of what there is, and what that costs: the status line, `/foredeck cost`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from foredeck.context.cache.economics import Ledger
from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.state.session import Session


def status_line(record: Mapping[str, Any]) -> str:
    """From the record of the newest call. A `~` says that no provider has counted yet."""
    stats = record["stats"]
    sent, host = tokens_of(stats, "chars_sent"), tokens_of(stats, "chars_host")
    less = f", {100 * (host - sent) // host}% saved" if host > sent > 0 else ""
    about = "" if stats["reports"] else "~"
    parts = [f"foredeck {about}{short(sent)} of {short(host)} tokens{less}"]
    saved = saved_so_far(record)
    if saved:
        parts.append(saved)
    if stats.get("rebase_in"):
        parts.append(f"next rebase in {stats['rebase_in']}+ calls")
    parts += [f"{stats['active']} active", f"{stats['collapsed']} folded"]
    return ", ".join(parts)


def tokens_of(stats: Mapping[str, Any], name: str) -> int:
    """Tokens behind a count of characters (`chars_sent`, `chars_host`) in a record's `stats`."""
    images, tokens = stats.get("images") or (0, 0)
    return int((stats[name] - images * IMAGE_CHARS) / stats["rate"]) + tokens


def saved_so_far(record: Mapping[str, Any]) -> str:
    """What the branch has cost less than with nothing folded, in the host's currency; empty where
    the model has no price, or it is less than a cent."""
    plain, ours = spent(record)
    saved = (plain - ours) * price_of(record)
    if abs(saved) < 0.01:
        return ""
    return f"${saved:.2f} saved so far" if saved > 0 else f"${-saved:.2f} dearer so far"


def spent(record: Mapping[str, Any]) -> tuple[float, float]:
    """What the branch has cost up to this call with nothing folded, and as it went out: in
    uncached input tokens."""
    ledger = Ledger.from_state((record.get("state") or {}).get("ledger") or {})
    # The ledger counts by the default rate, so that a calibration in mid-session changes nothing.
    scale = CHARS_PER_TOKEN / record["stats"]["rate"]
    return ledger.plain * scale, ledger.ours * scale


def price_of(record: Mapping[str, Any]) -> float:
    """Of one uncached input token, in the host's currency; 0 where it is not known."""
    return float(record["model"].get("input") or 0.0) / 1_000_000


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
    reasons = Counter(
        str(r["decision"].get("reason")) for r in chain if r["decision"].get("kind") == "rebase"
    )
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    lines.append(f"Rebases: {told or 'none'}.")
    reports, rate = record["stats"]["reports"], record["stats"]["rate"]
    measured = f"measured over {reports} calls" if reports else "an estimate so far"
    lines.append(f"{rate:.2f} characters make a token, {measured}.")
    lines.append(f"foredeck cost {session.id} shows it call by call, with every lost cache hit.")
    return "\n".join(lines)


def short(count: int) -> str:
    """A count of tokens in few characters: 950, 12.3k."""
    return str(count) if count < 1000 else f"{count / 1000:.1f}k"
