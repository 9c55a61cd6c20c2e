"""Memory in the browser: what is remembered, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from foredeck.config import Config
from foredeck.memory.entry import caps_of
from foredeck.memory.keeping import NewMemory
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


def test_an_entry_shows_where_it_comes_from(empty: Served) -> None:
    id = _propose(empty, HOSTILE)
    value: Any = empty.value(f"/objects/{id}.json")
    assert [step["act"] for step in value["entry"]["steps"]][:1] == ["proposed"]
    html = empty.page(f"/objects/{id}")
    assert "<script>fetch" not in html
    assert "\x1b" not in html


def test_what_was_noted_of_a_session(served: Served) -> None:
    value: Any = served.value("/sessions/0199aaaa-tidy.json?view=noted")
    assert value["observations"] == []
    assert "Nothing was noted" in served.page("/sessions/0199aaaa-tidy?view=noted")


def test_entries_are_chosen_by_tag_and_say_what_they_were_promoted_from(empty: Served) -> None:
    new = NewMemory("finding", "Osaka sold most", session="0199", tags=("sales",))
    with _memory(empty) as memory:
        finding = memory.add(new).entry
        memory.add(NewMemory("preference", "Tabs"))
        memory.pin(finding.id, "preference")
        promoted = f"promoted from finding {memory.name(finding.id)}"
    value: Any = empty.value("/memory.json?tag=sales")
    assert [entry["fact"] for entry in value["entries"]] == ["Osaka sold most"] * 2
    html = empty.page("/memory?tag=sales")
    assert promoted in html
    assert "<option selected>sales</option>" in html
    assert "Tabs" not in html
