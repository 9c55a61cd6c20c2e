"""What need not be said twice, and when saying it twice pays."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, image, lines, result, text, user
from context.scenes import ask, bash, context_tool, finish, use
from context.sent import Sent
from foredeck.context.rendering import MIN_SAVING_CHARS, contains_lines, short_difference
from foredeck.model.quoting import is_reference

FILE = lines(40)


def read(host: Host, id: str, content: str, path: str = "a.py", **range_: int) -> str:
    """Text of what goes out for a read."""
    sent = use(host, id, "read", content, path=path, **range_)
    return last(sent)


def last(sent: Sent) -> str:
    return sent.text(len(sent.messages) - 1)


@pytest.fixture
def reading(host: Host) -> Host:
    """A session that has read a file whole; it is @3, and the call is @4."""
    ask(host)
    assert read(host, "r1", FILE).startswith("@3\n")
    return host


# The same


def test_the_same_text_is_one_line(reading: Host) -> None:
    assert read(reading, "r2", FILE) == "Unchanged: the same as @3 above."


def test_the_same_text_is_said_again_where_it_succeeded_and_now_fails(host: Host) -> None:
    ask(host)
    bash(host, "c1", FILE)
    host.add(assistant(calls("c2", "bash")), result("c2", "bash", FILE, failed=True))
    assert FILE in last(host.call())


def test_two_equal_results_of_one_message_are_said_once(host: Host) -> None:
    ask(host)
    host.add(
        assistant(calls("c1", "bash", command="x"), calls("c2", "bash", command="x")),
        result("c1", "bash", FILE),
        result("c2", "bash", FILE),
    )
    sent = host.call()
    assert FILE in sent.text(2)
    assert last(sent) == "Unchanged: the same as @3 above."


def test_a_text_is_said_again_when_its_first_copy_is_folded(host: Host) -> None:
    ask(host)
    bash(host, "c0", FILE)
    context_tool(host, "t", "deactivate", "@3")
    finish(host)
    host.wait(600)
    assert is_reference(ask(host).text(2))
    assert FILE in last(bash(host, "c1", FILE))


def test_nothing_is_said_to_stand_above_once_it_is_folded(host: Host) -> None:
    ask(host)
    bash(host, "c0", FILE)
    bash(host, "c1", FILE)
    assert last(context_tool(host, "t1", "activate", "@3")) == "@3 is above."
    context_tool(host, "t2", "deactivate", "@3")
    finish(host)
    host.wait(600)
    sent = ask(host)
    assert [sent.text(index).split(": ", 1)[0] for index in (2, 4)] == ["@3 folded"] * 2
    assert sent.text(6) == ("@3 is not above any more: activate it again if you need it.")


def test_what_went_out_as_the_host_has_it_is_above_again(host: Host) -> None:
    ask(host)
    bash(host, "c0", FILE)
    bash(host, "c1", FILE)
    context_tool(host, "t1", "activate", "@3")
    context_tool(host, "t2", "deactivate", "@3")
    finish(host)
    host.wait(600)
    ask(host)
    finish(host)
    host.add(user("Go on."))
    host.off()
    finish(host)
    sent = ask(host)
    assert (sent.text(2), sent.text(6)) == (FILE, "@3 is above.")
    host.restart()
    assert ask(host).text(6) == "@3 is above."


def test_a_text_too_short_to_pay_is_said_again(host: Host) -> None:
    ask(host)
    short = "y" * 150
    bash(host, "c1", short)
    assert last(bash(host, "c2", short)) == short


def test_an_image_is_sent_again(host: Host) -> None:
    ask(host)
    blocks = [text(FILE), image()]
    use(host, "i1", "read", blocks, path="a.png")
    sent = use(host, "i2", "read", blocks, path="a.png")
    assert image() in sent.parts[-2][0]["content"]


# Contained


def part_of(start: int, count: int) -> str:
    return "\n".join(FILE.split("\n")[start : start + count])


def test_lines_that_stand_in_a_visible_read_are_one_line(reading: Host) -> None:
    said = read(reading, "r2", part_of(9, 10), offset=10, limit=10)
    assert said == "Unchanged: these lines are in @3 above."


def test_the_tools_own_notice_does_not_count_as_a_line(reading: Host) -> None:
    partial = part_of(9, 10) + "\n\n[20 more lines in file. Use offset=20 to continue.]"
    said = read(reading, "r2", partial, offset=10, limit=10)
    assert said == "Unchanged: these lines are in @3 above."


def test_lines_that_now_stand_elsewhere_are_said(reading: Host) -> None:
    # Five lines have come above them: what the visible read shows as lines 15 to 24 is other text.
    assert part_of(9, 10) in read(reading, "r2", part_of(9, 10), offset=15, limit=10)


def test_a_file_that_has_been_cut_is_said(reading: Host) -> None:
    # All that is left stands above under the same numbers, with lines below it that are gone.
    left = "\n".join(FILE.split("\n")[:20]) + "\n"
    assert left in read(reading, "r2", left)


def test_changed_lines_are_said(reading: Host) -> None:
    changed = part_of(9, 10).replace("line 12:", "line twelve:")
    assert changed in read(reading, "r2", changed, offset=10, limit=10)


@pytest.mark.parametrize(
    ("whole", "part", "inside"),
    [
        ("a\nb\nc", "b", True),
        ("a\nb\nc", "b\nc", True),
        ("a\nb\nc", "\nb\n", True),
        ("ab\nc", "b", False),
        ("a\nbc", "b", False),
        ("ab\nb\nc", "b", True),
        ("a\nb", "", False),
        ("a\nb", "\n\n", False),
        ("a", "a\nb", False),
        ("a\u2028b\nc", "b", False),
    ],
)
def test_lines_are_contained_as_whole_lines(whole: str, part: str, inside: bool) -> None:
    assert contains_lines(whole, part) is inside


# Differences


def test_a_re_read_that_differs_little_is_a_difference(reading: Host) -> None:
    said = read(reading, "r2", FILE.replace("line 7:", "line seven:"))
    assert said.startswith("@3 v2, changed since the copy above:\n@@ ")
    assert "-line 7: some text" in said
    assert "+line seven: some text" in said
    assert said.count("\n") == 5


def test_a_re_read_of_other_lines_is_no_difference(reading: Host) -> None:
    changed = part_of(0, 20).replace("line 7:", "line seven:")
    assert changed in read(reading, "r2", changed, limit=20)


def test_a_difference_becomes_content_when_its_base_is_folded(host: Host) -> None:
    ask(host)
    read(host, "r1", FILE)
    changed = FILE.replace("line 7:", "line seven:")
    read(host, "r2", changed)
    for turn in range(3):
        finish(host)
        ask(host, f"Turn {turn}")
        if turn == 1:
            assert last(context_tool(host, "t", "activate", "a.py")) == "@3 is above."
    finish(host)
    host.wait(600)
    sent = ask(host)
    assert is_reference(sent.text(2))
    assert sent.text(4) == f"@3\n{changed}"


def test_an_activation_of_a_file_that_changed_a_little_is_a_difference(reading: Host) -> None:
    changed = FILE.replace("line 7:", "line seven:")
    use(reading, "w", "write", "Wrote it.", path="a.py", content=changed)
    said = last(context_tool(reading, "t", "activate", "@3"))
    assert said.startswith("@3 v2, changed since the copy above:\n")


OLD = lines(40)


def test_a_difference_that_is_not_half_as_long_does_not_pay() -> None:
    new = "\n".join(
        line if number % 2 else line.upper() for number, line in enumerate(OLD.split("\n"))
    )
    assert short_difference(OLD, new) is None


def test_a_difference_pays_where_it_and_a_word_are_less_than_half() -> None:
    diff = short_difference("a\nb\nc\n" + "y" * 1000, "a\nB\nc\n" + "y" * 1000)
    assert diff is not None
    tail = "y" * (2 * (len(diff) + MIN_SAVING_CHARS) - len("a\nB\nc\n"))
    assert short_difference(f"a\nb\nc\n{tail}", f"a\nB\nc\n{tail}") is None
    assert short_difference(f"a\nb\nc\n{tail}y", f"a\nB\nc\n{tail}y") == diff


def test_texts_that_share_less_than_half_their_lines_are_not_compared() -> None:
    new = "\n".join([*OLD.split("\n")[:19], *(f"new {number}" for number in range(21))])
    assert short_difference(OLD, new) is None


def test_very_long_texts_are_not_compared() -> None:
    long = "\n".join(map(str, range(5000)))
    assert short_difference(long, long + "\nend") is None
