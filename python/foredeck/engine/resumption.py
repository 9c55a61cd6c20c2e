"""Uses found in a long session, kept beside the store for the engine that opens it next."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from foredeck.context.policies.kept import KeptUses
from foredeck.context.policies.uses import Uses
from foredeck.store.session_cache import read_cached, write_cached

MIN_MESSAGES = 200
"""Reading fewer messages again takes only a few milliseconds."""


def recall_uses(home: Path, session: str, uses: Uses) -> None:
    """Start `uses` from what was kept of the session, if anything was."""
    data = read_cached(home, session)
    uses.kept = None if data is None else KeptUses.from_bytes(data)


def has_much_new(uses: Uses) -> bool:
    """Whether so much has come since `uses` was kept last that keeping it again pays."""
    return uses.read - (0 if uses.kept is None else uses.kept.count) >= MIN_MESSAGES


def keep_uses(home: Path, session: str, uses: Uses) -> None:
    """Keep what `uses` has found."""
    uses.kept = uses.keep()
    # The next engine can find it again, so a full disk fails nothing here.
    with suppress(OSError):
        write_cached(home, session, uses.kept.to_bytes())
