from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.cli.output import print_content
from foredeck.errors import ForedeckError, NotFound
from foredeck.store.location import private_draft

STANDARD = "-"
"""Means stdout or stdin."""


def given_text(argument: str) -> str:
    """A text given as an argument; for `-` from stdin."""
    return sys.stdin.read() if argument == STANDARD else argument


@contextmanager
def written_file(name: str) -> Iterator[Callable[[str], object]]:
    """Opens stdout, or a private file that appears when it is whole. Raises `ForedeckError`."""
    if name == STANDARD:
        yield print_content
        return
    with file_errors(name), private_draft(Path(name).absolute()) as file:
        yield lambda text: file.write(text.encode())


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Turns the system's errors into a `ForedeckError` that names the file."""
    try:
        yield
    except OSError as error:
        kind = NotFound if isinstance(error, FileNotFoundError) else ForedeckError
        raise kind(f"{name}: {error.strerror or error}") from error


@contextmanager
def edited(text: str, suffix: str, what: str) -> Iterator[tuple[str, Path]]:
    """Opens a text in $VISUAL or $EDITOR; gives the new text, and the file that holds it until it
    is stored.

    Raises `ForedeckError`.
    """
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(text)
    path = Path(file.name)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=True)
        typed = path.read_text(encoding="utf-8")
    except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
        raise ForedeckError(
            f"{_why(editor, error)}. Nothing was stored; the {what} is in {path}. EDITOR names "
            "another editor."
        ) from error
    yield typed, path
    # Only where the block ends well: where it raises, what was typed stays in the file.
    path.unlink()


def _why(editor: str, error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"{editor} ended with exit code {error.returncode}"
    if isinstance(error, OSError):
        return f"{editor}: {error.strerror or error}"
    return "the text is not in UTF-8"
