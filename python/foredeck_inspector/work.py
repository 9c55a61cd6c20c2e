"""Work longer than a page may take, in a thread."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.accounting.figure import CostFigure
from foredeck.accounting.trace import trace
from foredeck.config import Config
from foredeck.errors import NotFound
from foredeck.lookup.prompts import prompts_at
from foredeck.lookup.reader import Reader
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.documents import progress_in, session_object_id
from foredeck.model.records import call_id
from foredeck.store.place import open_store
from foredeck.store.store import Store
from foredeck_agents.histories.recordings import load_recording
from foredeck_inspector.book import Book

PATIENCE_S = 0.15
"""A page then says how far the work is."""
MOST_BOOKS, MOST_REPLAYS, MOST_RESULTS = 12, 6, 50


@dataclass(slots=True)
class LongJob:
    """Work in a thread, with progress."""

    what: str
    done: int = 0
    total: int = 0
    result: Any = None
    error: Exception | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def advance(self, done: int, total: int = 0) -> None:
        self.done, self.total = done, total or self.total

    def to_json(self) -> dict[str, Any]:
        """How far it is."""
        return {"what": self.what, "done": self.done, "total": max(1, self.total)}


@dataclass(frozen=True, slots=True)
class ReplayedHistory:
    """A read-in session as foredeck would have sent it."""

    home: Path
    figure: CostFigure
    scale: float
    """The provider's tokens for one of the replay."""


class Work:
    """One server's work and results."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._patience_s: float | None = PATIENCE_S
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, LongJob] = OrderedDict()
        self._books: OrderedDict[str, Book] = OrderedDict()
        self._replays: OrderedDict[str, ReplayedHistory] = OrderedDict()

    def patient(self) -> Work:
        other = copy(self)
        other._patience_s = None
        return other

    def close(self) -> None:
        """Remove the stores of replays."""
        for replay in self._replays.values():
            shutil.rmtree(replay.home, ignore_errors=True)

    def book(self, session: str) -> tuple[Book, LongJob | None]:
        """A session's book, and the work still going on."""
        book = self._book(session)
        with self._reader.store() as store, self.prompts(session, store) as prompts:
            if book.is_current(store, prompts):
                return book, None
        job = self._run(
            ("book", session),
            "Reading the session",
            lambda job, store, prompts: book.read(store, prompts, job.advance),
        )
        return book, None if book.is_read else job

    def kinds(self, book: Book) -> LongJob | None:
        if all(call.kinds for call in book.calls):
            return None
        return self._run(
            ("kinds", book.session),
            "Looking at what the prompts were made of",
            lambda job, _, prompts: book.work_out_kinds(prompts, job.advance),
        )

    def trace(self, session: str, text: str, calls: int) -> LongJob:
        def work(job: LongJob, _: Store, prompts: Store) -> Any:
            job.total = calls
            more = lambda: job.advance(job.done + 1)  # noqa: E731
            return trace(prompts, session, text, call_id(session, calls), more).to_json()

        key = "trace", session, text, calls
        return self._run(key, "Looking for it in each prompt", work, keep=True)

    def prompts_at(self, session: str, calls: Sequence[int]) -> LongJob:
        """The prompts of some calls, as the result of the work."""
        return self._run(
            ("prompts", session, self.replay(session) is None, *calls),
            "Putting the prompt together",
            lambda _job, _store, prompts: prompts_at(prompts, session, *calls),
            keep=True,
        )

    def replay(self, session: str) -> ReplayedHistory | None:
        """A finished replay, if asked for."""
        with self._lock:
            return self._replays.get(session)

    def replaying(self, session: str, *, begin: bool) -> LongJob | None:
        """A replay going on; `begin` starts it."""
        key = "replay", session
        if self.replay(session) is not None or not (begin or key in self._jobs):
            return None
        job = self._run(
            key,
            "Replaying the session with foredeck",
            lambda job, store, _: self._replay(session, store, job),
        )
        return None if self.replay(session) is not None else job

    @contextmanager
    def prompts(self, session: str, store: Store) -> Iterator[Store]:
        """The store with a session's calls, perhaps its replay's."""
        replay = self.replay(session)
        if replay is None:
            yield store
            return
        with closing(open_store(Config(home=replay.home), lazy=True)) as replayed:
            yield replayed

    def _run(
        self,
        key: tuple[Any, ...],
        what: str,
        work: Callable[[LongJob, Store, Store], Any],
        *,
        keep: bool = False,
    ) -> LongJob:
        """Work on the second part of `key`, a session, given the store and that with its calls."""
        with self._lock:
            job = self._jobs.get(key)
            # One that ended while no page waited has done what was new then, and not since.
            if job is None or (job.ended.is_set() and not keep):
                job = self._jobs[key] = LongJob(what)
                arguments = job, key[1], work
                threading.Thread(target=self._do, args=arguments, name=what, daemon=True).start()
        job.ended.wait(self._patience_s)
        if job.ended.is_set():
            with self._lock:
                if not keep or job.error is not None:
                    self._jobs.pop(key, None)
                while len(self._jobs) > MOST_RESULTS:
                    self._jobs.popitem(last=False)
            if job.error is not None:
                raise job.error
        return job

    def _book(self, session: str) -> Book:
        with self._lock:
            replay = self._replays.get(session)
            scale = 1.0 if replay is None else replay.scale
            book = self._books.setdefault(session, Book(session, scale=scale))
            self._books.move_to_end(session)
            while len(self._books) > MOST_BOOKS:
                self._books.popitem(last=False)
            return book

    def _do(self, job: LongJob, session: str, work: Callable[[LongJob, Store, Store], Any]) -> None:
        try:
            with self._reader.store() as store, self.prompts(session, store) as prompts:
                job.result = work(job, store, prompts)
        except Exception as error:  # the page that waits for it is to say so
            job.error = error
        finally:
            job.ended.set()

    def _replay(self, session: str, store: Store, job: LongJob) -> None:
        # Loads the engine, which pages have no use for otherwise.
        from foredeck_lab.replay.options import ReplayOptions
        from foredeck_lab.replay.replayed_session import replayed

        head = store.head(session_object_id(session))
        progress = None if head is None else progress_in(head.fields)
        path = Path("" if progress is None else progress.file)
        if not path.is_file():
            raise NotFound(f"{path}, the file that the session was read from, is gone.")
        recording = load_recording(path, session, branches=True)
        if not recording.calls:
            raise NotFound(f"{path} has no answer of a model in it.")
        job.total = len(recording.calls)
        config = self._reader.config
        options = ReplayOptions(layout=config.layout, policy=config.policy)
        home = Path(tempfile.mkdtemp(prefix="foredeck-replay-"))
        try:
            with replayed(recording, options, lambda number, *_: job.advance(number), home) as done:
                scale = CHARS_PER_TOKEN / done.rate.chars_per_token
                replay = ReplayedHistory(home, done.figure(), scale)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        with self._lock:
            self._replays[session] = replay
            # What it says of calls is now another thing.
            self._books.pop(session, None)
            while len(self._replays) > MOST_REPLAYS:
                gone, old = self._replays.popitem(last=False)
                self._books.pop(gone, None)
                shutil.rmtree(old.home, ignore_errors=True)
