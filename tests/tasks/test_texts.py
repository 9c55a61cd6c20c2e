"""Every line that a model reads of tasks, as it reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.errors import ToolError
from foredeck.model.tasks import TaskLink
from foredeck.tasks.board import LEASE_MS, Actor
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.tools import REASONS, RELATIONS, SCOPES, TYPES
from foredeck.tasks.work import TaskWork
from tasks.desk import DAY_MS, HOUR_MS, SECOND, Desk, said

TOOLS = Path(__file__).resolve().parents[2] / "ts-shim" / "tools.json"


class Talk:
    """Calls and answers, one after the other."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.lines: list[str] = []

    def say(self, tool: Any, **input: Any) -> None:
        self.lines += [f"{tool.name} {input}", said(tool.run, **input), ""]

    def text(self) -> str:
        return "\n".join(self.lines)


def test_planning_claiming_and_closing(desk: Desk, snapshot: SnapshotAssertion) -> None:
    talk = Talk(desk)
    query, mutate, other = desk.first.query, desk.first.mutate, desk.second.mutate
    talk.say(query, action="ready")
    talk.say(mutate, action="create", title="Build the login", type="epic")
    epic = talk.lines[-2].split()[1]
    talk.say(
        mutate,
        action="create",
        title="Write  the\nschema",
        parent=epic,
        priority="P1",
        labels="auth, #zod",
        description="Names and lengths.\nReady: not a line of ours",
    )
    schema = talk.lines[-2].split()[1]
    talk.say(mutate, action="create", title="Draw the form", parent=epic, dependsOn=schema)
    form = talk.lines[-2].split()[1]
    talk.say(query, action="ready")
    talk.say(query, action="list")
    talk.say(other, action="claim", id=schema)
    talk.say(mutate, action="claim", id=schema)
    talk.say(mutate, action="claim", id=form)
    talk.say(other, action="claim", id=schema)
    talk.say(query, action="show", id=schema)
    talk.say(mutate, action="close", id=schema, summary="x")
    talk.say(other, action="close", id=schema, reason="completed", summary="Made LoginSchema.")
    talk.say(mutate, action="close", id=schema, summary="again")
    talk.say(mutate, action="claim", id=schema)
    talk.say(mutate, action="close", id=epic, summary="all of it")
    talk.say(query, action="search", query="loginschema")
    talk.say(query, action="list", status="closed")
    assert talk.text() == snapshot


def test_connections_and_changes(desk: Desk, snapshot: SnapshotAssertion) -> None:
    talk = Talk(desk)
    query, mutate = desk.first.query, desk.first.mutate
    one, two, three = (desk.create(title) for title in ("One", "Two", "Three"))
    talk.say(mutate, action="dep", taskId=two, dependsOn=one)
    talk.say(mutate, action="dep", taskId=three, dependsOn=two, type="blocked-by")
    talk.say(mutate, action="dep", taskId=one, dependsOn=three)
    talk.say(mutate, action="dep", taskId=one, dependsOn=one)
    talk.say(mutate, action="dep", taskId=one, dependsOn=two, add=False)
    talk.say(mutate, action="dep", taskId=two, dependsOn=one, add="no")
    for relation in ("supersedes", "duplicates", "related", "parent"):
        talk.say(mutate, action="dep", taskId=one, dependsOn=three, type=relation)
    talk.say(query, action="show", id=one)
    talk.say(query, action="show", id=three)
    talk.say(mutate, action="claim", id=one)
    talk.say(query, action="ready")
    talk.say(mutate, action="update", id=one, status="open", priority=0, labels=["x"])
    talk.say(mutate, action="update", id=one, status="closed")
    talk.say(mutate, action="update", id=one)
    talk.say(mutate, action="close", id=one, reason="won't fix", summary="Not needed.")
    talk.say(mutate, action="update", id=one, status="open")
    assert talk.text() == snapshot


def test_refusals_say_what_to_do(desk: Desk, snapshot: SnapshotAssertion) -> None:
    talk = Talk(desk)
    query, mutate = desk.first.query, desk.first.mutate
    one = desk.create("One")
    desk.create("Two")
    talk.say(query)
    talk.say(query, action="blocked")
    talk.say(query, action="show")
    talk.say(query, action="show", id="t-zzzz")
    talk.say(query, action="search")
    talk.say(query, action="search", query="x", includeMessages=True)
    talk.say(query, action="list", status="done")
    talk.say(query, action="ready", limit="many")
    talk.say(mutate, action="create")
    talk.say(mutate, action="create", title="x" * 501)
    talk.say(mutate, action="create", title="x", priority=7)
    talk.say(mutate, action="create", title="x", parent="t-none")
    talk.say(mutate, action="close", id=one)
    talk.say(mutate, action="close", id=one, reason="bored", summary="x")
    talk.say(mutate, action="dep", taskId=one)
    talk.say(mutate, action="link", taskId=one, messageId="@4")
    talk.say(mutate, action="update_context", content="x")
    assert talk.text() == snapshot


@pytest.mark.parametrize("action", ["create", "claim", "close", "dep", "link", "update"])
def test_what_an_error_asks_for_is_declared(desk: Desk, action: str) -> None:
    told = said(desk.first.mutate.run, action=action)
    (example,) = re.findall(r"{.*}", told)
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    (declared,) = (t["parameters"]["properties"] for t in tools if t["name"] == "task-mutate")
    assert {*json.loads(example), *re.findall(r"needs (\w+)", told)} <= declared.keys()


def test_a_task_without_a_title_is_asked_for_that_first(desk: Desk) -> None:
    assert "needs title" in said(desk.first.mutate.run, action="create", priority=9)


def test_claims_end(desk: Desk, snapshot: SnapshotAssertion) -> None:
    talk = Talk(desk)
    one = desk.create("One")
    talk.say(desk.first.mutate, action="claim", id=one)
    desk.clock.now += 3 * HOUR_MS
    talk.say(desk.first.query, action="show", id=one)
    talk.say(desk.second.query, action="ready")
    talk.say(desk.second.mutate, action="claim", id=one)
    talk.say(desk.first.mutate, action="close", id=one, summary="x")
    talk.say(desk.second.mutate, action="claim", id=one)
    desk.second.active.end_leases()
    talk.say(desk.first.mutate, action="claim", id=one)
    assert talk.text() == snapshot


def test_closed_tasks_decay(desk: Desk, snapshot: SnapshotAssertion) -> None:
    talk = Talk(desk)
    one = desk.create("One", description="A long story.\nTold in full.")
    desk.first.mutate.run({"action": "close", "id": one, "summary": "It is done."})
    for days in (0, 7, 23):
        desk.clock.now += days * DAY_MS
        talk.say(desk.first.query, action="show", id=one)
        talk.say(desk.first.query, action="list")
    talk.say(desk.first.query, action="show", id=one, full=True)
    assert talk.text() == snapshot


def test_what_others_bring(desk: Desk, snapshot: SnapshotAssertion) -> None:
    def resolve(text: str) -> TaskLink:
        handle, _, part = text.partition(" ")
        if handle != "@41":
            raise ToolError(f"{handle} is no handle of this session.")
        return TaskLink(object="chat:x", part=part, label=handle)

    talk = Talk(desk)
    one = desk.create("Fix the login")
    tasks = SessionTasks(
        TaskWork(desk.stores[1], "project", Actor(SECOND), desk.clock),
        SECOND,
        resolve_link=resolve,
        update_context=lambda content, section, scope: f"{scope} {section}: {content}",
        search_messages=lambda query, limit: f"messages about {query}, {limit} at most",
    )
    talk.say(tasks.mutate, action="link", taskId=one, messageId="@41 turn 7")
    talk.say(tasks.mutate, action="link", id=one, handle="@12")
    talk.say(tasks.mutate, action="update_context", content="Vitest", section="Stack")
    talk.say(tasks.query, action="search", query="login", includeMessages="true")
    talk.say(tasks.query, action="show", id=one)
    assert talk.text() == snapshot


def test_the_head_names_the_active_task(desk: Desk, snapshot: SnapshotAssertion) -> None:
    one = desk.create("Fix the login", description="Redirects loop.\n" * 40)
    assert desk.first.active.text(500) == ""
    desk.first.mutate.run({"action": "claim", "id": one})
    assert desk.first.active.text(500) == snapshot
    assert desk.first.active.text(10) == ""
    assert len(desk.first.active.text(100)) <= 100


def test_what_a_person_changes_in_a_session_is_a_humans_doing(desk: Desk) -> None:
    text = desk.first.user_mutate.run({"action": "create", "title": "Ask for it"})
    task = desk.first.work.find(text.split()[1])
    assert task.provenance.generator == "human"
    desk.first.user_mutate.run({"action": "claim", "id": task.id})
    assert desk.first.active.id() == task.id
    desk.first.mutate.run({"action": "close", "id": task.id, "summary": "Done."})
    generators = [h.fields["provenance"]["generator"] for h in desk.stores[0].history(task.id)]
    assert generators == ["human", "human", "agent"]


def test_only_work_renews_a_lease(desk: Desk) -> None:
    desk.first.mutate.run({"action": "claim", "id": desk.create("Fix it")})
    active, store = desk.first.active, desk.stores[0]
    id = active.id()
    assert id is not None
    (claimed,) = [version for version in store.history(id) if version.fields["lease_ms"]]

    desk.clock.now += LEASE_MS // 4
    active.keep_lease()
    desk.clock.now += LEASE_MS // 2
    assert active.id() == id
    assert store.history(id)[-1] == claimed

    active.keep_lease()
    assert store.history(id)[-1].fields["lease_ms"] == desk.clock.now + LEASE_MS


def test_what_blocks_a_task_is_named_once(desk: Desk) -> None:
    first = desk.create("First")
    twice = desk.create("Second", dependsOn=[first, first])
    assert said(desk.first.query.run, action="show", id=twice).count(first) == 1
    desk.create("Part", parent=(whole := desk.create("Whole", type="epic")))
    part = desk.first.work.find(desk.create("Another part", parent=whole))
    said(desk.first.mutate.run, action="dep", id=whole, dependsOn=part.id)
    listed = said(desk.first.query.run, action="list")
    for line in listed.splitlines():
        waits = line.partition("(waits for ")[2].rstrip(")").split(", ")
        assert len(waits) == len(set(waits)), line
    assert f"(waits for {first})" in listed


def test_metadata_is_written_and_shown(desk: Desk) -> None:
    one = desk.create("One", metadata={"ticket": "GH-7"})
    assert '\nmetadata: {"ticket": "GH-7"}' in said(desk.first.query.run, action="show", id=one)
    said(desk.first.mutate.run, action="update", id=one, metadata='{"ticket": "GH-8"}')
    assert '{"ticket": "GH-8"}' in said(desk.first.query.run, action="show", id=one)
    told = said(desk.first.mutate.run, action="update", id=one, metadata="ticket")
    assert told == "ERROR metadata is a JSON object, not 'ticket'."


def test_a_list_that_is_cut_names_what_brings_the_rest(desk: Desk) -> None:
    for number in range(6):
        desk.create(f"Login {number}")
    for asked in ({"action": "ready"}, {"action": "list"}, {"action": "search", "query": "login"}):
        text = said(desk.first.query.run, **asked, limit=2)
        assert "and 4 more: raise limit (at most 100)" in text
        assert "more" not in said(desk.first.query.run, **asked, limit=6)


def test_the_claim_before_is_active_again_and_all_claims_are_renewed(desk: Desk) -> None:
    first, second = desk.create("First"), desk.create("Second")
    for name in (first, second):
        said(desk.first.mutate.run, action="claim", id=name)
    find, active = desk.first.work.find, desk.first.active
    desk.clock.now += LEASE_MS * 3 // 4
    active.keep_lease()
    desk.first.work.board.refresh()
    ends = [find(name).lease_ms for name in (first, second)]
    assert min(end or 0 for end in ends) > desk.clock.now + LEASE_MS // 2
    said(desk.first.mutate.run, action="close", id=second, summary="Done")
    assert active.id() == find(first).id
    said(desk.first.mutate.run, action="update", id=first, status="open")
    assert active.id() is None


def test_what_can_be_said_in_few_ways_is_declared_so() -> None:
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    (declared,) = (t["parameters"]["properties"] for t in tools if t["name"] == "task-mutate")
    assert declared["type"]["enum"] == [*TYPES, *RELATIONS]
    assert declared["reason"]["enum"] == list(REASONS)
    assert declared["scope"]["enum"] == list(SCOPES)
