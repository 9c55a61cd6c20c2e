"""Writes recorded sessions of any known agent as session files of Pi, cut at their compactions.

    python -m foredeck_bench.converted FOLDER PATH...

Between two compactions an agent has seen one history that only grew, so that the parts compare
with any way to assemble it. Each begins with the summary that its agent was shown.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from foredeck.errors import ForedeckError
from foredeck.histories.recordings import NO_MODEL, find_recordings, load_recording, stem_of
from foredeck.histories.records import RecordedMessage, Transcript
from foredeck.model.figures import counted


def main(arguments: Sequence[str]) -> int:
    """Write the files. Returns the exit code."""
    parser = ArgumentParser(prog="python -m foredeck_bench.converted", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    asked = parser.parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        for path in find_recordings(asked.paths):
            for number, part in enumerate(cut(load_recording(path))):
                write_session(part, asked.folder / f"{stem_of(path)}-{number}.jsonl")
                written += 1
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{counted(written, 'session')} in {asked.folder}")
    return 0


def cut(transcript: Transcript) -> Iterator[Transcript]:
    """The parts of a session between its compactions, those without a call left out."""
    summaries = {compaction.seen: compaction.summary for compaction in transcript.compactions}
    for number, (start, end) in enumerate(pairwise([0, *summaries, len(transcript.messages)])):
        messages = [
            replace(recorded, entry=recorded.entry or f"m{index}")
            for index, recorded in enumerate(transcript.messages[start:end], start)
            if recorded.message.get("model") != NO_MODEL
        ]
        if start in summaries:
            messages.insert(0, _summary(summaries[start], messages))
        if any(start <= call.seen < end for call in transcript.calls):
            yield replace(
                transcript,
                id=f"{transcript.id}-{number}",
                messages=messages,
                calls=[],
                compactions=[],
            )


def _summary(text: str, messages: Sequence[RecordedMessage]) -> RecordedMessage:
    time_ms = next((r.message["timestamp"] for r in messages if r.message.get("timestamp")), 0)
    said = {"role": "user", "content": text, "timestamp": time_ms}
    return RecordedMessage(said, "summary")


def write_session(transcript: Transcript, path: Path) -> None:
    """As a session file of Pi's."""
    header = {"type": "session", "version": 3, "id": transcript.id, "cwd": transcript.cwd}
    entries: list[dict[str, Any]] = [header]
    for recorded in transcript.messages:
        time = recorded.message.get("timestamp")
        seconds = time / 1000 if isinstance(time, int | float) else 0
        at = datetime.fromtimestamp(seconds, UTC).isoformat()
        parent = entries[-1]["id"] if len(entries) > 1 else None
        entry = {"type": "message", "id": recorded.entry, "parentId": parent, "timestamp": at}
        entries.append({**entry, "message": recorded.message})
    lines = (json.dumps(entry, ensure_ascii=True) for entry in entries)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
