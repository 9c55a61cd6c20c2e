"""Every page, in both its forms, over a store that an engine has written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foredeck.config import Config
from foredeck.model.documents import Provenance, SessionDocument, chat_id, session_object_id
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch
from foredeck.tasks.board import Actor
from foredeck.tasks.work import NewTask, TaskWork
from foredeck.ui.pages import link
from foredeck.ui.views.sessions import sessions_page

from .conftest import Served

TIDY = "0199aaaa-tidy"


def _object(served: Served, name: str, type: str = "file") -> str:
    listed: Any = served.value(f"/objects.json?type={type}&contains={name}")["objects"]
    (found,) = listed
    return str(found["object"])


def test_sessions_are_listed_with_what_they_have_cost(served: Served) -> None:
    value: Any = served.value("/sessions.json")
    rows = {row["session"]: row for row in value["sessions"]}
    assert rows[TIDY]["calls"] == 3
    assert rows[TIDY]["figure"]["plain_pi"] >= 0
    assert value["agents"] == [{"value": "pi", "count": 2}]
    assert f'href="/sessions/{TIDY}"' in served.page("/sessions")
    assert served.value("/sessions.json?folder=/nowhere")["sessions"] == []


def test_a_session_is_a_timeline_of_prompts_and_the_same_as_a_table(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}.json")
    calls = value["calls_shown"]
    assert [call["call"] for call in calls] == [1, 2, 3]
    # What a prompt is made of is all of what was sent.
    assert [sum(call["chars"].values()) for call in calls] == [c["chars_sent"] for c in calls]
    assert calls[1]["chars"]["results"] > calls[0]["chars"]["results"] == 0
    html = served.page(f"/sessions/{TIDY}")
    assert html.count("<title>call ") == 3
    assert html.count('<tr id="call-') == 3


def test_a_session_goes_by_the_start_of_its_id(served: Served) -> None:
    assert served.value("/sessions/0199aaaa.json")["session"] == TIDY


def test_a_prompt_is_shown_as_the_model_saw_it(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}/calls/2.json")
    shown = [block["text"] for message in value["messages"] for block in message["blocks"]]
    assert any("def spring_tide():" in text for text in shown)
    assert [row["form"] for row in value["rendered"]] == ["full"] * 3
    assert "def spring_tide():" in served.page(f"/sessions/{TIDY}/calls/2")


def test_what_a_call_changed_in_the_prompt(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}/calls/2/changes.json")
    assert value["base"] == 1
    assert value["same"] == 1
    assert {change["what"] for change in value["changes"]} == {"new"}
    first: Any = served.value(f"/sessions/{TIDY}/calls/1/changes.json")
    assert first["base"] is None
    assert len(first["changes"]) == 1


def test_where_a_text_stood(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}/trace.json?text=spring_tide")
    assert [span["state"] for span in value["spans"]] == ["never seen", "in view"]
    assert "never seen" in served.page(f"/sessions/{TIDY}/trace?text=spring_tide")
    assert "No call." not in served.page(f"/sessions/{TIDY}/trace")


def test_an_object_has_its_versions_and_what_changed_between_them(served: Served) -> None:
    id = _object(served, "tide.py")
    value: Any = served.value(f"/objects/{id}.json")
    assert value["content"] == "def spring_tide():\n    return 2\n"
    assert [each["version"] for each in value["versions"]] == [1, 2]
    assert value["sessions"][0]["session"] == TIDY
    older: Any = served.value(f"/objects/{id}.json?version=1")
    assert older["content"].endswith("return 1\n")
    diff: Any = served.value(f"/objects/{id}/changes.json")
    assert [line for line in diff["lines"] if line[0] in "+-"] == [
        "-    return 1",
        "+    return 2",
    ]


def test_each_line_leads_to_the_call_that_wrote_it(served: Served) -> None:
    id = _object(served, "tide.py")
    lines: Any = served.value(f"/objects/{id}/blame.json")["lines"]
    assert [(line["by"], line["tool"]) for line in lines] == [("person", None), ("agent", "write")]
    assert f'href="/sessions/{TIDY}/calls/' in served.page(f"/objects/{id}/blame")


def test_notes_with_tags_and_links_that_lead_nowhere(served: Served) -> None:
    value: Any = served.value("/notes.json")
    assert {"Plan", "Tides"} <= {note["title"] for note in value["notes"]}
    assert "Nowhere" in {each["target"] for each in value["broken"]}
    tagged: Any = served.value("/notes.json?tag=sea")
    assert [note["title"] for note in tagged["notes"]] == ["Plan"]


def test_the_graph_around_a_note(served: Served) -> None:
    id = _object(served, "plan.md")
    value: Any = served.value(f"/objects/{id}/graph.json")
    titles = {node["title"]: node["distance"] for node in value["nodes"]}
    assert (titles["Plan"], titles["Tides"]) == (0, 1)
    html = served.page(f"/objects/{id}/graph")
    assert '<path d="M' in html
    assert "The same as a table" in html


def test_the_overview_sums_what_was_spent_and_what_failed(served: Served) -> None:
    value: Any = served.value("/overview.json")
    listed: Any = served.value("/sessions.json")["sessions"]
    assert value["seen"] == 2
    figures = [each["figure"]["foredeck"] for each in listed]
    assert value["figure"]["foredeck"] == pytest.approx(sum(figures), abs=2)
    assert sum(day["cost"] for day in value["days"]) == pytest.approx(sum(figures), abs=2)
    assert value["projects"][0]["sessions"] == 2
    assert value["failures"]["total"] == 0
    assert {each["name"] for each in value["files"]} >= {"tide.py", "plan.md"}
    assert "Spent by day" in served.page("/overview")
    assert served.client.get("/").url.path == "/overview"


def test_following_leads_to_the_session_that_was_active_last(served: Served) -> None:
    value: Any = served.value("/follow.json")
    assert (value["session"], value["calls"]) == ("0199bbbb-hostile", 3)
    assert f'content="0;url={value["address"]}"' in served.page("/follow")
    assert "renews itself at each call" in served.page(value["address"])


def test_files_are_a_tree_of_folders(served: Served) -> None:
    tree: Any = served.value("/objects.json?type=file")["tree"]
    ((_, folder),) = tree["folders"].items()
    assert [each["short"] for each in folder["files"]] == ["evil<b>.md", "tide.py"]
    assert [each["short"] for each in folder["folders"]["notes"]["files"]] == [
        "plan.md",
        "tides.md",
    ]
    assert "<summary>notes/ " in served.page("/objects?type=file")
    assert served.value("/objects.json?type=file&view=list")["tree"] is None


def test_code_of_files_is_coloured(served: Served) -> None:
    html = served.page(f"/objects/{_object(served, 'tide.py')}")
    assert '<span class="c-k">def</span>' in html


def test_search_finds_and_jumps(served: Served) -> None:
    value: Any = served.value("/search.json?q=spring_tide")
    assert value["total"] >= 1
    hits = [hit for group in value["groups"] for hit in group["hits"]]
    addresses = {hit["type"]: hit["address"] for hit in reversed(hits)}
    files: Any = served.value("/search.json?q=spring_tide&type=file")
    assert files["groups"][0]["hits"][0]["address"].startswith("/objects/")
    assert addresses["toolcall"].startswith(f"/sessions/{TIDY}/turns?message=")
    place, _, anchor = addresses["toolcall"].partition("#")
    opened = served.page(place)
    assert f'<li id="{anchor}" class="step here">' in opened
    assert "<mark>spring_tide</mark>" in opened
    assert "<mark>spring_tide</mark>" in served.page("/search?q=spring_tide")
    jump: Any = served.value(f"/search.json?q={TIDY}")["jump"]
    assert jump["address"] == f"/sessions/{TIDY}"


def test_tasks_stand_on_a_board(served: Served) -> None:
    store = open_store(Config(home=served.home))
    work = TaskWork(store, "harbour", Actor(None, "someone"))
    work.board.refresh()
    first = work.create(NewTask("Chart the tides"))
    second = work.create(NewTask("Sail", blocked_by=(first.id,)))
    store.close()
    value: Any = served.value("/tasks.json")
    columns = {column["name"]: column["tasks"] for column in value["columns"]}
    assert [task["title"] for task in columns["Ready"]] == ["Chart the tides"]
    assert [task["waits_for"][0]["id"] for task in columns["Waiting"]] == [first.id]
    assert "Chart the tides" in served.page("/tasks")
    one: Any = served.value(f"/tasks/{first.id}.json")
    assert [task["id"] for task in one["holds_up"]] == [second.id]
    served.page(f"/tasks/{first.id}")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/sessions/none-such", 404),
        (f"/sessions/{TIDY}/calls/99", 404),
        ("/objects/none-such", 404),
        ("/objects?type=none", 404),
        ("/sessions?page=x", 400),
        ("/objects/none/changes?old=-1", 400),
        ("/tasks/none", 404),
        ("/tasks?project=none", 404),
    ],
)
def test_what_is_not_there_is_said(served: Served, path: str, status: int) -> None:
    answer = served.client.get(path)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text
    bare, _, query = path.partition("?")
    twin = served.client.get(f"{bare}.json" + (f"?{query}" if query else ""))
    assert twin.status_code == status
    assert twin.json()["error"]


def test_names_with_slashes_and_endings_are_names(served: Served) -> None:
    listed: Any = served.value("/objects.json?contains=tide.py")["objects"]
    path = link("objects", listed[0]["name"])
    assert served.value(f"{path}.json")["object"] == listed[0]["object"]
    answer = served.client.get(link("objects", "package.json"))
    assert (answer.status_code, answer.headers["content-type"][:9]) == (404, "text/html")
    assert "package.json" in answer.text


def test_worktrees_are_listed_with_their_project(tmp_path: Path) -> None:
    config = Config(home=tmp_path)
    folders = {"a": "/p/app", "b": "/p/app/.worktrees/fix", "c": "/p/other"}
    with closing(open_store(config)) as store:
        documents = [
            SessionDocument(
                id=session_object_id(name),
                session_id=name,
                chat_ref=chat_id(name),
                system_prompt_ref="",
                cwd=folder,
                provenance=Provenance(origin="test", generator="system"),
            ).seal()
            for name, folder in folders.items()
        ]
        store.commit(Batch(puts=[*documents]))
        for folder in ("/p/app", "/p/app/.worktrees/fix"):
            data = sessions_page(store, folder).data
            assert {row["session"] for row in data["sessions"]} == {"a", "b"}
            assert {row["folder_name"] for row in data["sessions"]} == {"app"}
        assert data["folders"] == [
            {"value": "/p/app", "count": 2},
            {"value": "/p/other", "count": 1},
        ]
