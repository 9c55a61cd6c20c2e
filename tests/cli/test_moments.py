"""Points in time as users type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from foredeck.cli.arguments import parse_moment

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 3, 5, 14, 30, 15, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("Yesterday", datetime(2026, 3, 4, 23, 59, 59, 999_000, tzinfo=ZONE)),
        ("2026-03-01", datetime(2026, 3, 1, 23, 59, 59, 999_000, tzinfo=ZONE)),
        ("2026-03-01 14:00", datetime(2026, 3, 1, 14, 0, 0, 999_000, tzinfo=ZONE)),
        ("2026-03-01T14:00:00.5", datetime(2026, 3, 1, 14, 0, 0, 500_000, tzinfo=ZONE)),
        ("2026-03-01T14:00:00Z", datetime(2026, 3, 1, 14, 0, 0, 999_000, tzinfo=UTC)),
        ("2026-03-01T14:00:00+05:00", datetime(2026, 3, 1, 9, 0, 0, 999_000, tzinfo=UTC)),
        ("09:15", datetime(2026, 3, 5, 9, 15, 0, 999_000, tzinfo=ZONE)),
        ("2h ago", NOW - timedelta(hours=2)),
        ("2 hours ago", NOW - timedelta(hours=2)),
        ("90m", NOW - timedelta(minutes=90)),
        ("1 day ago", NOW - timedelta(days=1)),
        ("3 weeks  ago", NOW - timedelta(weeks=3)),
    ],
)
def test_what_a_user_may_write(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW) == int(expected.timestamp() * 1000)
