"""The files of `foredeck replay --prompts`: one for each call, in a folder for each session."""

from __future__ import annotations

import json
from pathlib import Path

from foredeck.hosts.pi.transcripts import Message, RecordedCall


def clear_prompts(folder: Path) -> None:
    """Remove what an earlier replay of the session wrote: it may have had more calls."""
    for old in folder.glob("*.json"):
        if old.stem.isdecimal():
            old.unlink()


def write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    """Write the prompt of a call to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    body = {"call": number, "time_ms": call.time_ms, "model": call.name, "messages": prompt}
    text = json.dumps(body, ensure_ascii=False, indent=1)
    (folder / f"{number:04d}.json").write_bytes(text.encode(errors="surrogatepass"))
