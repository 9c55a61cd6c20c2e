"""Sizes of a long session's prompts, with foredeck and plain Pi, as a text chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from foredeck.cli.output import Progress
from foredeck.model.calls import in_order
from foredeck.model.figures import short_count
from foredeck_agents.histories.recordings import load_recording
from foredeck_bench.demo.table import CallRow, rows_of
from foredeck_lab.replay.private_store import replayed

RECORDING = Path("tests/recordings/long.jsonl")
"""In the checkout: 300 calls that a scripted model made in Pi."""
COLUMNS, ROWS = 66, 10


def long_session(checkout: Path) -> str:
    """Replays the recording, and describes its prompts."""
    transcript = load_recording(checkout / RECORDING)
    with (
        Progress("replaying call", len(transcript.calls)) as progress,
        replayed(transcript, after=lambda *_: progress.advance()) as session,
    ):
        heads = session.store.query("call", {"session": transcript.id})
        calls = list(rows_of(in_order(head.fields for head in heads)))
    last = calls[-1]
    return "\n".join(
        [
            f"A longer session, {len(calls)} calls of a scripted model, replayed from",
            f"{RECORDING}. Its last prompt has {short_count(last.sent_tokens)} tokens instead of "
            f"{short_count(last.plain_tokens)}.",
            "The session is made up, so this does not measure what you would save.",
            "",
            *chart(calls),
        ]
    )


def chart(calls: Sequence[CallRow]) -> Iterator[str]:
    columns = min(COLUMNS, len(calls))
    parts = [
        calls[n * len(calls) // columns : (n + 1) * len(calls) // columns] for n in range(columns)
    ]
    plain = [max(call.plain_tokens for call in part) for part in parts]
    sent = [max(call.sent_tokens for call in part) for part in parts]
    top = max(*plain, *sent)
    for row in range(ROWS, 0, -1):
        least = top * (row - 0.5) / ROWS
        cells = (
            "█" if ours >= least else "░" if theirs >= least else " "
            for ours, theirs in zip(sent, plain, strict=True)
        )
        label = short_count(top) if row == ROWS else "0" if row == 1 else ""
        yield f"{label:>6} │{''.join(cells).rstrip()}"
    yield f"{'':>6} └{'─' * columns}"
    yield f"{'':>8}call 1" + f"call {calls[-1].call}".rjust(max(0, columns - 6))
    yield f"{'':>8}█ tokens of the prompt with foredeck   ░ with plain Pi"
