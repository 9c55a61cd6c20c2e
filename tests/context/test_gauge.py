"""Tokens: by the provider's own counts, kept across sessions, and never part of what was sent."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.driver import Host
from context.messages import assistant, image, user
from context.scenes import ask
from context.sent import Sent
from foredeck.accounting.figure import session_figure
from foredeck.cli.stored_checks import check_stored
from foredeck.config import Config
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.state.gauge import (
    MIN_CALLS,
    UNKNOWN_TOKENS,
    image_tokens,
    pixels_of,
    rate_of,
    tokens_of,
)
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats
from foredeck.model.calls import CallRecord
from foredeck.model.records import calibration_id

MODEL = "anthropic/m1"


def usage(tokens: float) -> dict[str, Any]:
    """Pi's figures for a prompt of so many tokens."""
    return {"input": 10, "cacheRead": int(tokens) - 110, "cacheWrite": 100, "output": 5}


def work(host: Host, rounds: int, chars_per_token: float) -> Sent:
    """Rounds with a user's word and an answer; the provider counts so many characters a token."""
    sent = None
    for _ in range(rounds):
        sent = ask(host, "word " * 2000)
        stats = stats_of(host)
        host.add(assistant("Yes.", usage=usage(stats.chars_sent / chars_per_token)))
    assert sent is not None
    return sent


def stats_of(host: Host) -> CallStats:
    """Those of the newest call."""
    return record_of(host).stats


def record_of(host: Host) -> CallRecord:
    """The newest call record."""
    record = host.state.chat.branch_record
    assert record is not None
    return record


def test_an_estimate_until_the_provider_has_counted(host: Host) -> None:
    work(host, MIN_CALLS, 2.5)
    first = record_of(host)
    assert (first.stats.rate, first.stats.reports) == (CHARS_PER_TOKEN, 0)
    assert session_figure(host.store, host.session, first).is_estimate
    work(host, 1, 2.5)
    then = record_of(host)
    assert then.stats.rate == pytest.approx(2.5, rel=0.01)
    assert then.stats.reports == MIN_CALLS
    assert not session_figure(host.store, host.session, then).is_estimate
    assert tokens_of(then.stats, then.stats.chars_sent) == int(
        then.stats.chars_sent / then.stats.rate
    )


def test_the_rate_is_there_for_the_next_session_and_engine(host: Host) -> None:
    work(host, 5, 2.5)
    host.close()
    other = Host(host.home, session="another")
    work(other, 1, 2.5)
    assert stats_of(other).reports >= MIN_CALLS
    head = other.store.head(calibration_id(MODEL))
    assert head.fields["chars_per_token"] == pytest.approx(2.5, rel=0.01)
    other.close()
    (told,) = check_stored(Config(home=host.home), forget_refusals=False)
    rate, calls = head.fields["chars_per_token"], len(head.fields["points"])
    assert told.text == f"{MODEL}: {rate} characters a token ({calls} calls)"


def test_doctor_says_that_sizes_are_estimated(tmp_path: Path) -> None:
    (told,) = check_stored(Config(home=tmp_path), forget_refusals=False)
    assert (told.status, "estimated" in told.text) == ("ok", True)
    assert not (tmp_path / "foredeck.db").exists()


def test_reports_that_cannot_be_of_the_prompt_do_not_count(host: Host) -> None:
    work(host, 6, 0.5)
    work(host, 6, 20)
    assert stats_of(host).reports == 0


def test_the_answer_of_another_model_does_not_count(host: Host) -> None:
    for _ in range(6):
        ask(host, "word " * 2000)
        host.add(assistant("Yes.", model="other", usage=usage(4000)))
    assert stats_of(host).reports == 0


def test_few_versions_are_stored(host: Host) -> None:
    work(host, 30, 3.0)
    assert len(host.store.history(calibration_id(MODEL))) <= 2


@given(st.lists(st.floats(1.5, 6), min_size=5, max_size=25), st.integers(0, 2))
def test_a_few_outliers_do_not_move_the_rate_out_of_the_others(
    rates: list[float], outliers: int
) -> None:
    points = [(rate * 10_000, 10_000.0) for rate in rates]
    points += [(79_000.0, 10_000.0)] * outliers
    rate = rate_of(points)
    assert rate is not None
    assert min(rates) - 0.01 <= rate <= max(rates) + 0.01


def png(width: int, height: int) -> str:
    return _base64(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height))


def jpeg(width: int, height: int) -> str:
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width)
    return _base64(b"\xff\xd8\xff\xe1" + struct.pack(">H", 5002) + b"x" * 5000 + frame)


def _base64(data: bytes) -> str:
    return base64.b64encode(data + b"\0" * 32).decode()


WEBP = [
    b"VP8X\x0a\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
    b"VP8L\x0a\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14),
    b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480),
]


@pytest.mark.parametrize(
    "data",
    [
        png(640, 480),
        jpeg(640, 480),
        _base64(b"GIF89a" + struct.pack("<HH", 640, 480)),
        *(_base64(b"RIFF\0\0\0\0WEBP" + body) for body in WEBP),
    ],
)
def test_the_size_of_an_image_is_read(data: str) -> None:
    assert pixels_of(data) == (640, 480)


@pytest.mark.parametrize("data", ["", "!", "AAAA", png(640, 480)[:12], jpeg(1, 1)[:40]])
def test_what_is_no_image_has_no_size(data: str) -> None:
    assert pixels_of(data) is None
    assert image_tokens({"data": data}, "anthropic-messages") == UNKNOWN_TOKENS


@pytest.mark.parametrize(
    ("api", "size", "tokens"),
    [
        ("anthropic-messages", (1000, 1000), 1334),
        ("anthropic-messages", (200, 200), 54),
        ("anthropic-messages", (4000, 3000), 1600),
        ("openai-responses", (1024, 1024), 765),
        ("openai-completions", (2048, 4096), 1105),
        ("openai-completions", (512, 512), 255),
        ("google-generative-ai", (300, 300), 258),
        ("google-generative-ai", (1000, 800), 1032),
        ("something", (1000, 1000), UNKNOWN_TOKENS),
    ],
)
def test_images_count_by_the_providers_rule(api: str, size: tuple[int, int], tokens: int) -> None:
    assert image_tokens({"data": png(*size)}, api) == tokens


def test_images_that_go_out_are_counted_by_their_size(host: Host) -> None:
    host.add(user([image(png(1000, 1000))]))
    host.call()
    stats = stats_of(host)
    assert (stats.images, stats.image_tokens) == (1, 1334)
    rest = (stats.chars_sent - IMAGE_CHARS) / CHARS_PER_TOKEN
    assert tokens_of(stats, stats.chars_sent) == int(rest) + 1334
