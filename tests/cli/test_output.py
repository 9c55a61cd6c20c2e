"""Tables, colours and progress."""

from __future__ import annotations

import io

import pytest

from foredeck.cli import progress
from foredeck.cli.output import coloured, table
from foredeck.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_aligns_all_but_the_last_column() -> None:
    assert table([("a", "bbb", "c"), ("aaa", "b", "cccc")]) == "a    bbb  c\naaa  b    cccc"
    assert table([]) == ""
    assert table([("one",), ("two",)]) == "one\ntwo"


def test_colours_appear_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("x", "red", io.StringIO()) == "x"
    assert coloured("x", "red", Terminal()) == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("x", "red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("x", "red", Terminal()) == "x"


def test_progress_redraws_one_line_and_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0)
    stream = Terminal()
    with Progress("replaying", total=2, stream=stream) as shown:
        shown.advance(note="one")
        shown.advance(note="two")
    assert stream.getvalue() == ("\r\x1b[Kreplaying 1/2 one\r\x1b[Kreplaying 2/2 two\r\x1b[K")
    assert shown.done == 2


def test_progress_elsewhere_says_now_and_then_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    with Progress("replaying", stream=stream) as shown:
        shown.advance()
    assert stream.getvalue() == ""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    with Progress("replaying", stream=stream) as shown:
        shown.advance(5)
    assert stream.getvalue() == "replaying 5\n"
