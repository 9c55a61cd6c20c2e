"""Makes the figures of docs/economics.md from a set of recorded sessions.

    python -m foredeck_bench.economics_page PATH...

replays the sessions for an ideal cache and for Anthropic's, in a process each, writes the tables
between the page's two marks, the picture beside it, and the figure in money that the README begins
with.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from foredeck.cli.output import Progress
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import find_recordings
from foredeck.model.figures import short_count
from foredeck.replay.options import ReplayOptions
from foredeck_bench.judging.plot import frontier_svg
from foredeck_bench.judging.replaying import Compared, Way, compare, rivals

CACHES = ("ideal", "anthropic")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
PAGE = Path(__file__).parents[2] / "docs" / "economics.md"
README = PAGE.parents[1] / "README.md"
SAVED_BEGIN, SAVED_END = "<!-- saved -->", "<!-- end of saved -->"
OURS = "anchored, adaptive"
"""The row of the table that the README is about: what is used by default."""
SHOWN = (f"{OURS}, no digests",)
"""The rows beside it; `foredeck_bench.compare` has more."""
COMMAND = "python -m foredeck_bench.economics_page PATH..."

Results = Mapping[str, Compared]
"""By cache."""


def main(arguments: Sequence[str]) -> int:
    """Replay, and write page and picture. Returns the exit code."""
    if not arguments:
        print(f"usage: {COMMAND}", file=sys.stderr)
        return 2
    try:
        paths = find_recordings([Path(argument) for argument in arguments])
        with ProcessPoolExecutor(len(CACHES)) as pool:
            made = pool.map(partial(_replayed, paths), CACHES)
            results = dict(zip(CACHES, made, strict=True))
        write(PAGE, results)
        write_saved(README, PAGE)
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _replayed(paths: list[Path], cache: str) -> Compared:
    options = ReplayOptions(cache=cache)
    with Progress(f"replaying ({cache})", total=len(paths)) as progress:
        ways = [Way(options), *(way for way in rivals(options) if way.label in SHOWN)]
        return compare(paths, ways, lambda name: progress.advance(note=name))


def write(page: Path, results: Results) -> None:
    """Put the figures into the page, and the picture beside it."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{before}{BEGIN}\n\n{figures(results)}\n\n{END}{after}"
    page.write_text(text, encoding="utf-8")
    picture = frontier_svg(results["ideal"].table, f"{_size(results['ideal'])}; ideal cache")
    page.with_suffix(".svg").write_text(picture, encoding="utf-8")


def write_saved(readme: Path, page: Path) -> None:
    """Put the figure of the page into the README."""
    before, _, rest = readme.read_text(encoding="utf-8").partition(SAVED_BEGIN)
    _, _, after = rest.partition(SAVED_END)
    line = saved(page.read_text(encoding="utf-8"))
    text = f"{before}{SAVED_BEGIN}\n{line}\n{SAVED_END}{after}"
    readme.write_text(text, encoding="utf-8")


def saved(page: str) -> str:
    """What foredeck saves, in money, from the text of the page: by Anthropic's rule, which is the
    dearer one."""
    size = re.search(r"^(\d+) recorded sessions, ([\d,]+) calls", page, re.MULTILINE)
    row = re.search(rf"^\| {OURS} \|(.*)\|$", page, re.MULTILINE)
    if size is None or row is None:
        raise ValueError("the page has no figures of foredeck")
    shares = [cell.strip().rstrip("%") for cell in row[1].split("|")]
    ruled, all_in = float(shares[1]), float(shares[3])
    return (
        f"**Input that costs $100 with plain Pi costs ${ruled:.0f} with foredeck** "
        f"(${all_in:.0f} when fetching again whatever the model lacked is charged, too). "
        f"Measured on {size[1]} recorded sessions with {size[2]} calls, by Anthropic's prices and "
        "cache rules, with all that foredeck adds to the prompt."
    )


def figures(results: Results) -> str:
    """The generated part of the page."""
    ideal, ruled = (results[cache] for cache in CACHES)
    invalid = sum(each.invalid_prompts for each in (ideal, ruled))
    errors = sum(len(each.errors) for each in (ideal, ruled))
    return "\n\n".join(
        [
            f"{_size(ideal)}; {invalid} invalid prompts, {errors} errors.",
            _table(ideal.table, ruled.table),
            "![Cost against evidence](economics.svg)",
            "What was lost of the cache, and rebases, by cause (ideal cache):",
            _losses(ideal.table),
        ]
    )


def _size(result: Compared) -> str:
    return f"{result.sessions} recorded sessions, {result.calls:,} calls"


def _table(ideal: Sequence[Mapping[str, Any]], ruled: Sequence[Mapping[str, Any]]) -> str:
    by_name = {row["row"]: row for row in ruled}
    head = (
        "| | cost, ideal cache | cost, Anthropic's rule | all-in, ideal | all-in, Anthropic's "
        "| dearest session | edited text | identifiers | code names, no digests | own words "
        "| mean prompt | peak |"
    )
    lines = [head, "|---" * 12 + "|"]
    for row in ideal:
        other = by_name.get(row["row"], {})
        cells = (
            row["row"],
            _percent(row["cost_percent"]),
            _percent(other.get("cost_percent")),
            _percent(row["all_in_percent"]),
            _percent(other.get("all_in_percent")),
            _percent(row["worst_percent"]),
            _percent(row["edit_evidence_percent"]),
            _percent(row["identifier_evidence_percent"]),
            _percent(row.get("bare_code_name_evidence_percent")),
            _percent(row.get("own_words_evidence_percent")),
            short_count(row["mean_tokens"]),
            short_count(row["peak_tokens"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _losses(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| | tokens lost | rebases |", "|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row['row']} | {_counts(row['lost_tokens'])} | {_counts(row['rebases'])} |"
        )
    return "\n".join(lines)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {short_count(count)}" for name, count in counts.items()) or "none"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f}%"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
