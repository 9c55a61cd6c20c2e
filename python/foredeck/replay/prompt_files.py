"""The files of `foredeck replay --prompts`: one for each call, in a folder for each session."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

from foredeck.hosts.pi.transcripts import Message, RecordedCall
from foredeck.regular_files import open_regular


def clear_prompts(folder: Path) -> None:
    """Remove what an earlier replay of the session wrote: it may have had more calls.

    Raises `OSError`, also where the folder is a link.
    """
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "it is a link, not a folder", str(folder))
    for old in folder.glob("*.json"):
        if old.stem.isdecimal():
            old.unlink()


def write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    """Write the prompt of a call to `folder`, over nothing that is there. Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = {"call": number, "time_ms": call.time_ms, "model": call.name, "messages": prompt}
    text = json.dumps(body, ensure_ascii=False, indent=1)
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(open_regular(folder / f"{number:04d}.json", new), "wb") as file:
        file.write(text.encode(errors="surrogatepass"))
