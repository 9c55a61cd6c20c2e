"""Work beside the agent's own: what workers want done, one job at a time, and none unless something
has happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from foredeck.config.sections import AskingSection
from foredeck.context.state.opening import Session
from foredeck.engine.asking import SessionAsking
from foredeck.errors import ForedeckError
from foredeck.hosts.host import Host

log = logging.getLogger(__name__)


SessionEvent = Literal["call", "tool", "answer", "command", "compaction"]
"""What has just happened in the session.

call        a prompt has gone out
tool        a tool that the answer called has run
answer      a run has ended with an answer
command     the user has typed a command of ours
compaction  the user wants the chat compacted; it is still whole
"""


class Job(NamedTuple):
    """Work that takes a while. It may be cancelled at any `await`; whatever it raises is logged.

    `name`: a job that waits is replaced by a later one of its name, unless that has a smaller
    `priority`. Of the jobs that wait, the one with the largest priority runs first.
    """

    name: str
    run: Callable[[SessionAsking], Awaitable[None]]
    priority: int = 0


class BackgroundWorker(Protocol):
    """Says what is to be done; made for one session, as sections and tools are."""

    def due(self, happened: SessionEvent) -> Iterable[Job]:
        """The jobs that may run now. Called on the engine's thread after the answer has gone out:
        short, since the next request waits for it."""
        ...

    def close(self) -> None:
        """The session closes. Called while its store is open, after its jobs were cancelled."""
        ...


class Background:
    """Runs the jobs of the open session on the event loop, between two requests.

    A job runs after something has happened (`happened`), never by itself. No two run at once.
    Without the host's models, as in a replay, nothing runs.
    """

    def __init__(self, config: AskingSection, host: Host) -> None:
        self._config = config
        self._host = host
        self._workers: Sequence[BackgroundWorker] = ()
        self._asking: SessionAsking | None = None
        self._waiting: dict[str, Job] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def asking(self) -> SessionAsking | None:
        """How the open session asks; None where there is no session, or no host with models."""
        return self._asking

    @property
    def is_busy(self) -> bool:
        """Whether a job runs."""
        return self._running is not None and not self._running.done()

    def attach(self, session: Session, workers: Sequence[BackgroundWorker]) -> None:
        """Work for this session from now on."""
        self.detach()
        if self._host.models is not None:
            self._asking = SessionAsking(
                session.chat, self._host.models, self._config, self._host.show
            )
            self._workers = workers

    def detach(self) -> None:
        """Leave the session: cancel its jobs, and record its open question as cancelled while
        the store is open."""
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
        """Ask the workers what is due, and begin with it unless a job runs already. Needs a running
        event loop where anything is due."""
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
