"""Rewinding: files are again what they were at a call, and nobody else's work is lost."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from file_agent import FileAgent as Agent
from foredeck.config import Config
from foredeck.store.place import open_store
from foredeck.timeline.rewinding import (
    CannotRewind,
    Rewound,
    apply,
    go_on,
    interrupted,
    plan_for_call,
    plan_for_undo,
)
from timeline.conftest import MakeAgent

Tree = dict[str, tuple[str, bytes, int]]


def tree(folder: Path) -> Tree:
    """Every file and link below a folder, with its bytes and permissions."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()), 0)
        elif path.is_file():
            found[name] = ("file", path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def rewind(agent: Agent, call: int, *, overwrite: bool = False) -> Rewound:
    """Rewind the files of an agent's session."""
    home = agent.home
    store = open_store(Config(home=home))
    try:
        plan = plan_for_call(store, agent.session, call)
        return apply(store, home, agent.session, plan, overwrite=overwrite)
    finally:
        store.close()


def undo(agent: Agent) -> Rewound:
    """Take the newest rewinding back."""
    store = open_store(Config(home=agent.home))
    try:
        return apply(store, agent.home, agent.session, plan_for_undo(store, agent.session))
    finally:
        store.close()


NAMES = ("a.txt", "b.txt", "sub/c.txt", "sub/d.py", "e")
COMMANDS = (
    *("printf {n} >> {a}", "rm -f {a}", "mkdir -p sub; test -e {a} && mv {a} {b}"),
    *("mkdir -p sub; test -e {a} && cp {a} {b}", "test -e {a} && chmod 755 {a}"),
    *("test -e {a} && chmod 600 {a}; printf 'x\\0{n}' > {b}", "mkdir -p sub; ln -sf e {a}"),
    *("sed -i s/1/one/ $(find . -type f)", "echo nothing"),
)


def act(agent: Agent, chosen: random.Random) -> None:
    """One tool call: an edit, a write, or a command that moves, deletes or changes files."""
    a, b = chosen.sample(NAMES, 2)
    kind, n = chosen.randrange(4), chosen.randrange(1000)
    path = agent.cwd / a
    if kind == 0:
        agent.call("write", path=a, content=f"{n}\n1 and 2\n")
    elif kind == 1 and path.is_file() and not path.is_symlink():
        text = path.read_bytes()
        if text.count(b"1 and 2") == 1:
            new = {"oldText": "1 and 2", "newText": f"1 and 2 and {n}"}
            agent.read(a)
            agent.call("edit", path=a, edits=[new])
    else:
        agent.call("bash", command=chosen.choice(COMMANDS).format(a=a, b=b, n=n))


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_session_can_be_rewound_to_each_of_its_calls(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    root = tmp_path_factory.mktemp("rewind")
    folder = root / "work"
    folder.mkdir()
    chosen = random.Random(seed)
    for name in chosen.sample(NAMES, 3):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"1 and 2\n{name}\n")
    agent = Agent(root / "home", folder)
    try:
        states = []
        for _ in range(6):
            agent.answer()
            states.append(tree(folder))
            for _ in range(chosen.randrange(1, 3)):
                act(agent, chosen)
        agent.answer()
        states.append(tree(folder))
        order = list(range(1, len(states) + 1))
        chosen.shuffle(order)
        for call in order:
            result = rewind(agent, call)
            assert (result.skipped, result.failed) == ([], {})
            assert tree(folder) == states[call - 1], f"call {call}"
        last, others = tree(folder), [n for n, s in enumerate(states, 1) if s != tree(folder)]
        if others:
            rewind(agent, others[0])
            assert undo(agent).failed == {}
        assert tree(folder) == last
    finally:
        agent.close()
        shutil.rmtree(root)


def test_what_a_person_changed_between_two_calls_needs_consent_and_is_kept(at_work: Agent) -> None:
    (at_work.cwd / "a.txt").write_text("a person's\n")
    at_work.read("a.txt")
    at_work.call("write", path="a.txt", content="three\n")
    at_work.answer()
    assert rewind(at_work, 1).skipped == [str(at_work.cwd / "a.txt")]
    rewind(at_work, 2, overwrite=True)
    assert (at_work.cwd / "a.txt").read_text() == "two\n"
    store = open_store(Config(home=at_work.home))
    digests = {
        path["before"]["digest"] for h in store.query("change") for path in h.fields["paths"]
    }
    texts = store.blobs([digest for digest in digests if digest]).values()
    store.close()
    assert b"a person's\n" in texts


def test_each_branch_has_its_own_past(at_work: Agent) -> None:
    at_work.back_to(1)
    rewind(at_work, 1)
    call = at_work.answer()
    at_work.read("a.txt")  # it was rewound: the agent does not know it as it is now
    at_work.call("write", path="a.txt", content="other\n")
    last = at_work.answer()
    assert (at_work.cwd / "a.txt").read_text() == "other\n"
    assert rewind(at_work, 2).skipped == []
    assert (at_work.cwd / "a.txt").read_text() == "two\n"
    assert (at_work.cwd / "new/b.txt").exists()
    rewind(at_work, last)
    assert (at_work.cwd / "a.txt").read_text() == "other\n"
    assert not (at_work.cwd / "new/b.txt").exists()
    rewind(at_work, call)
    assert (at_work.cwd / "a.txt").read_text() == "one\n"


def test_what_a_compaction_has_put_away_is_not_given_up(at_work: Agent) -> None:
    at_work.put_away(4)
    at_work.answer()
    at_work.call("write", path="a.txt", content="three\n")
    last = at_work.answer()
    assert rewind(at_work, last - 1).done == [str(at_work.cwd / "a.txt")]
    assert (at_work.cwd / "a.txt").read_text() == "two\n"
    assert (at_work.cwd / "new/b.txt").exists()


def test_what_was_done_before_a_compaction_was_taken_back_stays_done(at_work: Agent) -> None:
    at_work.put_away(4)
    at_work.answer()
    at_work.call("write", path="a.txt", content="three\n")
    at_work.answer()
    at_work.take_back()
    last = at_work.answer()
    assert rewind(at_work, last).done == []
    assert (at_work.cwd / "a.txt").read_text() == "three\n"
    assert not [text for text in at_work.notices if "has gone back" in text]


def test_an_interrupted_rewinding_goes_on(at_work: Agent) -> None:
    class KilledError(Exception):
        pass

    def kill(path: str) -> None:
        if path.endswith("b.txt"):
            raise KilledError

    store = open_store(Config(home=at_work.home))
    plan = plan_for_call(store, "s", 1)
    with pytest.raises(KilledError):
        apply(store, at_work.home, "s", plan, advance=kill)
    steps = interrupted(at_work.home, "s")
    assert steps is not None
    assert (at_work.cwd / "a.txt").read_text() == "one\n"
    assert (at_work.cwd / "new/b.txt").exists()
    assert len(go_on(store, at_work.home, "s", steps).done) == 2
    assert not (at_work.cwd / "new/b.txt").exists()
    assert interrupted(at_work.home, "s") is None
    store.close()
    undo(at_work)
    assert (at_work.cwd / "a.txt").read_text() == "two\n"


def test_a_folder_that_has_become_a_link_is_not_followed(at_work: Agent) -> None:
    outside = at_work.cwd.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("b\n")
    shutil.rmtree(at_work.cwd / "new")
    (at_work.cwd / "new").symlink_to(outside)
    result = rewind(at_work, 1, overwrite=True)
    assert "link" in result.failed[str(at_work.cwd / "new/b.txt")]
    assert (outside / "b.txt").read_text() == "b\n"


def test_bytes_and_permissions_come_back_also_outside_the_folder(make_agent: MakeAgent) -> None:
    agent = make_agent()
    outside = agent.cwd.parent / "tool.bin"
    outside.write_bytes(b"\0\1\2")
    outside.chmod(0o700)
    agent.answer()
    agent.call("write", path=str(outside), content="text\n")
    agent.call("bash", command=f"chmod 644 {outside}")
    agent.answer()
    rewind(agent, 1)
    assert outside.read_bytes() == b"\0\1\2"
    assert outside.stat().st_mode & 0o777 == 0o700


def test_what_there_is_to_rewind_to_is_said(agent: Agent) -> None:
    agent.answer()
    with pytest.raises(CannotRewind, match="have changed no files"):
        rewind(agent, 1)
    with pytest.raises(CannotRewind, match="calls go from 1 to 1"):
        rewind(agent, 7)
    with pytest.raises(CannotRewind, match="has not been rewound"):
        undo(agent)
