"""Texts that the user names or types: files, stdin and stdout, and the user's editor."""

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
from foredeck.errors import ForedeckError
from foredeck.store.location import private_draft

STANDARD = "-"
"""Means stdout or stdin."""


def given_text(argument: str) -> str:
    """A text that an argument gives; for `-` what comes from stdin."""
    return sys.stdin.read() if argument == STANDARD else argument


@contextmanager
def written_file(name: str) -> Iterator[Callable[[str], object]]:
    """Where text goes: stdout, or a private file that is in place only once it is whole.

    A link, and anything else that is no file, is never replaced. Raises `ForedeckError`.
    """
    if name == STANDARD:
        yield print_content
        return
    with file_errors(name), private_draft(Path(name).absolute()) as file:
        yield lambda text: file.write(text.encode())


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """The system's errors as a `ForedeckError` that names the file."""
    try:
        yield
    except OSError as error:
        raise ForedeckError(f"{name}: {error.strerror or error}") from error


@contextmanager
def edited(text: str, suffix: str, what: str) -> Iterator[tuple[str, Path]]:
    """Open a text in $VISUAL or $EDITOR: what the user made of it, and the file that has it until
    it is stored. `what`: a word for the text, such as `page`.

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
