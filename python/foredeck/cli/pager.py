"""Long texts on a terminal go through the user's pager, as with git: `PAGER`, by default less."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import IO, TextIO

_UNPAGED: tuple[list[str], ...] = ([], ["cat"])


def pages(stream: TextIO) -> bool:
    """Whether long texts on a stream go through a pager."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and _command() not in _UNPAGED


def _command() -> list[str]:
    try:
        return shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote without its end
        return []


def first_screen(lines: Iterable[str]) -> tuple[Iterable[str], bool]:
    """The same lines, and whether they are more than the terminal has room for."""
    columns, rows = shutil.get_terminal_size((100, 24))
    rest, first, used = iter(lines), [], 1  # the prompt comes below
    for line in rest:
        first.append(line)
        used += sum(1 + max(len(row) - 1, 0) // columns for row in line.split("\n"))
        if used > rows:
            return chain(first, rest), True
    return first, False


@contextmanager
def pager(encoding: str) -> Iterator[IO[str] | None]:
    """The stdin of the user's pager, which may end before all is written; None where there is no
    such program."""
    # What git sets for less: end where all fits, show colours, leave the text on the screen.
    usual = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            encoding=encoding,
            errors="backslashreplace",
            env=usual,
        )
    except OSError:
        yield None
        return
    assert process.stdin is not None
    try:
        # Ctrl-C goes to the pager, too: what more there is to write is not wanted.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            yield process.stdin
    finally:
        _wait(process)


def _wait(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, KeyboardInterrupt):
        process.stdin.close()
    while process.poll() is None:
        with suppress(KeyboardInterrupt):
            process.wait()
