"""The files in which hosts keep their own sessions: who reads them, by the host's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from foredeck.context.messages.items import Item

READERS: Mapping[str, str] = {"pi": "foredeck_agents.histories.pi"}
"""Modules by host, imported on first use; each has a function `summarized`."""


def summarized(host: str, file: Path, summary: str) -> Sequence[Item]:
    """The messages that a summary in a host's session file stands for. Raises `ForedeckError`."""
    if host not in READERS:
        return ()
    items: Sequence[Item] = import_module(READERS[host]).summarized(file, summary)
    return items
