"""Last uses kept between engines: taken over where they are of the same messages, else ignored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from context.playing import fresh_host, take
from context.sent import Sent, as_bytes
from context.strategies import Script, sound_scripts
from examples import examples
from foredeck.context.messages.shape import to_item
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.policy import UseRule
from foredeck.context.policies.uses import KeptUses, Uses, unpack_holders, unpack_names
from foredeck.engine import resumption
from foredeck.store import session_cache
from foredeck.store.session_cache import (
    FOLDER,
    MAX_FILES,
    read_cached,
    read_cached_streams,
    write_cached,
)

BOUNDED = settings(
    max_examples=examples(40),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
RULES = st.sampled_from([UseRule(), UseRule(min_names=1), UseRule(max_holders=1)])


@pytest.fixture(autouse=True)
def _keep_everything() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumption, "MIN_MESSAGES", 1)
        yield


def conversation_of(script: Script) -> Plan:
    plan = Plan()
    for step in script:
        for message in step.messages:
            plan.append(to_item(message, None, {}))
    return plan


def found(uses: Uses) -> dict[str, Any]:
    """All that later verdicts can depend on."""
    all = list(uses.by_ref.values())
    return {
        "uses": [(u.ref, u.last, u.path, u.text) for u in uses.by_ref.values()],
        "holders": {n: [all[i].ref for i in held] for n, held in uses.holders.items()},
        "paths": uses._by_path,
        "foldable": uses.foldable,
        "edited": uses.edited,
        "counts": (uses.calls, uses.turn_began, uses.read),
    }


def through_file(kept: KeptUses) -> KeptUses | None:
    """As the next process has it."""
    return KeptUses.from_streams([partial(bytes, stream) for stream in kept.to_streams()])


def names(kept: KeptUses) -> tuple[dict[str, tuple[int, ...]], dict[int, str]]:
    """What stays packed until somebody asks."""
    return unpack_holders(kept.holders()), unpack_names(kept.names)


@BOUNDED
@given(script=sound_scripts(), rule=RULES)
def test_going_on_at_any_message_finds_what_reading_everything_does(
    script: Script, rule: UseRule
) -> None:
    whole = conversation_of(script)
    everything = Uses("/repo", rule)
    everything.follow(whole)
    part, reader = Plan(), Uses("/repo", rule)
    for count, item in enumerate(whole.items, start=1):
        part.append(item)
        reader.follow(part)
        kept = through_file(reader.keep())
        assert kept == reader.keep()
        assert kept is not None
        assert names(kept) == names(reader.keep())
        assert kept.count == count
        goes_on = Uses("/repo", rule, kept)
        goes_on.follow(conversation_of(script))
        assert found(goes_on) == found(everything)
        assert goes_on.keep() == everything.keep()
        assert names(goes_on.keep())[0] == names(everything.keep())[0]


@pytest.mark.parametrize("layout", ["anchored", "pools"])
@settings(BOUNDED, max_examples=6)
@given(script=sound_scripts())
def test_an_engine_that_takes_over_what_was_kept_sends_the_same_bytes(
    layout: str, script: Script
) -> None:
    def play(min_messages: int) -> list[Sent]:
        resumption.MIN_MESSAGES = min_messages
        with fresh_host(layout=layout, checked=False) as host:
            for step in script:
                take(host, step)
                host.call()
                host.restart()
            return list(host.past.sent)

    for one, other in zip(play(sys.maxsize), play(1), strict=True):
        assert as_bytes(one.prompt) == as_bytes(other.prompt)
        assert one.decision == other.decision


def some_uses() -> tuple[Uses, Plan]:
    plan = Plan()
    for text in ("make_one make_two", "other"):
        message = {"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": text}
        plan.append(to_item({**message, "timestamp": 1}, None, {}))
    uses = Uses("/repo")
    uses.follow(plan)
    return uses, plan


@pytest.mark.parametrize(
    "other",
    [
        {"tip": "0" * 32},
        {"cwd": "/elsewhere"},
        {"rule": UseRule(max_holders=9)},
        {"count": 3},
        {"count": 0},
    ],
)
def test_what_is_of_something_else_is_ignored(other: dict[str, Any]) -> None:
    uses, plan = some_uses()
    again = Uses("/repo", UseRule(), replace(uses.keep(), **other))
    again.follow(plan)
    assert found(again) == found(uses)


def test_what_fits_but_is_of_other_pieces_is_ignored() -> None:
    uses, plan = some_uses()
    again = Uses("/repo", UseRule(), replace(uses.keep(), last=[0]))
    again.follow(plan)
    assert (found(again), again.kept) == (found(uses), None)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 0}', b"\xff", b'{"format": 1}'])
def test_what_is_no_record_of_this_version_is_ignored(data: bytes) -> None:
    assert KeptUses.from_streams([partial(bytes, data)] * 3) is None
    assert KeptUses.from_streams([partial(bytes, data)]) is None


def test_another_format_is_ignored() -> None:
    first, *names = some_uses()[0].keep().to_streams()
    other = json.dumps({**json.loads(first), "format": 0}).encode()
    assert KeptUses.from_streams([partial(bytes, part) for part in (other, *names)]) is None


def test_names_stay_packed_until_somebody_asks() -> None:
    uses, plan = some_uses()
    first, holders, seen = uses.keep().to_streams()
    asked: list[bytes] = []

    def unpack(part: bytes) -> bytes:
        asked.append(part)
        return part

    kept = KeptUses.from_streams([partial(unpack, part) for part in (first, holders, seen)])
    again = Uses("/repo", kept=kept)
    again.follow(plan)
    assert asked == [first]
    assert again.holders == uses.holders
    assert again.names.kept()[0] == "make_one make_two"
    assert asked == [first, holders, seen]


def test_a_damaged_file_is_taken_for_absent(tmp_path: Path) -> None:
    write_cached(tmp_path, "s", "uses", b"something")
    (file,) = (tmp_path / FOLDER).iterdir()
    assert (read_cached(tmp_path, "s", "uses"), file.stat().st_mode & 0o777) == (
        b"something",
        0o600,
    )
    assert read_cached(tmp_path, "t", "uses") is None
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_cached(tmp_path, "s", "uses") is None
        file.write_bytes(whole[:at])
        assert read_cached(tmp_path, "s", "uses") is None


def test_streams_are_unpacked_one_by_one(tmp_path: Path) -> None:
    write_cached(tmp_path, "s", "uses", b"first", b"", b"third" * 100)
    streams = read_cached_streams(tmp_path, "s", "uses")
    assert [stream.unpack() for stream in streams] == [b"first", b"", b"third" * 100]
    assert read_cached(tmp_path, "s", "uses") == b"first"


def test_a_file_that_unpacks_to_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cached(tmp_path, "s", "uses", b"x" * 60, b"y" * 60)
    monkeypatch.setattr(session_cache, "MAX_BYTES", 100)
    assert read_cached_streams(tmp_path, "s", "uses") == []


def test_as_many_are_kept_as_are_of_use(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 3):
        write_cached(tmp_path, f"s{number}", "uses", b"x")
    assert len(list((tmp_path / FOLDER).iterdir())) == MAX_FILES
    assert read_cached(tmp_path, f"s{MAX_FILES + 2}", "uses") == b"x"
