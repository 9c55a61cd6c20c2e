"""Tasks against a plain model: what can be begun, what is refused, what a restart finds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from examples import examples
from foredeck.errors import ToolError
from foredeck.store.store import open_sqlite
from foredeck.tasks.board import Board
from tasks.desk import HOUR_MS, Desk


class Workflow(RuleBasedStateMachine):
    """Two sessions do what they like with the tasks of a project; a dictionary says what is so."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self._folder.name))
        self.model: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        self.desk.close()
        self._folder.cleanup()

    # What the model says

    def waits_for(self, id: str) -> set[str]:
        parts = {other for other, task in self.model.items() if task["parent"] == id}
        return self.model[id]["blocks"] | parts

    def blockers(self, id: str) -> set[str]:
        return {other for other in self.waits_for(id) if self.model[other]["status"] != "closed"}

    def reaches(self, start: str, end: str) -> bool:
        seen, pending = set(), [start]
        while pending:
            here = pending.pop()
            if here == end:
                return True
            if here not in seen:
                seen.add(here)
                pending += self.waits_for(here)
        return False

    def is_held(self, id: str) -> bool:
        task = self.model[id]
        return task["status"] == "in_progress" and self.desk.clock.now < task["until"]

    def refused(self, work: Any, *arguments: Any, **more: Any) -> str | None:
        for session in (self.desk.first, self.desk.second):
            session.work.board.refresh()
        try:
            work(*arguments, **more)
        except ToolError as error:
            return str(error)
        return None

    # What happens

    @rule(target=tasks, priority=st.integers(0, 4))
    def create(self, priority: int) -> str:
        name = self.desk.create(f"task {len(self.model)}", priority=priority)
        id = self.desk.first.work.find(name).id
        self.model[id] = {"status": "open", "blocks": set(), "parent": None, "order": priority}
        return id

    @rule(id=tasks, is_first=st.booleans())
    def claim(self, id: str, is_first: bool) -> None:
        session = self.desk.first if is_first else self.desk.second
        task = self.model[id]
        own = task["status"] == "in_progress" and task["by"] == is_first
        free = task["status"] != "closed" and not self.is_held(id) and not self.blockers(id)
        why = self.refused(session.work.claim, id)
        assert (why is None) == (own or free), why
        if why is None:
            until = session.work.board.get(id).lease_ms
            task |= {"status": "in_progress", "by": is_first, "until": until}

    @rule(id=tasks, is_first=st.booleans(), reason=st.sampled_from(["completed", "wontfix"]))
    def close_task(self, id: str, is_first: bool, reason: str) -> None:
        session = self.desk.first if is_first else self.desk.second
        task = self.model[id]
        parts = {o for o, t in self.model.items() if t["parent"] == id and t["status"] != "closed"}
        others = self.is_held(id) and task["by"] != is_first
        refused = task["status"] == "closed" or others or (parts and reason == "completed")
        why = self.refused(session.work.close, id, reason, "what came of it")
        assert (why is not None) == bool(refused), why
        if why is None:
            task["status"] = "closed"

    @rule(id=tasks)
    def open_again(self, id: str) -> None:
        task = self.model[id]
        others = self.is_held(id) and task["by"] is False
        why = self.refused(self.desk.first.work.update, id, {"status": "open"})
        assert (why is not None) == others, why
        if why is None:
            task["status"] = "open"

    @rule(id=tasks, on=tasks, add=st.booleans())
    def depend(self, id: str, on: str, add: bool) -> None:
        blocks = self.model[id]["blocks"]
        refused = self.reaches(on, id) if add else on not in blocks
        why = self.refused(self.desk.second.work.connect, id, on, "blocks", add=add)
        assert (why is not None) == refused, why
        if why is None:
            (blocks.add if add else blocks.discard)(on)

    @rule(id=tasks, on=tasks)
    def become_a_part(self, id: str, on: str) -> None:
        task = self.model[id]
        refused = self.reaches(id, on) or self.model[on]["status"] == "closed"
        why = self.refused(self.desk.first.work.connect, id, on, "parent-child")
        assert (why is not None) == refused, why
        if why is None:
            task["parent"] = on

    @rule(hours=st.integers(1, 3))
    def time_passes(self, hours: int) -> None:
        self.desk.clock.now += hours * HOUR_MS

    # What is so

    @invariant()
    def ready_is_what_can_be_claimed(self) -> None:
        now = self.desk.clock.now
        claimable = {
            id
            for id, task in self.model.items()
            if task["status"] != "closed" and not self.is_held(id) and not self.blockers(id)
        }
        fresh = Board(open_sqlite(Path(self._folder.name) / "tasks.db"), "project")
        for board in (self.desk.first.work.board, self.desk.second.work.board, fresh):
            board.refresh()
            found = board.ready(1_000, now)
            assert {task.id for task in found} == claimable
            assert [task.priority for task in found] == sorted(task.priority for task in found)
            waiting = {i for i, t in self.model.items() if t["status"] == "open"} - claimable
            assert board.counts(now) == (len(claimable), len(waiting))
        fresh._store.close()


Workflow.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=25)
TestWorkflow = Workflow.TestCase
