"""What an engine has found in a long session, kept beside the store for the one that opens it next.

All of it can be found again from the store.
"""

from __future__ import annotations

from pathlib import Path

from foredeck.context.policies.uses import KeptUses, Uses
from foredeck.context.state.call_log import LogCheckpoint
from foredeck.context.state.chat import Chat
from foredeck.context.state.index import KeptMembers, read_members
from foredeck.context.state.objects import Objects
from foredeck.context.state.opening import KeptSession
from foredeck.store.session_cache import read_cached, read_cached_streams, write_cached

MIN_MESSAGES = 200
"""Reading fewer messages again takes only a few milliseconds."""

MIN_CALLS = 100
"""So does reading fewer call records."""

MIN_MEMBERS = 100
"""And fewer members of the index."""

SHARE = 20
"""While a session goes on it is kept again after a twentieth more."""


def recall_uses(home: Path, session: str, uses: Uses) -> None:
    """Start `uses` from what was kept of the session, if anything was."""
    streams = read_cached_streams(home, session, "uses")
    uses.kept = KeptUses.from_streams([stream.unpack for stream in streams])


def keep_uses(home: Path, session: str, uses: Uses, *, ends: bool) -> bool:
    """Keep what `uses` has found, unless little has come since it was kept last: whether it was
    kept. `ends`: the session is closing, so even a little is kept."""
    before = 0 if uses.kept is None else uses.kept.count
    if uses.read - before < _least(MIN_MESSAGES, before, ends=ends):
        return False
    uses.kept = uses.keep()
    write_cached(home, session, "uses", *uses.kept.to_streams())
    return True


def recall_session(home: Path, session: str) -> KeptSession:
    """What was kept of the session's call records and of its index."""
    calls = read_cached(home, session, "calls")
    checkpoint = None if calls is None else LogCheckpoint.from_bytes(calls)
    return KeptSession(checkpoint, _recall_members(home, session))


def keep_calls(home: Path, chat: Chat, *, ends: bool) -> None:
    """Keep what follows from the session's call records, as `keep_uses` does."""
    log = chat.log
    # The log of a fork is of several sessions, and would be out of date with any of them.
    before = 0 if log.checkpoint is None else log.checkpoint.ordinal
    if chat.info.ancestors or log.newest - before < _least(MIN_CALLS, before, ends=ends):
        return
    checkpoint = log.check(chat.store)
    if checkpoint is not None:
        write_cached(home, chat.info.id, "calls", checkpoint.to_bytes())


def _recall_members(home: Path, session: str) -> KeptMembers | None:
    data = read_cached(home, session, "index")
    return None if data is None else KeptMembers.from_bytes(data)


def keep_members(home: Path, objects: Objects, *, ends: bool) -> None:
    """Keep what the session's index is made of, as `keep_uses` does."""
    before = objects.index.kept
    if len(objects.index) - before < _least(MIN_MEMBERS, before, ends=ends):
        return
    kept = KeptMembers(
        read_members(objects.store, objects.info.id, _recall_members(home, objects.info.id))
    )
    objects.index.kept = len(kept.members)
    write_cached(home, objects.info.id, "index", kept.to_bytes())


def _least(least: int, held: int, *, ends: bool) -> int:
    # All of it is written each time, which takes longer the longer the session is.
    return least if ends else max(least, held // SHARE)
