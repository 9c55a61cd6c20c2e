"""Printing the comparison of `foredeck replay`: cost against evidence, row by row."""

from __future__ import annotations

from typing import Any

from foredeck.cli.output import table
from foredeck.lookup.texts import short_count

_HEAD = (
    *("", "cost", "cached", "uncached", "all-in", "worst", "over"),
    *("edits", "names", "code", "bare", "own", "mean", "peak"),
)
_CACHES = ("ideal", "anthropic", "openai")
_NOTE = """
cost: of all prompts, as a share of plain Pi's, by --prices; cached, uncached: what of it was read
from the cache, and the rest; all-in: the cost with one more call for each call that lacked
something; worst: the cost of the dearest session, as a share of plain Pi's; over: sessions that
cost more than plain Pi's by over 2% and over 2,000 uncached tokens; edits, names: shares
that were in view of the edited texts, and of the identifiers that can only have been copied from
a tool result, since nobody had written them before; code: those of them that look like code, not
like a number, a date or a hash; bare: the same without digests of folded results; own: of the
identifiers that only the model's own answers had held, and that it used again; mean, peak: tokens
of a prompt. Sizes are calibrated by the recorded usage. Evidence is visibility, not success: no
model ran."""


def print_comparison(rows: list[dict[str, Any]], cache: str) -> None:
    """The rows as a table, with lost cache hits by cause below it."""
    base = next((row["cost"] for row in rows), 0)
    print()
    print(table([_HEAD, *(_row(row, base) for row in rows)]))
    print(_NOTE)
    print(f"\nCost of the same prompts by each cache's rule (planned for: {cache}):")
    for row in rows:
        by_cache = row["cost_percent_by_cache"]
        print(f"  {row['row']}: " + ", ".join(f"{c} {_percent(by_cache[c])}" for c in _CACHES))
    for row in (row for row in rows if row.get("questions")):
        share = _percent(100 * row["asked"] / row["cost"] if row["cost"] else None)
        print(
            f"\n{row['row']}: a model asked {row['questions']} times for observations, for "
            f"{share} of the cost, which holds it."
        )
    print("\nTokens that were in the cache and had to be written again, and rebases:")
    for row in rows:
        print(f"  {row['row']}: {_counts(row['lost_tokens'])}; {_counts(row['rebases'])}")
    print()


def _row(row: dict[str, Any], base: float) -> tuple[str, ...]:
    return (
        row["row"],
        _percent(row["cost_percent"]),
        _percent(100 * row["cached"] / base if base else None),
        _percent(100 * row["uncached"] / base if base else None),
        _percent(row["all_in_percent"]),
        _percent(row["worst_percent"]),
        str(row["beyond_limit"]),
        _percent(row["edit_evidence_percent"]),
        _percent(row["identifier_evidence_percent"]),
        _percent(row["code_name_evidence_percent"]),
        _percent(row["bare_code_name_evidence_percent"]),
        _percent(row["own_words_evidence_percent"]),
        short_count(row["mean_tokens"]),
        short_count(row["peak_tokens"]),
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f}%"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {short_count(count)}" for name, count in counts.items()) or "none"
