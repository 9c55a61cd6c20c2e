"""Every page, in both its forms, over a store that an engine has written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from foredeck.config import Config, load_config
from foredeck.lookup.reader import Reader
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch
from foredeck.tasks.board import Actor
from foredeck.tasks.work import NewTask, TaskWork
from foredeck_inspector.pages import Asked, link
from foredeck_inspector.views.overview import overview_page
from foredeck_inspector.work import Work
from store.documents import session_wrapper

from .conftest import Served

TIDY = "0199aaaa-tidy"


def _object(served: Served, name: str, type: str = "file") -> str:
    listed: Any = served.value(f"/search.json?type={type}&contains={name}")["objects"]
    (found,) = listed
    return str(found["object"])


def test_the_overview_lists_sessions_with_what_they_have_cost(served: Served) -> None:
    value: Any = served.value("/overview.json")
    assert {row["session"]: row for row in value["sessions"]}[TIDY]["calls"] == 3
    assert (value["agents"], value["seen"]) == (["pi"], 2)
    figures = [row["figure"]["foredeck"] for row in value["sessions"]]
    assert value["figure"]["foredeck"] == pytest.approx(sum(figures), abs=2)
    # No price is known of its model: tokens have a column of their own, and dollars none.
    assert sum(row["tokens"] for row in value["projects"]) == pytest.approx(sum(figures), abs=2)
    assert {row["cost"] for row in value["weeks"]} == {None}
    html = served.page("/overview")
    assert f'href="/sessions/{TIDY}"' in html
    assert ("Tokens, unpriced" in html, "Without foredeck" in html) == (True, False)
    assert served.value("/overview.json?project=/nowhere")["sessions"] == []
    assert served.client.get("/").url.path == "/overview"


def test_tables_are_sorted_and_taken_away(served: Served) -> None:
    def sorted_by(sort: str) -> list[int]:
        rows: Any = served.value(f"/sessions/{TIDY}.json?calls.sort={sort}&table=calls")
        return [row["sent"] for row in rows]

    sizes = sorted_by("sent")
    assert sizes == sorted(sizes)
    assert sorted_by("-sent") == sizes[::-1]
    assert 'aria-sort="descending"' in served.page(f"/sessions/{TIDY}?calls.sort=-sent")
    answer = served.client.get(f"/sessions/{TIDY}.csv?calls.sort=-sent")
    assert answer.headers["content-type"].startswith("text/csv")
    head, *lines = answer.text.splitlines()
    assert head.startswith("call,address,time_ms,did,")
    assert len(lines) == 3
    assert served.client.get("/memory.csv").status_code == 404
    for form in ("csv", "json"):
        for table in ("weeks", "projects", "sessions"):
            assert served.client.get(f"/overview.{form}?table={table}").status_code == 200
        assert served.client.get(f"/overview.{form}?table=none").status_code == 404


def test_calls_are_chosen_by_what_they_ran_and_by_failing(served: Served) -> None:
    def chosen(asked: str) -> list[int]:
        rows: Any = served.value(f"/sessions/{TIDY}.json?{asked}")["listed"]
        return [row["call"] for row in rows]

    assert chosen("tool=read") == [1]
    assert chosen("tool=none") == chosen("failed=1") == chosen("cost=1") == []
    assert "3 calls" in served.page(f"/sessions/{TIDY}")


def test_two_sessions_stand_side_by_side(served: Served) -> None:
    value: Any = served.value(f"/compare.json?left={TIDY}&right=0199bbbb")
    rows = {row["what"]: (row["left"], row["right"]) for row in value["listed"]}
    assert rows["calls"] == ("3", "3")
    assert served.page(f"/compare?left={TIDY}&right=0199bbbb").count('class="plot"') == 2
    assert 'role="alert"' in served.page(f"/compare?left={TIDY}&right=none-such")


def test_settings_say_where_they_come_from_and_what_is_to_be_done(served: Served) -> None:
    value: Any = served.value("/settings.json")
    assert {"key": "policy", "value": "adaptive", "origin": "default"} in value["settings"]
    assert {"home", "disk", "calibration"} <= {check["name"] for check in value["checks"]}
    assert "Settings and health" in served.page("/settings")


def test_a_session_is_a_chart_of_prompts_and_the_same_as_a_table(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}.json")
    calls = value["listed"]
    assert [call["call"] for call in calls] == [1, 2, 3]
    # What a prompt is made of is all of what was sent.
    for call in calls:
        assert sum(call["kinds"].values()) == pytest.approx(call["sent"], abs=3)
    assert calls[1]["kinds"]["results"] > calls[0]["kinds"]["results"] == 0
    assert [call["tools"] for call in calls] == [["read"], ["write"], []]
    assert served.page(f"/sessions/{TIDY}").count("<title>call ") == 3


def test_a_session_goes_by_the_start_of_its_id(served: Served) -> None:
    assert served.value("/sessions/0199aaaa.json")["session"] == TIDY


def test_a_prompt_is_shown_as_the_model_saw_it(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}/calls/2.json")
    shown = [block["text"] for message in value["messages"] for block in message["blocks"]]
    assert any("def spring_tide():" in text for text in shown)
    assert [row["form"] for row in value["written"]] == ["full"] * 3
    assert "def spring_tide():" in served.page(f"/sessions/{TIDY}/calls/2")


def test_what_a_call_changed_in_the_prompt(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}/calls/2.json")
    assert (value["base"], value["counts"]["same"]) == (1, 1)
    assert {message["state"] for message in value["messages"]} == {"same", "new"}
    first: Any = served.value(f"/sessions/{TIDY}/calls/1.json")
    assert (first["base"], first["counts"]["new"]) == (None, 1)
    back: Any = served.value(f"/sessions/{TIDY}/calls/1.json?base=2")
    assert back["counts"]["gone"] == value["counts"]["new"]


def test_where_a_text_stood(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}.json?text=spring_tide")
    assert [span["state"] for span in value["trace"]["spans"]] == ["never seen", "in view"]
    html = served.page(f"/sessions/{TIDY}?text=spring_tide")
    assert "never seen" in html
    assert 'class="s-in-view"' in html


def test_an_object_has_its_versions_and_what_changed_between_them(served: Served) -> None:
    id = _object(served, "tide.py")
    value: Any = served.value(f"/objects/{id}.json")
    assert value["content"] == "def spring_tide():\n    return 2\n"
    assert [each["version"] for each in value["versions"]] == [1, 2]
    assert value["sessions"][0]["session"] == TIDY
    older: Any = served.value(f"/objects/{id}.json?version=1")
    assert older["content"].endswith("return 1\n")
    changed: Any = served.value(f"/objects/{id}.json?base=1")
    assert [line for line in changed["difference"] if line[0] in "+-"] == [
        "-    return 1",
        "+    return 2",
    ]


def test_each_line_leads_to_the_call_that_wrote_it(served: Served) -> None:
    id = _object(served, "tide.py")
    lines: Any = served.value(f"/objects/{id}.json?lines=1")["blame"]
    assert [(line["by"], line["tool"]) for line in lines] == [("person", None), ("agent", "write")]
    assert f'href="/sessions/{TIDY}/calls/' in served.page(f"/objects/{id}?lines=1")


def test_notes_with_tags_and_links_that_lead_nowhere(served: Served) -> None:
    value: Any = served.value("/notes.json")
    assert {"Plan", "Tides"} <= {note["title"] for note in value["notes"]}
    assert "Nowhere" in {each["target"] for each in value["broken"]}
    tagged: Any = served.value("/notes.json?tag=sea")
    assert [note["title"] for note in tagged["notes"]] == ["Plan"]


def test_what_refers_to_a_note_is_listed(served: Served) -> None:
    id = _object(served, "plan.md")
    value: Any = served.value(f"/objects/{id}.json")
    assert {(row["title"], row["way"]) for row in value["references"]} >= {
        ("Tides", "to it"),
        ("Tides", "from it"),
    }


def test_following_leads_to_the_session_that_was_active_last(served: Served) -> None:
    value: Any = served.value("/follow.json")
    assert (value["session"], value["calls"]) == ("0199bbbb-hostile", 3)
    answer = served.client.get("/follow")
    assert answer.url.path == "/sessions/0199bbbb-hostile"
    assert "renews itself at each call" in answer.text


def test_files_are_a_tree_of_folders(served: Served) -> None:
    tree: Any = served.value("/search.json?type=file")["tree"]
    ((_, folder),) = tree["folders"].items()
    assert [each["short"] for each in folder["files"]] == ["evil<b>.md", "tide.py"]
    assert [each["short"] for each in folder["folders"]["notes"]["files"]] == [
        "plan.md",
        "tides.md",
    ]
    assert "<summary>notes/ " in served.page("/search?type=file")
    assert served.value("/search.json?type=file&view=list")["tree"] is None


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
    assert addresses["toolcall"].startswith(f"/sessions/{TIDY}?view=turns&message=")
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
    one: Any = served.value(f"/objects/{first.id}.json")["task"]
    assert [task["id"] for task in one["holds_up"]] == [second.id]
    assert "Holds up" in served.page(f"/objects/{first.id}")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/sessions/none-such", 404),
        (f"/sessions/{TIDY}/calls/99", 404),
        ("/objects/none-such", 404),
        (f"/sessions/{TIDY}?view=none", 404),
        (f"/sessions/{TIDY}/calls/1?base=x", 400),
        ("/objects/none?version=-1", 400),
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
    listed: Any = served.value("/search.json?contains=tide.py")["objects"]
    path = link("objects", listed[0]["name"])
    assert served.value(f"{path}.json")["object"] == listed[0]["object"]
    answer = served.client.get(link("objects", "package.json"))
    assert (answer.status_code, answer.headers["content-type"][:9]) == (404, "text/html")
    assert "package.json" in answer.text


def test_worktrees_are_listed_with_their_project(tmp_path: Path) -> None:
    config = Config(home=tmp_path)
    folders = {"a": "/p/app", "b": "/p/app/.worktrees/fix", "c": "/p/other"}
    with closing(open_store(config)) as store:
        store.commit(Batch([session_wrapper(name, cwd=folder) for name, folder in folders.items()]))
        reader = Reader(config)

        def overview(query: str) -> Any:
            request = Request({"type": "http", "query_string": query.encode()})
            return overview_page(Asked(request, reader, store, Work(reader), load_config())).data

        for folder in ("/p/app", "/p/app/.worktrees/fix"):
            rows = overview(f"project={folder}")["sessions"].rows
            assert {row["session"] for row in rows} == {"a", "b"}
            assert {row["project"] for row in rows} == {"app"}
        projects = overview("")["projects"].rows
        assert {(row["project"], row["sessions"]) for row in projects} == {("app", 2), ("other", 1)}
