"""Jobs beside the agent: one at a time, and only after an event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from foredeck.config.sections import AskingSection
from foredeck.context.state.session import Session
from foredeck.engine.asking import SessionAsking
from foredeck.errors import ForedeckError
from foredeck.hosts.host import Host

log = logging.getLogger(__name__)

SessionEvent = Literal["call", "tool", "answer", "command", "compaction"]
"""What has just happened in the session.

`call`: a prompt has gone out; `tool`: a tool has run; `answer`: a run has ended; `command`: the
user has typed one; `compaction`: the user wants one, and the chat is still whole.
"""


class Job(NamedTuple):
    """Longer work, cancellable at any `await`.

    A later job of the same `name` replaces a waiting one, unless its `priority` is smaller.
    """

    name: str
    run: Callable[[SessionAsking], Awaitable[None]]
    priority: int = 0


@runtime_checkable
class BackgroundWorker(Protocol):
    """Says what is to be done in one session."""

    def due(self, happened: SessionEvent) -> Iterable[Job]:
        """Jobs that may run now. Called on the engine's thread, so the next request waits for
        it."""
        ...

    def close(self) -> None:
        """Closes with the session, before its store."""
        ...


class Background:
    """Runs the session's jobs on the event loop, one at a time, after an event.

    Only if the host has models, so never in a replay.
    """

    def __init__(self, config: AskingSection, host: Host) -> None:
        self._config = config
        self._host = host
        self._workers: Sequence[BackgroundWorker] = ()
        self._asking: SessionAsking | None = None
        self._waiting: dict[str, Job] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def attach(self, session: Session, workers: Sequence[BackgroundWorker]) -> None:
        """Works for this session from now on."""
        self.detach()
        if self._host.models is not None:
            self._asking = SessionAsking(
                session.chat, self._host.models, self._config, self._host.show
            )
            self._workers = workers

    def detach(self) -> None:
        if self._asking is not None:
            self._asking.close()
        if self._running is not None:
            # It ends at its next step, when the session is closed: what has to be stored of it is
            # stored here, by those that are closed.
            self._running.cancel()
        for worker in self._workers:
            try:
                worker.close()
            except Exception:
                log.exception("%s does not end as it should", type(worker).__name__)
        self._asking, self._running, self._workers = None, None, ()
        self._waiting.clear()

    def happened(self, happening: SessionEvent) -> None:
        """Collects due jobs, and starts one if none runs."""
        for worker in self._workers:
            try:
                for job in worker.due(happening):
                    self._put(job)
            except Exception:
                log.exception("%s does not say what is due", type(worker).__name__)
        if self._waiting and not self.is_busy:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def _put(self, job: Job) -> None:
        waiting = self._waiting.get(job.name)
        if waiting is None or waiting.priority <= job.priority:
            self._waiting[job.name] = job

    async def _run(self) -> None:
        asking = self._asking
        # Another session may have been opened while a job ran: its jobs have a task of their own.
        while self._waiting and asking is not None and asking is self._asking:
            name = max(self._waiting, key=lambda name: self._waiting[name].priority)
            await _run_job(self._waiting.pop(name), asking)


async def _run_job(job: Job, asking: SessionAsking) -> None:
    try:
        await job.run(asking)
    except ForedeckError as error:
        log.info("%s: %s", job.name, error)
    except Exception:
        log.exception("%s failed", job.name)
