"""What need not be said twice, and when saying it twice pays."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, context_tool, go_on, later, use
from context.sent import last
from foredeck.context.rendering import short_difference
from foredeck.model.quoting import is_reference

FILE = lines(40)


def read(host: Host, id: str, content: str, path: str = "a.py", **range_: int) -> str:
    """Text of what goes out for a read."""
    sent = use(host, id, "read", content, path=path, **range_)
    return last(sent)


@pytest.fixture
def reading(host: Host) -> Host:
    """A session that has read a file whole; it is @3, and the call is @4."""
    ask(host)
    assert read(host, "r1", FILE).startswith("@3\n")
    return host


# The same


def test_the_same_text_is_said_again_where_it_succeeded_and_now_fails(host: Host) -> None:
    ask(host)
    bash(host, "c1", FILE)
    host.add(assistant(calls("c2", "bash")), result("c2", "bash", FILE, failed=True))
    assert FILE in last(host.call())


def test_nothing_is_said_to_stand_above_once_it_is_folded(host: Host) -> None:
    ask(host)
    bash(host, "c0", FILE)
    bash(host, "c1", FILE)
    assert last(context_tool(host, "t1", "activate", "@3")) == "@3 is above."
    context_tool(host, "t2", "deactivate", "@3")
    sent = later(host)
    assert [sent.text(index).split(": ", 1)[0] for index in (2, 4)] == ["@3 folded"] * 2
    assert sent.text(6) == ("@3 is not above any more: activate it again if you need it.")


# Contained


def part_of(start: int, count: int) -> str:
    return "\n".join(FILE.split("\n")[start : start + count])


def test_lines_that_now_stand_elsewhere_are_said(reading: Host) -> None:
    # Five lines have come above them: what the visible read shows as lines 15 to 24 is other text.
    assert part_of(9, 10) in read(reading, "r2", part_of(9, 10), offset=15, limit=10)


def test_a_file_that_has_been_cut_is_said(reading: Host) -> None:
    # All that is left stands above under the same numbers, with lines below it that are gone.
    left = "\n".join(FILE.split("\n")[:20]) + "\n"
    assert left in read(reading, "r2", left)


# Differences


def test_a_re_read_that_differs_little_is_a_difference(reading: Host) -> None:
    said = read(reading, "r2", FILE.replace("line 7:", "line seven:"))
    assert said.startswith("@3 v2, changed since the copy above:\n@@ ")
    assert "-line 7: some text" in said
    assert "+line seven: some text" in said
    assert said.count("\n") == 5


def test_a_difference_becomes_content_when_its_base_is_folded(host: Host) -> None:
    ask(host)
    read(host, "r1", FILE)
    changed = FILE.replace("line 7:", "line seven:")
    read(host, "r2", changed)
    for turn in range(3):
        go_on(host, f"Turn {turn}")
        if turn == 1:
            assert last(context_tool(host, "t", "activate", "a.py")) == "@3 is above."
    sent = later(host)
    assert is_reference(sent.text(2))
    assert sent.text(4) == f"@3\n{changed}"


def test_very_long_texts_are_not_compared() -> None:
    long = "\n".join(map(str, range(5000)))
    assert short_difference(long, long + "\nend") is None
