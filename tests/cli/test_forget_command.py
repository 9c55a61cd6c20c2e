"""Erasing: what goes, what stays, and that it is gone from the file."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash
from file_agent import FileAgent
from foredeck.config import Config
from foredeck.context.state.session import CUT
from foredeck.model.records import ForgottenDocument, forgotten_id
from foredeck.store.sessions import documents_of
from foredeck.store.store import Store, open_sqlite
from foredeck_bench.crash.stores import prepared
from foredeck_xtdb.link import open_database
from foredeck_xtdb.local_copy import open_copy, remote_of
from store.xtdb_node import installed_home

SECRET = "a private word that only this session holds: xyzzy"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two sessions, a fork of the first, and text of every kind; all engines have ended."""
    home = tmp_path / "home"
    for session in ("first", "second"):
        host = Host(home, session=session)
        ask(host, f"{session}: {SECRET if session == 'first' else 'hello'}")
        bash(host, f"{session}-1", lines(30, f"output of {session}"))
        bash(host, f"{session}-2", lines(30, "what both have seen"))
        ask(host)
        host.close()
    return home


def bytes_in(home: Path) -> bytes:
    """Everything in the state folder."""
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_session_goes_and_the_others_stay(home: Path, foredeck: Foredeck) -> None:
    before = foredeck(home, "show", "second")
    told = foredeck.json(home, "forget", "first", "--yes")
    assert (told["session"], told["erased"]) == ("first", True)
    assert told["documents"] > 8
    assert told["blobs"] > 3
    assert foredeck(home, "show", "second") == before
    foredeck(home, "show", "first", code=4)
    foredeck(home, "forget", "first", "--yes", code=4)
    with_store = Host(home, session="second")
    store = with_store.store
    tombstone = store.get(forgotten_id("first"), ForgottenDocument)
    assert (tombstone.documents, tombstone.blobs) == (told["documents"], told["blobs"])
    assert not [
        h
        for kind in ("call", "turn", "member")
        for h in store.query(kind)
        if h.fields["session"] == "first"
    ]
    assert not store.query("toolcall", {"chat_ref": "chat:first"})
    with_store.close()


def test_several_go_at_once(home: Path, foredeck: Foredeck) -> None:
    told = foredeck.json(home, "forget", "first", "second", "--yes")["sessions"]
    assert [(plan["session"], plan["erased"]) for plan in told] == [
        ("first", True),
        ("second", True),
    ]
    host = Host(home, session="third")
    assert not [h for kind in ("session", "call", "toolcall") for h in host.store.query(kind)]
    host.close()
    foredeck(home, "forget", "second", "--yes", code=4)


def test_a_session_has_to_be_named(home: Path, foredeck: Foredeck) -> None:
    assert "which session?" in foredeck(home, "forget", "--yes", code=2)
    foredeck(home, "show", "first")


def test_a_dry_run_erases_nothing(home: Path, foredeck: Foredeck) -> None:
    before = bytes_in(home)
    assert "would go" in foredeck(home, "forget", "first", "--dry-run")
    assert bytes_in(home) == before


def test_without_a_yes_nothing_is_erased(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: PTH123, SIM115
    assert "--yes" in foredeck(home, "forget", "first", code=2)
    foredeck(home, "show", "first")


def test_texts_that_others_share_stay(home: Path, foredeck: Foredeck) -> None:
    foredeck(home, "forget", "first", "--yes")
    host = Host(home, session="second")
    store = host.store
    (shared,) = [h for h in store.query("toolcall") if h.id == "second-2"]
    assert store.blob(shared.fields["text_hash"]) == lines(30, "what both have seen").encode()
    host.close()


def test_the_text_is_gone_from_the_file(home: Path, foredeck: Foredeck) -> None:
    with closing(sqlite3.connect(home / "foredeck.db")) as db:
        stored = {
            bytes(hash): bytes(data) for hash, data in db.execute("SELECT hash, data FROM blob")
        }
    foredeck(home, "forget", "first", "--yes")
    with closing(sqlite3.connect(home / "foredeck.db")) as db:
        left = {bytes(hash) for (hash,) in db.execute("SELECT hash FROM blob")}
    erased = {data for hash, data in stored.items() if hash not in left}
    assert erased
    everything = bytes_in(home)
    assert not [data for data in erased if data[:64] in everything or data[-64:] in everything]


def test_a_fork_keeps_the_calls_that_it_continues(home: Path, foredeck: Foredeck) -> None:
    parent = Host(home, session="third")
    bash(parent, "t1", lines(30, "before the fork"))
    ask(parent)
    fork = parent.fork("fourth")
    bash(fork, "t2", lines(30, "after the fork"))
    fork.close()
    parent.close()
    before = foredeck(home, "show", "fourth")
    foredeck(home, "forget", "third", "--yes")
    assert foredeck(home, "show", "fourth") == before


def test_the_names_of_what_goes_go_too(home: Path, foredeck: Foredeck) -> None:
    for object, name in (("first-1", "early"), ("first-1", "mine"), ("second-1", "theirs")):
        foredeck(home, "name", object, name)
    foredeck(home, "forget", "first", "--yes")
    with closing(open_sqlite(Config(home=home).sqlite_file)) as store:
        assert [head.id for head in store.query("nickname")] == ["nickname:theirs"]


def test_a_forgotten_fork_takes_nothing_of_its_parent_along(home: Path, foredeck: Foredeck) -> None:
    parent = Host(home, session="third").begin()
    ids = ["chat:third", "system_prompt:third"]
    fork = parent.fork("fourth")
    ask(fork)
    fork.close()
    foredeck(home, "forget", "fourth", "--yes")
    assert parent.store.heads(ids).keys() == set(ids)
    parent.close()


def test_a_forgotten_session_can_begin_again(home: Path, foredeck: Foredeck) -> None:
    foredeck(home, "forget", "first", "--yes")
    host = Host(home, session="first")
    assert SECRET not in ask(host, "begin anew").text(0)
    assert host.state.chat.log.newest == 1
    host.close()


def test_a_session_that_is_open_stays(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    work = tmp_path / "work"
    work.mkdir()
    agent = FileAgent(home, work, "open")
    agent.answer()
    assert f"session open is open in Pi (process {os.getpid()})" in foredeck(
        home, "forget", "open", "--yes", code=2
    )
    foredeck(home, "forget", "open", "--dry-run")
    foredeck(home, "forget", "first", "--yes")
    agent.close()
    foredeck(home, "forget", "open", "--yes")


@pytest.fixture
def left_over(home: Path) -> Host:
    """A session that was erased while its engine was at work, and of which that has written more,
    as one did that could not know: its last call, without what that goes on from."""
    host = Host(home, session="first-left", checked=False)
    for number in range(4):
        bash(host, f"l{number}")
    host.close()
    with closing(open_sqlite(Config(home=home).sqlite_file)) as store:
        newest = {f"{type}:first-left:4" for type in ("call", "turn")} | {"chat:first-left", "l3"}
        store.erase(set(documents_of(store, "first-left")) - newest, [])
    return host


def test_what_is_left_of_a_session_is_named_and_erased(
    home: Path, left_over: Host, foredeck: Foredeck
) -> None:
    del left_over
    assert "earlier calls are missing of first-left" in foredeck(home, "doctor", code=None)
    foredeck(home, "forget", "first-left", "--yes")
    assert "first-left" not in foredeck(home, "doctor", code=None)


def test_what_is_left_of_a_session_begins_anew(home: Path, left_over: Host) -> None:
    """Which failed at each resume, for good."""
    again = Host(home, session="first-left", checked=False)
    again.messages, again.entries = list(left_over.messages), list(left_over.entries)
    assert again.state.inbox.user_messages == [CUT]
    assert ask(again, "Are you there?").call is not None
    bash(again, "l9")
    again.close()
    resumed = Host(home, session="first-left", checked=False)
    resumed.messages, resumed.entries = list(again.messages), list(again.entries)
    assert resumed.state.inbox.user_messages == []
    assert ask(resumed, "And now?").call is not None
    resumed.close()


def test_vacuum_gives_space_back(home: Path, foredeck: Foredeck) -> None:
    foredeck(home, "forget", "first", "--yes")
    told = foredeck.json(home, "doctor", "--vacuum")
    assert told["bytes_after"] < told["bytes_before"]
    foredeck(home, "show", "second")


def test_sessions_show_their_size(home: Path, foredeck: Foredeck) -> None:
    sizes = {
        s["session"]: s["size_bytes"] for s in foredeck.json(home, "sessions", "--size")["sessions"]
    }
    assert all(size > 1000 for size in sizes.values())
    assert "B  " in foredeck(home, "sessions", "--size")


@pytest.mark.usefixtures("runtime")
def test_a_session_goes_from_xtdb_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    with prepared(home, "xtdb", installed_home()):
        for session in ("first", "second"):
            host = Host(home, session=session, store="xtdb")
            bash(host, f"{session}-1", lines(30, f"output of {session}"))
            host.close()
        config = Config(home=home, store="xtdb")
        with closing(open_copy(config)) as store:
            remote_of(store).start()
            wait_until_delivered(store)
        assert foredeck.json(home, "forget", "first", "--yes")["erased"]
        with closing(open_database(config)) as database:
            assert not database.find("call", {"session": "first"})
            assert not database.history("first-1")
            assert database.find("call", {"session": "second"})
            assert database.history("second-1")
        foredeck(home, "show", "second")
        foredeck(home, "show", "first", code=4)


def wait_until_delivered(store: Store) -> None:
    """Until XTDB has everything; the test's timeout ends it."""
    while remote_of(store).backlog.entries:
        time.sleep(0.05)
