"""Private sessions: what is said in one is its own, and that of its forks and subagents."""

from __future__ import annotations

from pathlib import Path

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, command_text, finish, go_on, use
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.engine.opened import ALREADY, PRIVATE, TOO_LATE
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandParams, SessionOpenParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import session_object_id, user_object_id
from foredeck.model.identity import hash_text
from foredeck.store.sessions import is_private, private_sessions
from foredeck.store.store import Store
from foredeck.tasks.tools import PRIVATE as PRIVATE_TASKS


def opening(session: str, **more: object) -> SessionOpenParams:
    return SimulatedHost(session).opening("/repo", "new").model_copy(update=more)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(Config(home=tmp_path))


def store_of(engine: Engine) -> Store:
    return engine.opened.session.objects.store


def go_private(engine: Engine, session: str) -> str:
    return engine.command(CommandParams(session=session, name="private", args=""))["text"]


def test_the_flag_makes_new_sessions_private_from_their_first_moment(engine: Engine) -> None:
    engine.open_session(opening("s", private=True))
    assert is_private(store_of(engine), "s")
    engine.open_session(opening("open"))
    assert not is_private(store_of(engine), "open")
    assert private_sessions(store_of(engine)) == ("s",)


def test_the_host_is_told_at_once_and_again_when_it_opens_the_session(engine: Engine) -> None:
    assert "private" not in engine.open_session(opening("s"))
    answer = engine.command(CommandParams(session="s", name="private", args=""))
    assert (answer["text"], answer["private"]) == (PRIVATE, True)
    assert engine.open_session(opening("s"))["private"] is True


@pytest.mark.parametrize("link", ["parent", "started_by"])
def test_its_forks_and_subagents_are_private(engine: Engine, link: str) -> None:
    engine.open_session(opening("s", private=True))
    engine.open_session(opening("t", **{link: "s"}))
    assert is_private(store_of(engine), "t")


def test_the_command_holds_before_the_first_message(engine: Engine) -> None:
    engine.open_session(opening("s"))
    assert go_private(engine, "s") == PRIVATE
    assert go_private(engine, "s") == ALREADY
    engine.close()
    assert len(private_sessions_of(engine)) == 1


def private_sessions_of(engine: Engine) -> tuple[str, ...]:
    again = Engine(engine._config)
    again.open_session(opening("other"))
    found = private_sessions(store_of(again))
    again.close()
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"action": "create", "title": "Move the server"},
        {"action": "close", "id": "{task}", "summary": "The server has moved"},
        {"action": "update", "id": "{task}", "title": "Move the server"},
        {"action": "update_context", "content": "The server moves"},
    ],
)
def test_its_agent_writes_no_task_and_no_page_of_the_project(
    new_host: NewHost, tmp_path: Path, change: dict[str, str]
) -> None:
    host = new_host(cwd=str(tmp_path), disk=True, tools={"tasks": "on"})
    assert command_text(host, "private") == PRIVATE
    task = command_text(host, "tasks", "new Deploy").split()[1]
    ask(host)
    listed = command_text(host, "tasks")
    with pytest.raises(ToolError) as refused:
        host.tool("t1", "task-mutate", **{k: v.format(task=task) for k, v in change.items()})
    assert str(refused.value).startswith(PRIVATE_TASKS)
    assert command_text(host, "tasks") == listed
    own = {"action": "update_context", "scope": "Thread", "content": "The server moves"}
    assert "Kept in working memory" in host.tool("t2", "task-mutate", **own)["content"][0]["text"]
    claim = host.tool("t3", "task-mutate", action="claim", id=task)
    assert "the user closes it" in claim["content"][0]["text"]


def test_afterwards_it_is_too_late(new_host: NewHost) -> None:
    host = new_host(session="s").begin()
    with pytest.raises(ToolError) as refused:
        go_private(host.engine, "s")
    assert str(refused.value) == TOO_LATE
    head = host.store.head(session_object_id("s"))
    assert head.fields.get("private") is None


@pytest.fixture
def secret(new_host: NewHost) -> Host:
    """A private session that has said and run something, and is over."""
    host = new_host(session="secret")
    go_private(host.engine, "secret")
    ask(host, "The zebrafish key is under the mat.")
    use(host, "w1", "write", "ok", path="/repo/zebra.txt", content=lines(20))
    bash(host, "zebra-bash", lines(20, "zebrafish"))
    go_on(host, "Thanks.", answer="Noted: zebrafish.")
    host.close()
    return host


def searched(host: Host, scope: str = "all") -> str:
    arguments = {"query": "zebrafish", "scope": scope}
    text: str = host.tool("m1", "memory-search", **arguments)["content"][0]["text"]
    return text


def test_others_find_nothing_of_it(secret: Host, new_host: NewHost) -> None:
    del secret
    other = new_host(session="other").begin()

    for scope in ("all", "project"):
        assert "zebrafish key" not in searched(other, scope)
        assert "zebra-bash" not in searched(other, scope)
    for name in ("zebra-bash", "secret:@3", "session:secret", "chat:secret"):
        with pytest.raises(ToolError):
            other.tool("c1", "activate", id=name)
    assert "line 0" in str(other.tool("c2", "activate", id="/repo/zebra.txt"))


PASTED = lines(900, "zebrafish pasted")
PASTE = user_object_id(hash_text(PASTED))


def test_what_was_pasted_in_it_is_its_own(new_host: NewHost) -> None:
    secret = new_host(session="secret")
    go_private(secret.engine, "secret")
    ask(secret, PASTED)
    finish(secret)
    sent, entries = list(secret.messages), list(secret.entries)
    secret.close()

    other = new_host(session="other").begin()
    for name in (PASTE, PASTE[:-3]):
        with pytest.raises(ToolError):
            other.tool("c1", "activate", id=name)
    other.close()

    fork = new_host(session="fork", parent="secret")
    fork.messages, fork.entries = sent, entries
    ask(fork)
    assert "is above" in str(fork.tool("c2", "activate", id=PASTE))


def test_what_was_pasted_elsewhere_too_is_no_secret(new_host: NewHost) -> None:
    secret = new_host(session="secret")
    go_private(secret.engine, "secret")
    ask(secret, PASTED)
    secret.close()
    public = new_host(session="public").begin(PASTED)
    public.close()

    other = new_host(session="other").begin()
    assert "zebrafish pasted" in str(other.tool("c1", "activate", id=PASTE))


def test_it_finds_its_own(secret: Host, new_host: NewHost) -> None:
    fork = new_host(session="fork", parent="secret")
    fork.messages, fork.entries = list(secret.messages), list(secret.entries)
    ask(fork)
    assert "zebrafish" in searched(fork)
