"""Agents on two machines that share a folder and a store: two nodes over one Postgres."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, finish
from context.sent import Sent
from foredeck.config import Config
from foredeck.model.documents import FileDocument
from foredeck_xtdb.link import open_database
from foredeck_xtdb.local_copy import remote_of
from machines.two_nodes import Machines
from store.journaled import until
from store.pulled import Pulled

SHARED = "/team/repo"
"""The path by which all machines know the folder."""


@dataclass(slots=True)
class Machine:
    """One machine: where it has the shared folder, and how its engines are configured."""

    home: Path
    folder: Path
    settings: dict[str, Any]

    def host(self, session: str) -> Host:
        """A session of an agent that works in the shared folder."""
        return Host(self.home, session=session, cwd=str(self.folder), disk=True, **self.settings)


@pytest.fixture
def team(machines: Machines, tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines; each has the folder at a place of its own."""
    made = []
    for name, settings in zip(("one", "two"), machines.settings(), strict=True):
        folder = (tmp_path / name / "work").resolve()
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(lines(30, "first"))
        mount = {"prefix": SHARED, "host_path": folder, "filesystem_id": "team-volume"}
        made.append(Machine(tmp_path / name, folder, {**settings, "sources": {"mounts": [mount]}}))
    return made[0], made[1]


def sync(source: Machine, target: Machine) -> None:
    """What the network file system does between the machines."""
    shutil.copytree(source.folder, target.folder, dirs_exist_ok=True)


def read(host: Host, id: str, name: str = "a.txt") -> Sent:
    """The model reads a file of the shared folder."""
    given = result(id, "read", (Path(host.cwd) / name).read_text())
    host.observe(given, {"path": name})
    host.add(assistant(calls(id, "read", path=name)), given)
    return host.call()


def edit(host: Host, id: str, old: str, new: str, name: str = "a.txt") -> Sent:
    """The model edits a file of the shared folder."""
    path = Path(host.cwd) / name
    path.write_text(path.read_text().replace(old, new))
    arguments = {"path": name, "edits": [{"oldText": old, "newText": new}]}
    given = result(id, "edit", f"Successfully replaced 1 block(s) in {name}.")
    host.observe(given, arguments)
    host.add(assistant(calls(id, "edit", **arguments)), given)
    return host.call()


def versions(host: Host) -> list[tuple[str, str | None]]:
    """Token and content of all versions of the one file that the database knows, as the machine
    of this session sees it once nothing waits there."""
    until(lambda: remote_of(host.store).backlog.entries == 0)
    with closing(Pulled(open_database(Config(home=host.home, **host.settings)))) as store:
        (file,) = store.query("file")
        assert file.fields["source"]["path"] == f"{SHARED}/a.txt"
        return [
            (str(head.token), store.get(file.id, FileDocument, head.token).content)
            for head in store.history(file.id)
        ]


def told_by(host: Host, others: Host) -> None:
    """Wait until the machine of one session knows what that of another has written."""
    known = {token for token, _ in versions(others)}
    until(lambda: known <= {head.token for head in host.store.history(file_id(host))})


def file_id(host: Host) -> str:
    """The object of the shared file."""
    found = host.store.query("file")
    return found[0].id if found else ""


def test_two_machines_edit_one_file(team: tuple[Machine, Machine]) -> None:
    one, two = team[0].host("s1"), team[1].host("s2")
    try:
        for host in (one, two):
            ask(host)
        read(one, "r1")
        edit(one, "e1", "first 3", "by machine one")
        sync(*team)
        told_by(two, one)
        read(two, "r2")
        edit(two, "e2", "first 4", "by machine two")
        sync(team[1], team[0])
        told_by(one, two)
        sent = read(one, "r3")
        assert "by machine two" in (team[0].folder / "a.txt").read_text()
        told = versions(one)
        assert told == versions(two)
        for host in (one, two):
            assert [head.token for head in host.store.history(file_id(host))] == [
                token for token, _ in told
            ]
        contents = [content or "" for _, content in told]
        assert [("one" in text, "by machine two" in text) for text in contents] == [
            (False, False),
            (True, False),
            (True, True),
        ]
        assert sent.call is not None
    finally:
        one.close()
        two.close()


def test_a_session_goes_on_on_another_machine(team: tuple[Machine, Machine]) -> None:
    first = team[0].host("s")
    try:
        ask(first, "Look around.")
        read(first, "r1")
        bash(first, "b1")
        paused = edit(first, "e1", "first 3", "changed")
        finish(first)
        versions(first)
    finally:
        first.close()
    sync(*team)
    second = moved(first, team[1])
    try:
        assert ask(second, "Go on over here.").prompt[: len(paused.prompt)] == paused.prompt
        assert paused.call is not None
        assert second.shown(paused.call).messages == first_shown(team[0], paused.call)
        read(second, "r2")
        assert len(versions(second)) == 2
    finally:
        second.close()


def moved(host: Host, machine: Machine) -> Host:
    """The same session, opened on another machine."""
    again = machine.host(host.session)
    again.messages, again.entries = list(host.messages), list(host.entries)
    again.now_ms, again._made, again.past = host.now_ms, host._made, host.past
    return again


def first_shown(machine: Machine, call: int) -> list[Any]:
    """What the first machine tells of a call that it has made."""
    host = machine.host("s")
    try:
        return host.shown(call).messages
    finally:
        host.close()
