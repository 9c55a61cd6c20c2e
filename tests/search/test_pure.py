"""Words, queries, passages and ranks, apart from any database."""

from __future__ import annotations

from foredeck.search.passages import passage
from foredeck.search.query import parse_query
from foredeck.search.ranking import HALF_LIFE_MS, RECENCY, Candidate, rank
from foredeck.search.tokens import Vocabulary, humps


def test_humps() -> None:
    assert humps("readHTTPBody2") == ["read", "http", "body", "2"]
    assert humps("plain") == ["plain"]
    assert humps("userIDs") == ["user", "ids"]
    assert humps("APIs") == ["apis"]


def test_identifiers_of_a_text_come_once_and_in_order() -> None:
    text = "See fooBar, snake_case and src/a.py; fooBar again. Not these words, nor 3.14 of x."
    found = [(word.name, word.parts) for word in Vocabulary().notable(text)]
    assert found == [("fooBar", "foo bar"), ("snake_case", ""), ("src/a.py", ""), ("3.14", "")]


def test_a_vocabulary_gives_the_same_for_a_text_that_it_has_met() -> None:
    vocabulary = Vocabulary()
    first = vocabulary.notable("callMe max_size plain")
    assert len(first) == 2
    assert vocabulary.notable("callMe max_size plain") == first


def test_terms_of_a_query() -> None:
    found = [term.text for term in parse_query('fix maxRetries in net/io.py "two words" pre*')]
    assert found == [
        *("fix", "maxretries", "max", "retries", "in", "net io py", "net", "io", "py"),
        *("two words", "pre*"),
    ]


def test_a_passage_is_where_the_words_stand_together() -> None:
    text = "apple " + "x " * 500 + "an apple and pears fell" + " y" * 500
    found = passage(text, ["apples", "pear"], 100)
    assert "an apple and pears fell" in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert passage("  short\n text ", ["none"], 100) == "short text"


def test_the_newest_is_raised_by_the_share_and_halves_with_time() -> None:
    new = Candidate(1, 10.0, "user", 1, HALF_LIFE_MS * 2)
    older = Candidate(2, 10.0, "user", 2, HALF_LIFE_MS)
    oldest = Candidate(3, 10.3, "user", 3, 0)
    by_id = {one.id: one.score for one in rank([new, older, oldest])}
    assert by_id[1] == 10.0 * (1 + RECENCY)
    assert by_id[2] == 10.0 * (1 + RECENCY / 2)
    assert max(by_id, key=lambda id: by_id[id]) == 3


def test_what_was_done_comes_before_what_was_looked_at() -> None:
    looked, done = Candidate(1, 5.0, "read", None, 0), Candidate(2, 5.0, "edit", None, 0)
    assert [one.id for one in rank([looked, done])] == [2, 1]
