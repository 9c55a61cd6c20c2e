"""What a session's index is made of, kept between engines: taken over where nothing has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context.driver import Host
from context.messages import assistant, calls, result, user
from foredeck.context.state.index import KeptMembers, Member, SessionIndex, read_members
from foredeck.engine import resumption
from foredeck.engine.resumption import recall_session
from foredeck.store.session_cache import drop_cached

CALLS = 4


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A session of some calls whose engine has ended."""
    monkeypatch.setattr(resumption, "MIN_MEMBERS", 1)
    host = Host(tmp_path)
    host.add(user("Begin."))
    for number in range(CALLS):
        run(host, f"c{number}")
    host.close()
    yield host
    host.close()


def run(host: Host, id: str) -> None:
    host.call()
    asked = assistant(calls(id, "bash", command=f"echo {id}"))
    host.add(asked, result(id, "bash", f"{id}\n" * 100))


def kept(host: Host) -> KeptMembers:
    found = recall_session(host.home, host.session).members
    assert found is not None
    return found


def read_of(host: Host, kept: KeptMembers, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The handles whose documents are read where these are kept; what comes of it must be what
    reading all gives."""
    read: list[int] = []
    of = Member.of

    def noting(head: object) -> Member:
        member = of(head)  # type: ignore[arg-type]
        read.append(member.ordinal)
        return member

    with monkeypatch.context() as patch:
        patch.setattr(Member, "of", noting)
        found = read_members(host.store, host.session, kept)
    whole = read_members(host.store, host.session)
    assert list(found.items()) == list(whole.items())
    return read


def told(index: SessionIndex) -> list[tuple[object, ...]]:
    """All entries, in their order."""
    entries = index.entries.items()
    return [(n, e.ordinal, e.object, e.type, e.label, e.newest) for n, e in entries]


def test_what_has_not_changed_is_not_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(host).members
    assert read_of(host, kept(host), monkeypatch) == []


def test_an_engine_has_the_index_that_reading_all_gives(host: Host) -> None:
    whole = SessionIndex.load(host.session, read_members(host.store, host.session).values())
    taken = host.state.objects.index
    assert taken.kept == len(kept(host).members) > 0
    assert told(taken) == told(whole)
    assert (taken.by_object, taken.by_label) == (whole.by_object, whole.by_label)


def test_what_came_later_is_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(host)
    run(host, "later")
    host.call()
    new = sorted(
        host.state.objects.index.entries.keys() - {m.ordinal for m in before.members.values()}
    )
    assert new
    assert sorted(read_of(host, before, monkeypatch)) == new
    host.close()
    assert len(kept(host).members) == len(before.members) + len(new)


def test_a_version_that_came_later_is_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(host)
    host.system = [{"role": "system", "content": "You are another agent."}]
    host.call()
    version = host.state.frame.version
    assert version is not None
    assert host.state.objects.index.by_object[version.object] in read_of(host, before, monkeypatch)
    assert before.members != read_members(host.store, host.session)


@pytest.mark.parametrize("other", [{"token": "t"}, {"time_ms": 0}])
def test_one_of_another_history_is_read_again(
    host: Host, other: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = kept(host).members
    id, one = next(iter(members.items()))
    wrong = KeptMembers({**members, id: one._replace(label="wrong", **other)})  # type: ignore[arg-type]
    assert read_of(host, wrong, monkeypatch) == [one.ordinal]


def test_one_that_the_store_does_not_have_is_left_out(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = kept(host).members
    one = next(iter(members.values()))
    assert read_of(host, KeptMembers({**members, "member:s:99": one}), monkeypatch) == []


def test_a_fork_keeps_its_own(host: Host) -> None:
    fork = host.fork("fork")
    fork.add(assistant("Hm."), user("In the copy."))
    fork.call()
    fork.close()
    assert kept(fork).members == read_members(fork.store, "fork")
    fork.close()


def test_it_comes_back_as_it_was_kept(host: Host) -> None:
    assert KeptMembers.from_bytes(kept(host).to_bytes()) == kept(host)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 0}', b"\xff"])
def test_what_is_none_of_this_code_is_ignored(data: bytes) -> None:
    assert KeptMembers.from_bytes(data) is None


def test_it_goes_with_what_else_was_kept(host: Host) -> None:
    drop_cached(host.home, host.session)
    assert recall_session(host.home, host.session).members is None
