"""Memory in the browser: what is remembered, where it comes from, and the user's acts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest

from foredeck.config import Config
from foredeck.memory.entry import caps_of
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.store.place import open_store

from .conftest import HOSTILE, Served


@contextmanager
def _memory(served: Served) -> Iterator[UserActs]:
    config = Config(home=served.home)
    with closing(open_store(config)) as store:
        yield UserActs(store, load_user(config.home), caps_of(config))


def _propose(served: Served, fact: str) -> str:
    new = NewMemory("decision", fact, session="0199", learned_from="model")
    with _memory(served) as memory:
        return memory.propose(new).entry.id


def _post(served: Served, act: str, *ids: str, origin: str | None = None) -> httpx.Response:
    headers = {"origin": served.base if origin is None else origin}
    return served.client.post("/memory", data={"act": act, "id": list(ids)}, headers=headers)


def _states(served: Served) -> dict[str, str]:
    value: Any = served.value("/memory.json")
    return {entry["fact"]: entry["state"] for entry in (*value["inbox"], *value["entries"])}


def test_the_inbox_is_emptied_in_bulk(editable: Served) -> None:
    ids = [_propose(editable, f"Fact {number}") for number in range(3)]
    assert set(_states(editable).values()) == {"proposed"}
    answer = _post(editable, "accept", *ids[:2])
    assert answer.status_code == 200
    assert "accept: 2" in answer.text
    assert _post(editable, "refuse", ids[2]).status_code == 200
    assert _states(editable) == {"Fact 0": "kept", "Fact 1": "kept"}
    assert _post(editable, "delete", ids[0]).status_code == 200
    assert "Fact 0" not in _states(editable)


def test_an_entry_shows_where_it_comes_from(editable: Served) -> None:
    id = _propose(editable, HOSTILE)
    value: Any = editable.value(f"/objects/{id}.json")
    assert [step["act"] for step in value["entry"]["steps"]][:1] == ["proposed"]
    html = editable.page(f"/objects/{id}")
    assert "<script>fetch" not in html
    assert "\x1b" not in html


def test_other_sites_change_nothing(editable: Served) -> None:
    id = _propose(editable, "Fact")
    assert _post(editable, "accept", id, origin="https://evil.example").status_code == 403
    assert editable.client.post("/memory", data={"act": "accept", "id": id}).status_code == 403
    stranger = httpx.post(
        f"{editable.base}/memory",
        data={"act": "accept", "id": id},
        headers={"origin": editable.base},
    )
    assert stranger.status_code == 403
    assert _states(editable) == {"Fact": "proposed"}


def test_what_cannot_be_done_is_said(editable: Served) -> None:
    id = _propose(editable, "Fact")
    assert _post(editable, "explode", id).status_code == 400
    assert _post(editable, "accept", "m-none").status_code == 400
    _post(editable, "accept", id)
    assert "not proposed" in _post(editable, "accept", id).text


def test_without_edit_nothing_is_changed(served: Served) -> None:
    answer = _post(served, "accept", "x")
    assert answer.status_code == 403
    assert "foredeck ui --edit" in answer.text
    assert "Nothing is remembered" in served.page("/memory")


def test_what_was_noted_of_a_session(served: Served) -> None:
    value: Any = served.value("/sessions/0199aaaa-tidy.json?view=noted")
    assert value["observations"] == []
    assert "Nothing was noted" in served.page("/sessions/0199aaaa-tidy?view=noted")


def test_a_finding_that_is_accepted_stays_derived(editable: Served) -> None:
    new = NewMemory("finding", "Tides are high", session="0199", learned_from="analysis")
    with _memory(editable) as acts:
        id = Memory(acts.store, acts.user, acts.caps).propose(new).entry.id
    assert _post(editable, "accept", id).status_code == 200
    with _memory(editable) as memory:
        assert memory.find(id).trust == "derived"


def test_what_can_be_done_is_done_and_the_rest_named(editable: Served) -> None:
    first, second = _propose(editable, "Fact 1"), _propose(editable, "Fact 2")
    _post(editable, "accept", first)
    answer = _post(editable, "accept", first, second)
    assert answer.status_code == 400
    assert "done to 1, not to 1" in answer.text
    assert _states(editable) == {"Fact 1": "kept", "Fact 2": "kept"}


def test_a_decision_is_pinned_in_its_project(editable: Served) -> None:
    fact = NewMemory("fact", "Use pytest", session="0199", project="harbour")
    with _memory(editable) as memory:
        id = memory.add(fact).entry.id
    assert _post(editable, "pin-decision", id).status_code == 200
    with _memory(editable) as memory:
        (pinned,) = memory.of_user("harbour")
        assert memory.of_user("elsewhere") == []
    assert (pinned.document.fact, pinned.document.scope) == ("Use pytest", "project")


def test_an_agent_may_not_open_it_to_change_memory(
    editable: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_SESSION", "0199")
    command = [sys.executable, "-m", "foredeck.cli.main", "ui", "--no-open", "--edit"]
    ended = subprocess.run(
        [*command, "--port", "0", "--home", str(editable.home)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""


def test_entries_are_chosen_by_tag_and_say_what_they_were_promoted_from(editable: Served) -> None:
    new = NewMemory("finding", "Osaka sold most", session="0199", tags=("sales",))
    with _memory(editable) as memory:
        finding = memory.add(new).entry
        memory.add(NewMemory("preference", "Tabs"))
        memory.pin(finding.id, "preference")
        promoted = f"promoted from finding {memory.name(finding.id)}"
    value: Any = editable.value("/memory.json?tag=sales")
    assert [entry["fact"] for entry in value["entries"]] == ["Osaka sold most"] * 2
    html = editable.page("/memory?tag=sales")
    assert promoted in html
    assert "<option selected>sales</option>" in html
    assert "Tabs" not in html
