"""Files that a command reads or writes where the user says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.cli.output import print_content
from foredeck.errors import ForedeckError
from foredeck.store.location import private_draft

STANDARD = "-"
"""Means stdout or stdin."""


class FileError(ForedeckError):
    """A file cannot be read or written."""


def given_text(argument: str) -> str:
    """A text that an argument gives; for `-` what comes from stdin."""
    return sys.stdin.read() if argument == STANDARD else argument


@contextmanager
def written_file(name: str) -> Iterator[Callable[[str], object]]:
    """Where text goes: stdout, or a private file that is in place only once it is whole.

    A link, and anything else that is no file, is never replaced. Raises `FileError`.
    """
    if name == STANDARD:
        yield print_content
        return
    with file_errors(name), private_draft(Path(name).absolute()) as file:
        yield lambda text: file.write(text.encode())


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """The system's errors as a `FileError` that names the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{name}: {error.strerror or error}") from error
