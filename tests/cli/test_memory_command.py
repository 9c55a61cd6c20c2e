"""`foredeck memory`: what the user does with what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.memory.keeping import Memory
from foredeck.memory.trust import User, load_user
from foredeck.memory.user_acts import UserActs
from foredeck.model.documents import Provenance, ToolcallDocument, chat_id
from foredeck.store.protocol import Batch
from foredeck.store.store import open_sqlite
from memory.desk import OWN, Table, literal, new

Told = Callable[..., Any]


@pytest.fixture
def project(project: Path) -> Path:
    (project / "a.py").write_text("one = 1\n")
    return project


@pytest.fixture
def told(project: Path, foredeck: Foredeck) -> Told:
    """Runs an action; what it has printed as JSON."""
    del project

    def run(*arguments: str) -> Any:
        return foredeck.json("memory", *arguments)

    return run


def learned(
    tmp_path: Path,
    fact: str = "The user prefers tabs",
    *,
    proposed: bool = False,
    tags: tuple[str, ...] = (),
) -> str:
    """Something that a session has learned; its name."""
    with closing(open_sqlite(tmp_path / "home" / "foredeck.db")) as store:
        Table(store)
        memory = Memory(store, load_user(tmp_path / "home"))
        act = memory.propose if proposed else memory.add
        kept = act(literal(fact) if proposed else new("one is 1", tags=tags)).entry
        return memory.name(kept.id)


def test_what_is_added_is_the_users_word(told: Told) -> None:
    added = told("add", "Tests use pytest", "--ground", "a.py")
    assert (added["trust"], added["category"], added["scope"]) == (
        *("user-stated", "preference"),
        "everywhere",
    )
    assert [entry["fact"] for entry in told("list")["entries"]] == ["Tests use pytest"]
    assert told("show", added["name"])["moved"] == []


def test_what_somebody_else_kept_with_a_session_is_found_and_only_purged(
    told: Told, tmp_path: Path, foredeck: Foredeck
) -> None:
    with closing(open_sqlite(tmp_path / "home" / "foredeck.db")) as store:
        Table(store)
        theirs = Memory(store, User(b"s" * 32)).add(new("one is 1")).entry
    listed = told("list", "--all")["entries"]
    assert [(entry["id"], entry["trust"]) for entry in listed] == [(theirs.id, "derived")]
    name = listed[0]["name"]
    assert told("show", name)["fact"] == "one is 1"
    assert told("audit", name)["steps"]
    assert "Say which entry" in foredeck("memory", "delete", "", "--yes", code=4)
    assert "`foredeck purge` removes it" in foredeck("memory", "delete", name, "--yes", code=2)
    foredeck("purge", name, "--yes")
    assert told("list", "--all")["entries"] == []


def test_ground_that_changes_is_shown_until_it_is_confirmed(told: Told, project: Path) -> None:
    name = told("add", "one is 1", "--ground", "a.py")["name"]
    (project / "a.py").write_text("one = 2\n")

    assert told("show", name)["moved"] == [str(project / "a.py")]
    assert told("confirm", name)["moved"] == []


def test_a_decision_holds_in_its_project_until_it_is_widened(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    name = told("add", "We use DuckDB", "--category", "decision")["name"]
    (tmp_path / "other").mkdir()
    assert "in the project repo\n" in foredeck("memory", "show", name)

    monkeypatch.chdir(tmp_path / "other")
    assert told("list")["entries"] == []
    assert told("edit", name, "--everywhere")["scope"] == "everywhere"
    assert len(told("list")["entries"]) == 1


def test_proposals_are_accepted_or_refused(told: Told, tmp_path: Path) -> None:
    one, other = (learned(tmp_path, fact, proposed=True) for fact in ("Tabs", "Spaces"))

    assert len(told("list", "--proposed")["entries"]) == 2
    (kept,) = told("accept", one, "--text", "Tabs it is")["entries"]
    assert (kept["trust"], kept["fact"]) == ("user-stated", "Tabs it is")
    assert told("refuse", other)["entries"][0]["state"] == "refused"
    assert [entry["name"] for entry in told("list")["entries"]] == [one]


def test_an_entry_of_a_session_is_pinned_and_deleted_with_what_came_of_it(
    told: Told, tmp_path: Path
) -> None:
    name = learned(tmp_path, tags=("sales",))
    assert [e["name"] for e in told("list", "--session", OWN)["entries"]] == [name]

    pinned = told("pin", name, "--category", "decision")
    assert (pinned["trust"], pinned["scope"]) == ("user-stated", "project")
    assert pinned["promoted_from"] == f"session entry {name}"
    assert [e["name"] for e in told("list", "--tag", "sales")["entries"]] == [pinned["name"]]
    assert told("list", "--tag", "other")["entries"] == []
    gone = told("delete", name, "--yes")["entries"]
    assert {entry["name"] for entry in gone} == {name, pinned["name"]}
    assert told("list")["entries"] == []
    assert {entry["state"] for entry in told("list", "--all")["entries"]} == {"deleted"}


def test_a_finding_has_data_behind_it(told: Told, tmp_path: Path, foredeck: Foredeck) -> None:
    learned(tmp_path)
    adding = ["add", "Osaka sold 50 times as much", "--category", "finding", "--session", OWN]
    assert "no data was loaded in that session" in foredeck("memory", *adding, code=2)

    call = ToolcallDocument(
        id="toolu_1",
        **{"tool": "query-sql", "chat_ref": chat_id(OWN)},
        provenance=Provenance(origin=OWN, generator="system"),
    )
    with closing(open_sqlite(tmp_path / "home" / "foredeck.db")) as store:
        store.commit(Batch(puts=[call.seal()]))
    assert told(*adding)["place"] == "findings"
    with closing(open_sqlite(tmp_path / "home" / "foredeck.db")) as store:
        acts = UserActs(store, load_user(tmp_path / "home"))
        acts.add(new("Kyoto sold none", category="finding", tags=("sales",)))
    (tagged,) = told("list", "--tag", "sales")["entries"]
    assert (tagged["place"], tagged["fact"]) == ("findings", "Kyoto sold none")


def test_what_is_demoted_belongs_to_a_session(told: Told, tmp_path: Path) -> None:
    learned(tmp_path)
    name = told("add", "Tabs")["name"]

    assert told("demote", name, "--session", OWN)["place"] == "session"
    assert told("list")["entries"] == []


def test_an_audit_leads_to_the_words(told: Told, tmp_path: Path) -> None:
    pinned = told("pin", learned(tmp_path), "--category", "preference")
    steps = told("audit", pinned["name"])["steps"]

    assert [step["act"] for step in steps] == ["pinned", "added", "said by the user"]
    assert steps[-1]["says"] == f"I prefer tabs, in {OWN}"
    assert len(steps[-1]["bytes"]) == 64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", " "], "the text is empty"),
        (["add", "x", "--category", "fact"], "belongs to a session: name it with --session."),
        (
            ["add", "x", "--ground", "gone.py"],
            "no file that can be read, so nothing can rest on it.",
        ),
        (["delete", "{}"], "confirm with --yes"),
        (["edit", "{}"], "nothing to change"),
        (["demote", "{}"], "name the one that it belongs to"),
        (["accept", "{}"], "not proposed"),
        (["pin", "{}"], "which category"),
    ],
)
def test_refusals(told: Told, arguments: list[str], said: str, foredeck: Foredeck) -> None:
    name = told("add", "Tabs")["name"]

    assert said in foredeck("memory", *(argument.format(name) for argument in arguments), code=2)


def test_what_is_not_there_is_not_found(told: Told, foredeck: Foredeck) -> None:
    told("add", "Tabs")
    assert "There is no entry 'm-zzzz'" in foredeck("memory", "show", "m-zzzz", code=4)


@pytest.mark.parametrize(
    "arguments",
    [
        ["memory", "add", "Obey me"],
        *(["memory", verb, "{}"] for verb in ("accept", "refuse", "confirm", "demote")),
        ["memory", "edit", "{}", "Obey me"],
        ["memory", "pin", "{}", "--category", "preference"],
        ["memory", "delete", "{}", "--yes"],
        ["purge", "{}", "--yes"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_what_an_agent_runs_is_no_act_of_the_users(
    told: Told,
    tmp_path: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    foredeck: Foredeck,
) -> None:
    name = learned(tmp_path, proposed=True)
    before = told("list", "--all")
    monkeypatch.setenv("FOREDECK_SESSION", "an agent's")

    assert "is for you only" in foredeck(*[argument.format(name) for argument in arguments], code=2)
    assert told("list", "--all") == before


def test_what_a_lower_cap_hides_is_said(
    told: Told, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("Tests use pytest", "Types are checked", "Commits are small"):
        told("add", text)
    monkeypatch.setenv("FOREDECK_MEMORY__GLOBAL_ENTRIES", "2")
    out = foredeck("memory")
    assert "1 entry of yours is kept but not shown: memory.global_entries is lower" in out
    monkeypatch.delenv("FOREDECK_MEMORY__GLOBAL_ENTRIES")
    assert "Tests use pytest" in foredeck("memory")
