"""What may follow an object's name."""

from __future__ import annotations

import pytest

from foredeck.model.names import OF_A_SESSION, OF_STORED, AskedPart, Slice, split_name


@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("@52::args.command", "@52", AskedPart(field="args.command")),
        ("@52 ::args.command", "@52", AskedPart(field="args.command")),
        ("@52  turns 3-7", "@52", AskedPart(slice=Slice("turn", 3, 7))),
        ("@52", "@52", AskedPart()),
    ],
)
def test_a_part_may_stand_as_a_word_of_its_own(text: str, name: str, part: AskedPart) -> None:
    assert split_name(text, OF_STORED, lambda _: False) == (name, part)


def test_a_session_knows_headings_and_versions_too() -> None:
    found = split_name("a.md # Plan", OF_A_SESSION, lambda _: False)
    assert found == ("a.md", AskedPart(section="Plan"))
