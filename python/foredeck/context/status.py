"""The status line: what the model sees of what there is, and what that has saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foredeck.context.economics import Ledger
from foredeck.context.items import IMAGE_CHARS
from foredeck.context.rebase import CHARS_PER_TOKEN


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
    parts += [f"{stats['active']} active", f"{stats['collapsed']} folded"]
    return ", ".join(parts)


def tokens_of(stats: Mapping[str, Any], name: str) -> int:
    """Tokens behind a count of characters (`chars_sent`, `chars_host`) in a record's `stats`."""
    images, tokens = stats.get("images") or (0, 0)
    return int((stats[name] - images * IMAGE_CHARS) / stats["rate"]) + tokens


def saved_so_far(record: Mapping[str, Any]) -> str:
    """What the branch has cost less than with nothing folded, in the host's currency; empty where
    the model has no price, or it is less than a cent."""
    ledger = Ledger.from_state((record.get("state") or {}).get("ledger") or {})
    price = record["model"].get("input") or 0.0
    # The ledger counts by the default rate, so that a calibration in mid-session changes nothing.
    tokens = (ledger.plain - ledger.ours) * CHARS_PER_TOKEN / record["stats"]["rate"]
    saved = tokens * price / 1_000_000
    if abs(saved) < 0.01:
        return ""
    return f"${saved:.2f} saved so far" if saved > 0 else f"${-saved:.2f} dearer so far"


def short(count: int) -> str:
    """A count of tokens in few characters: 950, 12.3k."""
    return str(count) if count < 1000 else f"{count / 1000:.1f}k"
