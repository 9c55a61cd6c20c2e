"""The whole output of a tool, which Pi keeps in a file where it truncates the result."""

from __future__ import annotations

import logging
from typing import Any

from foredeck.regular_files import read_regular

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
        return read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        log.warning("full output not kept: %s", error)
        return None
