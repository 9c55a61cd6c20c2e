"""A text in the user's own editor; what they typed is never lost."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import ForedeckError


class NotEdited(ForedeckError):
    """The text was not stored; what was typed is kept in a file."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What the user made of a text, and the file in which it is until it is stored."""

    text: str
    path: Path


@contextmanager
def edited(text: str, suffix: str, what: str) -> Iterator[Edited]:
    """Open a text in $VISUAL or $EDITOR. The file goes where the block ends well; where it raises,
    what was typed stays in it. `what`: a word for the text, such as `page`. Raises `NotEdited`."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(text)
    path = Path(file.name)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=True)
        typed = path.read_text(encoding="utf-8")
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
        raise NotEdited(
            f"{editor}: {error}. The {what} is in {path}; EDITOR names another."
        ) from error
    yield Edited(typed, path)
    path.unlink()
