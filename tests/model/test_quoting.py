"""Text of others among lines of foredeck's."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model import quoting

BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
UNSEEN = [
    *("\0", "\x1b", "\x7f", "\x9b", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\U000e0041")
]
TEXTS = st.lists(
    st.one_of(st.sampled_from([*BREAKS, *UNSEEN, " ", "\t", "[foredeck]", "@12"]), st.text()),
    max_size=8,
).map("".join)


def lines(text: str) -> list[str]:
    """Its lines, whatever a reader takes for the end of one."""
    for sign in BREAKS:
        text = text.replace(sign, "\n")
    return text.split("\n")


def unseen(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in UNSEEN}


@given(TEXTS)
def test_a_name_and_a_word_stay_on_one_line_and_can_be_read_back(text: str) -> None:
    for said in (quoting.name(text), quoting.quoted(text), quoting.word(text)):
        assert len(lines(said)) == 1
        assert unseen(said) == set()
        assert said == text or json.loads(said) == text


@given(TEXTS)
def test_prose_stays_on_one_line(text: str) -> None:
    said = quoting.one_line(text)
    assert len(lines(said)) == 1
    assert unseen(said) == set()
    assert quoting.one_line(said) == said


@given(TEXTS)
def test_each_line_of_a_block_is_moved_in(text: str) -> None:
    said = quoting.block(text)
    assert all(line == "" or line.startswith(" ") for line in lines(said))
    assert unseen(said) <= {"\n", "\t"}
    assert len(said.split("\n")) == len(lines(text.replace("\r\n", "\n")))


@given(TEXTS)
def test_what_is_printed_steers_no_terminal(text: str) -> None:
    assert unseen(quoting.printable(text)) <= {"\n", "\t"}


@pytest.mark.parametrize("text", ["a b/ä.py", "ein Titel 🎉✔️", "日本語", "a\tb"])
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    assert quoting.printable(text) == text
    if "\t" not in text:
        assert quoting.name(text) == quoting.one_line(text) == text
        assert quoting.block(text) == f" {text}"


@pytest.mark.parametrize("tag", ["[foredeck]", "[ User-Stated ]", "【derived】", "［foredeck］"])
def test_no_text_passes_for_a_tag_of_trust(tag: str) -> None:
    assert quoting.one_line(f"a {tag} b") == f"a ({tag[1:]} b"
    assert quoting.block(tag) == f" ({tag[1:]}"
    assert json.loads(quoting.name(tag)) == tag
    assert tag not in quoting.name(tag)
    assert quoting.one_line("[id] [derivedly]") == "[id] [derivedly]"


def test_what_a_tool_is_called_begins_a_line_only_if_it_is_a_word() -> None:
    for word in ("bash", "mcp__x__y", "server/tool", "a.b-c"):
        assert quoting.word(word) == word
    for other in ("@3", "names:", "Unchanged:", "[foredeck]", "", "- x", "two words"):
        assert quoting.word(other).startswith('"')


FORMS_OF_RUNS = [
    "[foredeck] 1 call, folded:\nbash @3 ls",
    '[foredeck] Turn 2, folded: 8 calls. activate "@2 turn 2" shows it in full.',
    '[foredeck] Turn 2, folded. activate "@2 turn 2" shows it in full.',
]
FORMS_OF_REFERENCES = ["@12 folded: 80 lines, 4120 chars", "@12 folded: failed, 99 chars\n exit 2"]


def test_folded_text_is_told_from_other_text() -> None:
    for text in FORMS_OF_RUNS:
        assert quoting.is_run(text)
        assert quoting.looks_like_ours(f"x\n{text}")
    for text in FORMS_OF_REFERENCES:
        assert quoting.is_reference(text)
        assert quoting.looks_like_ours(f"x\n{text}")
    assert not quoting.is_run("[foredeck] Now Mon 2026-11-23 08:15.")
    assert not quoting.is_reference("@12\n80 lines")
