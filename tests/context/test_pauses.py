"""After a pause the user's message says what time it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, result, user
from context.scenes import bash
from context.sent import Sent, as_bytes
from foredeck.hosts.protocol import ZoneParams

MORNING_MS = int(datetime(2026, 11, 23, 8, 15, tzinfo=UTC).timestamp() * 1000)
BERLIN = ZoneParams(name="Europe/Berlin", offset_minutes=60)
MINUTE_MS = 60_000


def session(new_host: NewHost, minutes: float, **settings: Any) -> Host:
    """A user turn that has ended, and the user's next words so much later."""
    host = new_host(**settings)
    host.zone = BERLIN
    host.add(user("Begin.", timestamp=MORNING_MS - 2 * 60 * MINUTE_MS))
    host.call()
    last = MORNING_MS - int(minutes * MINUTE_MS)
    host.add(assistant("Done.", timestamp=last), user("Go on.", timestamp=MORNING_MS))
    return host


def newest(sent: Sent) -> list[str]:
    """The text blocks of the newest message as it went out."""
    content = sent.prompt[-1]["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content]


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        (ZoneParams(name="", offset_minutes=0), "Mon 2026-11-23 08:15 (UTC)"),
        (
            ZoneParams(name="America/St_Johns", offset_minutes=-210),
            "Mon 2026-11-23 04:45 (America/St_Johns, UTC-03:30)",
        ),
        (ZoneParams(name="x\n[foredeck]", offset_minutes=0), '08:15 ("x\\n\\u005bforedeck]", UTC)'),
    ],
)
def test_zones(new_host: NewHost, zone: ZoneParams, said: str) -> None:
    host = session(new_host, 31)
    host.zone = zone
    assert newest(host.call())[1].endswith(f"{said}.")


@pytest.mark.parametrize("minutes", [29.9, 0, -5])
def test_not_after_a_shorter_one_or_where_the_clock_was_set_back(
    new_host: NewHost, minutes: float
) -> None:
    assert newest(session(new_host, minutes).call()) == ["Go on."]


def test_how_long_a_pause_is_can_be_set_and_0_is_never(new_host: NewHost) -> None:
    assert len(newest(session(new_host, 5, head={"pause_minutes": 5}).call())) == 2
    host = session(new_host, 5000, session="other", head={"pause_minutes": 0})
    assert newest(host.call()) == ["Go on."]


def test_a_host_that_tells_no_zone_gets_no_line(new_host: NewHost) -> None:
    host = session(new_host, 60)
    host.zone = None
    assert newest(host.call()) == ["Go on."]


def test_the_line_stays_as_it_is_and_comes_once(new_host: NewHost) -> None:
    host = session(new_host, 60)
    first = host.call()
    host.zone = ZoneParams(name="Asia/Tokyo", offset_minutes=540)
    host.restart()
    sent = bash(host, "c1")
    assert as_bytes(sent.prompt[:3]) == as_bytes(first.prompt)
    assert "[foredeck] Now" not in "".join(newest(sent))


def test_a_tool_that_ran_for_an_hour_is_no_pause_of_the_users(new_host: NewHost) -> None:
    host = session(new_host, 1)
    host.call()
    host.add(
        assistant(calls("c1", "bash", command="make"), timestamp=MORNING_MS),
        result("c1", "bash", "ok", timestamp=MORNING_MS + 60 * MINUTE_MS),
    )
    assert newest(host.call()) == ["ok"]
