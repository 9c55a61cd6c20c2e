"""Keeps what was found of a long session beside the store, for the engine that opens it next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from foredeck.context.policies.kept import KeptUses
from foredeck.context.policies.uses import Uses
from foredeck.store.derived import read_derived, write_derived

WORTH_IT = 200
"""Reading fewer messages again takes a few milliseconds."""


def recall_uses(home: Path, session: str, uses: Uses) -> None:
    """Let `uses` begin with what was kept of a session, if anything was."""
    data = read_derived(home, session)
    uses.kept = None if data is None else KeptUses.from_bytes(data)


def keep_uses(home: Path, session: str, uses: Uses) -> None:
    """Keep what `uses` has found since something was kept last, where that is worth it."""
    if uses.read - (0 if uses.kept is None else uses.kept.count) < WORTH_IT:
        return
    uses.kept = uses.keep()
    with suppress(OSError):
        write_derived(home, session, uses.kept.to_bytes())
