"""A process that observes a session to its end, and says at each step where it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from foredeck.config import Config
from foredeck.errors import StoreError
from foredeck.observations.chunks import SourceMessage
from foredeck.observations.keeping import ObservationKeeper
from foredeck.observations.lease import ObservingFailed, ObservingLease
from foredeck.observations.observers import AskedQuestion, ModelObserver, ModelReply
from foredeck.observations.rules import ModeChoice
from foredeck.store.kind import open_store
from foredeck.store.protocol import LocalStore
from foredeck_bench.observing.chat import CLOCK, RULES, ask, chat, count, pick, prompt_of

MODE = ModeChoice("default", "guess", "a bench")
_PATIENCE_S = 120.0
_AGAIN_S = 0.03

Settings = Mapping[str, Any]


def work(settings: Settings, session: str, chunks: int, port: int, pipe: Connection) -> None:
    """Observe a chat that grows chunk by chunk, and condense it; then send its prompt.

    Each step is sent before it goes on, and waits for a word. `stale` is sent where something had
    been left behind.
    """
    with closing(open_store(Config(**settings))) as store:
        keeper = keeper_of(store, session, lambda name: _step(pipe, name))
        if stale := patiently(keeper.lease.clear_stale):
            pipe.send(("stale", stale))
        observer = ModelObserver(lambda question: _asked(port, question), count, CLOCK, RULES.chunk)
        for number in range(1, chunks + 1):
            messages = chat(number)
            observed(keeper, messages, observer)
            patiently(partial(_reflected, keeper, messages, observer))
        messages = chat(chunks + 1)
        notes = keeper.read([m.address for m in messages])
        pipe.send(("done", prompt_of(notes, messages)))


def observed(
    keeper: ObservationKeeper, messages: Sequence[SourceMessage], observer: ModelObserver
) -> bool:
    """Observe the next chunk, as soon as nobody else is at it; whether there was one."""

    def once() -> object:
        return asyncio.run(keeper.observe(messages, pick, observer, MODE))

    return patiently(once) is not None


def _reflected(
    keeper: ObservationKeeper, messages: Sequence[SourceMessage], observer: ModelObserver
) -> object:
    return asyncio.run(keeper.reflect(messages, observer))


def keeper_of(
    store: LocalStore, session: str, step: Callable[[str], None] = lambda _name: None
) -> ObservationKeeper:
    """Of a session of these benches."""
    return ObservationKeeper(ObservingLease(store, session), session, rules=RULES, step=step)


def patiently(action: Callable[[], Any]) -> Any:
    """Do it again while the database is away or somebody else is at it."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return action()
        except (StoreError, ObservingFailed):
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)


async def _asked(port: int, question: AskedQuestion) -> ModelReply:
    return await asyncio.to_thread(ask, port, question)


def _step(pipe: Connection, name: str) -> None:
    pipe.send(("step", name))
    pipe.recv()
