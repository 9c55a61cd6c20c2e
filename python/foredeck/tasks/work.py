"""Changes of tasks, and tasks found by words; refusals are `ToolError`s."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from foredeck.errors import Conflict, NoSuchTask, StoreUnavailable, ToolError
from foredeck.model.documents import Provenance, chat_id
from foredeck.model.names import RUN, Slice, humps, is_unspaced, telling_parts, words_in
from foredeck.model.records import TurnDocument
from foredeck.model.tasks import (
    ClaimState,
    CloseReason,
    Relation,
    TaskDependency,
    TaskDocument,
    TaskLink,
    TaskType,
)
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Token, retry_on_conflict
from foredeck.store.sessions import is_private
from foredeck.store.store import Store
from foredeck.tasks.board import (
    Actor,
    Board,
    Task,
    cycle,
    held_by_another,
    holds,
    is_own,
    note_claim,
    pending_claim,
    refusal,
)

_MOST_NAMED = 5
_LISTED = "`{} list` shows what there is."
"""Advice to a person who named no task; see `ToolError`."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """A new task's content; `parent` and `blocked_by` are ids."""

    title: str
    description: str | None = None
    priority: int = 2
    task_type: TaskType = "task"
    labels: tuple[str, ...] = ()
    parent: str | None = None
    blocked_by: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claimed:
    """`provisional`: the deciding database is away; `again`: the actor had it already."""

    task: Task
    provisional: bool = False
    again: bool = False


_AWAY = (
    "The database is away: until it is back, make new tasks, and change only those that you have "
    "claimed."
)

Edit = Callable[[TaskDocument, Task], None]
"""Raises `ToolError` if it refuses."""


class TaskWork:
    """One project's tasks, for one `actor`."""

    def __init__(
        self,
        store: Store,
        project: str,
        actor: Actor,
        clock: Callable[[], int] = now_ms,
        board: Board | None = None,
    ) -> None:
        self.board = board or Board(store, project)
        self.actor = actor
        self.now_ms = clock
        self.news: list[str] = []
        """What the agent has yet to read."""
        self.away = False
        """The last change is only on this machine so far."""
        self.store = store

    def by(self, actor: Actor) -> TaskWork:
        """The same tasks for another actor."""
        return TaskWork(self.store, self.board.project, actor, self.now_ms, self.board)

    def find(self, name: str) -> Task:
        """The task that a name means. Raises `ToolError`."""
        ids = self.board.names.find(name)
        if len(ids) > 1:
            tasks = [t for id in sorted(ids) if (t := self.board.get(id)) is not None]
            names_text = "; ".join(f"{self.name(t)} {t.called}" for t in tasks[:_MOST_NAMED])
            raise ToolError(f"{name!r} means {len(tasks)} tasks: {names_text}. Give more letters.")
        task = self.board.get(ids[0]) if ids else None
        if task is None:
            raise NoSuchTask(
                f"Task not found: {name}.", "The action list shows all, search finds one.", _LISTED
            )
        return task

    def name(self, task: Task) -> str:
        return self.board.names.name(task.id)

    def description(self, task: Task) -> str | None:
        """A task's description, loaded."""
        stored = self.store.get(task.id, TaskDocument, task.token)
        return None if stored is None else stored.content

    def said_for(self, task: Task) -> list[str]:
        """Places where a task was active, by names that open them."""
        versions = self.store.history(task.id)
        sessions = dict.fromkeys(filter(None, (v.view(TaskDocument).session for v in versions)))
        names: list[str] = []
        for session in sessions:
            if is_private(self.store, session):
                continue
            heads = self.store.query("turn", {"session": session})
            turns = (head.view(TurnDocument) for head in heads)
            numbers = {turn.user_turn for turn in turns if turn.task == task.id}
            for first in sorted(n for n in numbers if n - 1 not in numbers):
                last = next(n for n in count(first) if n + 1 not in numbers)
                names.append(f"{chat_id(session)} {Slice('turn', first, last)}")
        return names

    # Changes

    def create(self, new: NewTask) -> Task:
        now = self.now_ms()
        dependencies = [TaskDependency(on=on) for on in dict.fromkeys(new.blocked_by)]
        if new.parent is not None:
            dependencies.append(TaskDependency(on=new.parent, relation="parent-child"))
            self._check_open_epic(new.parent)
        document = TaskDocument(
            id=self.board.names.mint(now),
            project=self.board.project,
            title=new.title,
            content=new.description,
            priority=new.priority,
            task_type=new.task_type,
            labels=list(new.labels),
            dependencies=dependencies,
            metadata=new.metadata,
            created_by=self.actor.origin,
            created_ms=now,
            updated_ms=now,
            provenance=self._provenance(),
        )
        # A new task is nobody else's yet: it can wait for the database.
        self._put(document, {document.id: None}, can_wait=True)
        return self._reread(document.id)

    def claim(self, id: str) -> Claimed:
        """Claims a task; the first on any machine wins."""
        again = False

        def edit(document: TaskDocument, task: Task) -> None:
            nonlocal again
            now = self.now_ms()
            if refused := refusal(self.board, task, self.actor, now):
                raise refused
            again = is_own(task, self.actor)
            document.status = "in_progress"
            document.assignee, document.session = self.actor.assignee, self.actor.session
            document.claimed_ms, document.lease_ms = now, self.actor.lease_ms(now)

        try:
            task = self._change(id, edit, is_claim=True)
        except StoreUnavailable:
            return self._claim_provisionally(id)
        if self.actor.session is not None and pending_claim(self.store, self.actor.session):
            note_claim(self.store, self.actor.session, id, "dropped", self.now_ms())
        return Claimed(task, again=again)

    def _claim_provisionally(self, id: str) -> Claimed:
        task, session = self._reread(id), self.actor.session
        if not self.store.is_shared or session is None:
            raise ToolError(
                "The database is away and has to decide who gets a task: try again when it is back."
            )
        note_claim(self.store, session, id, "pending", self.now_ms())
        return Claimed(task, provisional=True)

    def settle(self) -> None:
        session = self.actor.session
        id = None if session is None else pending_claim(self.store, session)
        if session is None or id is None or self.store.trouble:
            return
        self.board.refresh()
        if self.board.get(id) is None:
            return  # another machine's, and not here yet
        outcome: ClaimState = "won"
        result = "holds."
        try:
            if self.claim(id).provisional:
                return
        except ToolError as error:
            outcome, result = "lost", f"is lost. {error}"
        note_claim(self.store, session, id, outcome, self.now_ms())
        name = self.name(self._reread(id))
        self.news.append(f"The database is back: your provisional claim of {name} {result}")

    def close(self, id: str, reason: CloseReason, summary: str) -> Task:
        """Closes a task."""

        def edit(document: TaskDocument, task: Task) -> None:
            name = self.name(task)
            if task.is_closed:
                raise ToolError(f"{name} is closed already ({task.close_reason}).")
            self._check_not_anothers(task)
            parts = [p for p in self.board.children(id) if not p.is_closed]
            if parts and reason == "completed":
                part_names = "; ".join(f"{self.name(p)} {p.called}" for p in parts[:_MOST_NAMED])
                raise ToolError(f"{name} has open parts: {part_names}. Close these first.")
            now = self.now_ms()
            document.status, document.close_reason = "closed", reason
            document.summary, document.closed_ms = summary, now
            document.lease_ms = None
            if document.assignee is None:
                document.assignee, document.session = self.actor.assignee, self.actor.session

        return self._change(id, edit)

    def update(self, id: str, fields: dict[str, Any]) -> Task:
        """Changes fields; `status` `open` releases or reopens."""

        def edit(document: TaskDocument, task: Task) -> None:
            if "status" in fields:
                self._check_not_anothers(task)
            for name, value in fields.items():
                setattr(document, name, value)
            if "status" in fields:
                document.assignee = document.session = None
                document.claimed_ms = document.lease_ms = None
                document.closed_ms = document.close_reason = None

        return self._change(id, edit)

    def connect(self, id: str, on: str, relation: Relation, *, add: bool = True) -> Task:
        """Adds or removes a dependency."""
        dependency = TaskDependency(on=on, relation=relation)

        def edit(document: TaskDocument, task: Task) -> None:
            if not add:
                if dependency not in document.dependencies:
                    raise ToolError(self._not_connected(task, on, relation))
                document.dependencies.remove(dependency)
                return
            if id == on:
                raise ToolError(f"{self.name(task)} cannot depend on itself.")
            self._check_circle(id, on, relation)
            if relation == "parent-child":
                self._check_open_epic(on)
                document.dependencies = [
                    d for d in document.dependencies if d.relation != "parent-child"
                ]
            if dependency not in document.dependencies:
                document.dependencies.append(dependency)

        # The other task must not have changed either: of several changes that close a circle
        # together, the last to come finds that.
        return self._change(id, edit, together=(on,))

    def link(self, id: str, link: TaskLink, *, add: bool = True) -> Task:
        """Links a message or object."""

        def edit(document: TaskDocument, _task: Task) -> None:
            others = [k for k in document.links if (k.object, k.part) != (link.object, link.part)]
            document.links = [*others, link] if add else others

        return self._change(id, edit)

    # Checks

    def _check_not_anothers(self, task: Task) -> None:
        error = held_by_another(task, self.actor, self.now_ms())
        if error and self.actor.generator == "agent":
            raise error

    def _check_circle(self, id: str, on: str, relation: Relation) -> None:
        if relation not in ("blocks", "parent-child"):
            return
        waiting, waited_for = (id, on) if relation == "blocks" else (on, id)
        if path := cycle(self.board, waiting, waited_for):
            steps = " waits for ".join(self.board.names.name(step) for step in path)
            raise ToolError(f"That would make a circle, in which nothing could begin: {steps}.")

    def _check_open_epic(self, parent: str) -> None:
        epic = self._reread(parent)
        if epic.is_closed:
            name = self.name(epic)
            raise ToolError(
                f"{name} is closed.",
                'Update it with status "open", or choose another.',
                "Reopen it with `{} open TASK`.",
            )

    def _not_connected(self, task: Task, on: str, relation: str) -> str:
        there = [f"{d.relation} {self.board.names.name(d.on)}" for d in task.dependencies]
        existing = f" It has: {', '.join(there)}." if there else ""
        other = self.board.names.name(on)
        return f"{self.name(task)} has no dependency {relation} on {other}.{existing}"

    # Writing

    def _change(
        self, id: str, edit: Edit, *, together: tuple[str, ...] = (), is_claim: bool = False
    ) -> Task:
        """Stores a task's next version.

        `together`: tasks that must be unchanged too. Raises `ToolError`, or `StoreUnavailable` for
        a claim while the database is away.
        """

        def attempt() -> Task:
            task = self._reread(id)
            document = self._next(task)
            # Called again where another was faster, with what that made of the task: so it must go
            # by the task that it is given, and by nothing that it knew before.
            edit(document, task)
            expect: dict[str, Token | None] = {id: task.token}
            expect |= {other: self._reread(other).token for other in together}
            try:
                # While the database is away, only what no other may change is written to this
                # machine alone. Anything else, delivered later, could undo what another machine has
                # been granted meanwhile.
                can_wait = not is_claim and holds(task, self.actor, self.now_ms())
                self._put(document, expect, can_wait=can_wait)
            except StoreUnavailable:
                if is_claim or not self.store.is_shared:
                    raise
                raise ToolError(_AWAY) from None
            except Conflict:
                self.board.refresh()  # the next attempt reads the task from there
                raise
            return self._reread(id)

        name = self.board.names.name(id)
        return retry_on_conflict(
            attempt, ToolError(f"{name} is being changed by others: try again.")
        )

    def _next(self, task: Task) -> TaskDocument:
        stored = self.store.get(task.id, TaskDocument, task.token)
        assert stored is not None
        document = stored.model_copy(deep=True)
        document.provenance = self._provenance()
        # The clocks of two machines differ: the times of versions never go back.
        document.updated_ms = max(self.now_ms(), task.updated_ms)
        return document

    def _provenance(self) -> Provenance:
        return Provenance(origin=self.actor.origin, generator=self.actor.generator)

    def _put(
        self, document: TaskDocument, expect: dict[str, Token | None], *, can_wait: bool
    ) -> None:
        batch = Batch(puts=[document.seal()], expect=expect)
        self.away = False
        try:
            self.store.commit_for_all(batch)
        except StoreUnavailable:
            if not (can_wait and self.store.is_shared):
                raise
            self.store.commit(batch)
            self.away = True
        self.board.refresh()

    def _reread(self, id: str) -> Task:
        task = self.board.get(id)
        if task is None:
            raise ToolError(
                "Task not found: it has been erased.",
                "The action list shows what is there.",
                _LISTED,
            )
        return task


# Tasks found by words


_TITLE, _LABEL, _SUMMARY, _DESCRIPTION = 8, 6, 3, 2
"""Weight of a word by place."""
_WHOLE = 2
"""Relative to a beginning."""
_NAME = re.compile(r"t-[0-9a-z]{4,}")


class TaskMatcher:
    """Ranks tasks by matching words, then by their places, newer first."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._descriptions: dict[str, tuple[str, frozenset[str]]] = {}
        """By task: the version that was read, and its words."""

    def find(self, query: str) -> list[Task]:
        """Tasks with all words of `query`, else with some; best first."""
        typed = RUN.findall(query)
        words = sorted({*words_in(query), *(part for w in typed for part in telling_parts(w))})
        ranked = [(self._rank(task, words), task) for task in self._work.board.all()]
        best = max((rank[0] for rank, _ in ranked), default=0)
        best_matches = [(rank, task) for rank, task in ranked if best and rank[0] == best]
        best_matches.sort(key=lambda pair: (-pair[0][1], pair[1].is_closed, -pair[1].updated_ms))
        by_name = self._named(query)
        return [*by_name, *(task for _, task in best_matches if task not in by_name)]

    def _named(self, query: str) -> list[Task]:
        board = self._work.board
        id_lists = (board.names.find(name) for name in _NAME.findall(query.lower()))
        ids = (ids[0] for ids in id_lists if len(ids) == 1)
        return [task for id in ids if (task := board.get(id)) is not None]

    def _rank(self, task: Task, words: list[str]) -> tuple[int, int]:
        fields = (
            (_words(task.title), _TITLE),
            (_words(" ".join(task.labels)), _LABEL),
            (_words(task.summary or ""), _SUMMARY),
            (self._description(task), _DESCRIPTION),
        )
        weights = [max(_weight(word, there, w) for there, w in fields) for word in words]
        return sum(weight > 0 for weight in weights), sum(weights)

    def _description(self, task: Task) -> frozenset[str]:
        # Read from the store once for each version: the board has no descriptions.
        cached = self._descriptions.get(task.id)
        if cached is None or cached[0] != task.token:
            cached = task.token, _words(self._work.description(task) or "")
            self._descriptions[task.id] = cached
        return cached[1]


def _weight(word: str, there: frozenset[str], weight: int) -> int:
    if word in there:
        return weight * _WHOLE
    if is_unspaced(word):
        return weight if any(word in other for other in there) else 0
    return weight if any(other.startswith(word) for other in there) else 0


def _words(text: str) -> frozenset[str]:
    return frozenset(words_in(text)) | {part for w in RUN.findall(text) for part in humps(w)}
