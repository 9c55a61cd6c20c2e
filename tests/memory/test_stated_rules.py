"""A project whose user has stated forty rules: what the head of its next session keeps of them, and
how the rest is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from file_agent import FileAgent
from foredeck.hosts.protocol import ToolCallParams
from foredeck.memory.keeping import NewMemory
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.store.store import open_sqlite

NAMES = """
tabs spaces commits branches rebases pushes tags releases changelogs licences docstrings comments
names imports types exceptions logs prints sleeps retries timeouts queues caches locks threads
sockets ports hosts secrets tokens cookies headers routes schemas migrations indexes columns
fixtures mocks snapshots
"""
THINGS = NAMES.split()


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """A state folder in which forty rules are kept, the first the oldest; a working folder."""
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work, work / "snapshots"):
        folder.mkdir()
    store = open_sqlite(home / "foredeck.db")
    acts = UserActs(store, load_user(home))
    acts.add(NewMemory("preference", "Never force-push to a shared branch"))
    for thing in THINGS[1:]:
        acts.add(NewMemory("preference", f"Always ask the user before touching {thing}"))
    store.close()
    return home, work


@pytest.fixture
def agent(homes: tuple[Path, Path]) -> Iterator[FileAgent]:
    agent = FileAgent(*homes, "0199cccc-next")
    yield agent
    agent.close()


def search(agent: FileAgent, query: str) -> str:
    params = ToolCallParams(
        session=agent.session, id="c", tool="memory-search", input={"query": query, "limit": 1}
    )
    return agent.engine.tool_call(params)["text"]


def head_of(agent: FileAgent) -> str:
    """What stands before the chat after the first call."""
    agent.answer()
    head = agent.engine.opened.session.chat.branch.plan.head
    return str(head.blocks[0]["text"])


def rules_in(head: str) -> list[str]:
    return [line for line in head.splitlines() if line.startswith("- [user-stated]")]


def test_the_head_keeps_whole_rules_and_names_the_words_for_the_rest(agent: FileAgent) -> None:
    head = head_of(agent)
    shown = rules_in(head)
    assert len(head) <= 800
    assert len(shown) >= 4
    assert all(re.fullmatch(r"- \[user-stated\] (Always|Never) .*[a-z]", line) for line in shown)
    # What the project's files are about comes first, whatever its age.
    assert "snapshots" in shown[0]
    (rest,) = re.findall(r"\((\d+) left out; memory-search finds them by: (.*)\)", head)
    assert int(rest[0]) + len(shown) == len(THINGS)
    words = rest[1].split(", ")
    assert len(words) == int(rest[0]), "none vanishes without a word"
    assert "force-push" in words
    for word in words[::7]:
        assert word not in " ".join(shown)
        assert f"«{word}»" in search(agent, word)


def test_what_was_of_use_comes_before_what_is_new(homes: tuple[Path, Path]) -> None:
    store = open_sqlite(homes[0] / "foredeck.db")
    acts = UserActs(store, load_user(homes[0]), clock=lambda: 4_000_000_000_000)
    (pushed,) = [e for e in acts.of_user() if "force-push" in e.document.fact]
    acts.note_use([pushed.id])
    store.close()
    agent = FileAgent(*homes, "0199ffff-used")
    assert "Never force-push to a shared branch" in rules_in(head_of(agent))[1]
    agent.close()
