"""What an engine would hold that starts now, against what the one that runs does hold."""

from __future__ import annotations

from copy import copy
from typing import Any

from context.driver import Host
from foredeck.context.intake.alignment import restore
from foredeck.context.state.session import Session


def check_restored(host: Host) -> None:
    """Taken from the call records alone, a session is the one that has lived through the calls."""
    lived = host.state
    restored = copy(lived)
    state = lived.log.replay(lived.current, lived.load_record)
    restore(restored, state, lived.conversation.items, lived.current)
    for name, value in _kept(lived).items():
        assert value == _kept(restored)[name], name


def _kept(session: Session) -> dict[str, Any]:
    """All that decides on the bytes of later calls."""
    conversation, sets = session.conversation, session.sets
    parts = ("form", "blocks", "subject", "version", "base", "text_hash", "chars", "slots")
    return {
        "parts": [[getattr(part, name) for name in parts] for part in conversation.parts],
        "live": conversation.live,
        "uses": conversation.uses,
        "due": conversation.due,
        "holders": conversation.holders,
        "texts": conversation.texts,
        "sets": (set(sets.pool), set(sets.active), set(sets.pinned)),
        "inserts": {index: ours for index, ours in session.inserts.items() if ours},
        "drops": session.drops,
        "policy": dict(session.policy_state),
        "ledger": session.ledger.to_state(),
        "stands": (session.depth, session.current, session.stands),
    }
