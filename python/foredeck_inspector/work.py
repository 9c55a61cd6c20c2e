"""Work longer than a page may take, in a thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from foredeck.accounting.trace import trace
from foredeck.lookup.prompts import prompts_at
from foredeck.lookup.reader import Reader
from foredeck.model.records import call_id
from foredeck.store.store import Store
from foredeck_inspector.book import Book

PATIENCE_S = 0.15
"""A page then says how far the work is."""
MOST_BOOKS, MOST_RESULTS = 12, 50


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


class Work:
    """One server's work and results."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._patience_s: float | None = PATIENCE_S
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, LongJob] = OrderedDict()
        self._books: OrderedDict[str, Book] = OrderedDict()

    def patient(self) -> Work:
        other = copy(self)
        other._patience_s = None
        return other

    def book(self, session: str) -> tuple[Book, LongJob | None]:
        """A session's book, and the work still going on."""
        book = self._book(session)
        with self._reader.store() as store:
            if book.is_current(store):
                return book, None
        job = self._run(
            ("book", session),
            "Reading the session",
            lambda job, store: book.read(store, job.advance),
        )
        return book, None if book.is_read else job

    def kinds(self, book: Book) -> LongJob | None:
        if all(call.kinds for call in book.calls):
            return None
        return self._run(
            ("kinds", book.session),
            "Looking at what the prompts were made of",
            lambda job, store: book.work_out_kinds(store, job.advance),
        )

    def trace(self, session: str, text: str, calls: int) -> LongJob:
        def work(job: LongJob, store: Store) -> Any:
            job.total = calls
            more = lambda: job.advance(job.done + 1)  # noqa: E731
            return trace(store, session, text, call_id(session, calls), more).to_json()

        key = "trace", session, text, calls
        return self._run(key, "Looking for it in each prompt", work, keep=True)

    def prompts_at(self, session: str, calls: Sequence[int]) -> LongJob:
        """The prompts of some calls, as the result of the work."""
        return self._run(
            ("prompts", session, *calls),
            "Putting the prompt together",
            lambda _job, store: prompts_at(store, session, *calls),
            keep=True,
        )

    def _run(
        self,
        key: tuple[Any, ...],
        what: str,
        work: Callable[[LongJob, Store], Any],
        *,
        keep: bool = False,
    ) -> LongJob:
        """Work in a thread of its own, once for each `key`."""
        with self._lock:
            job = self._jobs.get(key)
            # One that ended while no page waited has done what was new then, and not since.
            if job is None or (job.ended.is_set() and not keep):
                job = self._jobs[key] = LongJob(what)
                threading.Thread(target=self._do, args=(job, work), name=what, daemon=True).start()
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
            book = self._books.setdefault(session, Book(session))
            self._books.move_to_end(session)
            while len(self._books) > MOST_BOOKS:
                self._books.popitem(last=False)
            return book

    def _do(self, job: LongJob, work: Callable[[LongJob, Store], Any]) -> None:
        try:
            with self._reader.store() as store:
                job.result = work(job, store)
        except Exception as error:  # the page that waits for it is to say so
            job.error = error
        finally:
            job.ended.set()
