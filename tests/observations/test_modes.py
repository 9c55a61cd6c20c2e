"""Which kind of work it is, by what tools did."""

from __future__ import annotations

import pytest

from foredeck.model.observations import Mode
from foredeck.observations.chunks import SourceMessage
from foredeck.observations.rules import guess_mode, is_test
from observations.chat import answer, result


def calls(tool: str, count: int, *, failed: int = 0) -> list[SourceMessage]:
    names = [f"{tool}{n}" for n in range(count)]
    made = [answer("", name, tool=tool) for name in names]
    return [*made, *(result(name, failed=n < failed) for n, name in enumerate(names))]


@pytest.mark.parametrize(
    ("chat", "mode"),
    [
        (calls("read", 2), "default"),
        (calls("read", 6), "explore"),
        (calls("webfetch", 4), "research"),
        (calls("bash", 5, failed=2), "debugging"),
        (calls("edit", 3) + calls("bash", 3, failed=2), "bug_fixing"),
        (calls("edit", 3) + calls("bash", 3, failed=1), "default"),
        (calls("edit", 6) + calls("bash", 3, failed=1), "refactoring"),
        (calls("edit", 6), "refactoring"),
        (calls("edit", 4), "default"),
    ],
)
def test_the_mode_is_guessed_from_what_was_done(chat: list[SourceMessage], mode: Mode) -> None:
    choice = guess_mode(chat)
    assert (choice.mode, choice.by) == (mode, "guess")
    assert choice.reason


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("tests/a.py", True), ("src/a_test.go", True), ("a.spec.ts", True), ("test_b.py", True)),
        *(("src/latest.py", False), ("contest/a.py", False), ("", False)),
    ],
)
def test_a_test_is_known_by_its_name(path: str, expected: bool) -> None:
    assert is_test(path) is expected
