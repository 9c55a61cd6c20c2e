"""A session's chat as its prompt is now, folded for the agent in which it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foredeck.config import Config
from foredeck.context.messages.items import text_block
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import OutcomeParams, SessionOpenParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.store.store import Store
from foredeck_agents.carry.origin import NOTE, SourceSession

BEFORE = "before"
"""Stands for the model of the first of them."""


@dataclass(frozen=True, slots=True)
class Folded:
    messages: list[Message]
    ours: frozenset[int]
    folded: int
    """Objects that are there as a line."""
    whole: int
    """Tokens before anything was folded."""
    rate: float
    """Characters per token of the model."""


@dataclass(frozen=True, slots=True)
class Going:
    """Where a session goes on: id, folder, file, and the model's record."""

    session: str
    cwd: str
    file: str | None
    harness: str
    model: dict[str, Any]


def folded(
    config: Config, store: Store, origin: SourceSession, going: Going, note: str, time_ms: int
) -> Folded:
    engine = Engine(config, Host(name=going.harness), store=store)
    try:
        host = SimulatedHost(going.session, model={**going.model, "id": BEFORE})
        for each in origin.messages:
            # What another provider has counted says nothing of what is sent now.
            uncounted = {k: v for k, v in each.message.items() if k != "usage"}
            host.add(uncounted, entries=[each.entry])
        engine.open_session(
            SessionOpenParams(
                session=going.session,
                file=going.file,
                cwd=going.cwd,
                reason="fork",
                parent=origin.parent,
                by_user=False,
            )
        )
        # Where it was, then where it goes: nothing is cached for another model, so all folds. No
        # model is asked: the session's cost begins with the first call that is answered.
        before = engine.assemble(host.request(time_ms))
        host.outcomes = [OutcomeParams(call=before["call"] + n, kind="aborted") for n in range(2)]
        host.model = going.model
        # As from the user's side it ends the turn: then no signed reasoning binds what is before.
        said = {"role": "user", "content": [text_block(note)], "timestamp": time_ms}
        host.add(said, entries=[NOTE])
        host.accept(engine.assemble(host.request(time_ms)))
        says = {id(say) for slot in host.plan.slots for say in slot.says}
        # The note as it is: what the engine may have added to it speaks of what is above.
        prompt = [*host.prompt()[:-1], host.messages[-1]]
        ours = {n for n, message in enumerate(prompt) if id(message) in says}
        ours.add(len(prompt) - 1)
        assert engine.opened is not None  # it has just answered
        record = engine.opened.session.chat.newest_record
        assert record is not None
        rate = record.stats.rate
        whole = round(record.stats.chars_host / rate)
        return Folded(prompt, frozenset(ours), record.stats.folded, whole, rate)
    finally:
        engine.close()
