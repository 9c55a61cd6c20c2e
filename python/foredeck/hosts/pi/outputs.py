"""The whole output of a tool, which Pi keeps in a file where it truncates the result."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 16 * 1024 * 1024
"""A larger output is not kept: every copy of the session would be as large."""

log = logging.getLogger(__name__)


def full_output(details: Any) -> bytes | None:
    """The untruncated output that a tool result's `details` name a file for.

    None where they name none, where the file is gone or no regular file, and where it holds more
    than `MAX_BYTES`.
    """
    path = details.get("fullOutputPath") if isinstance(details, dict) else None
    if not isinstance(path, str) or not path:
        return None
    try:
        return _read(Path(path))
    except (OSError, ValueError) as error:
        log.warning("full output not kept: %s", error)
        return None


def _read(path: Path) -> bytes:
    # Without O_NONBLOCK a named pipe in the file's place would be waited for.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path} is no regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} holds more than {MAX_BYTES} bytes")
    return data
