"""Which words of a query are looked for, in an index too large to score all that match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.search import index as searching
from foredeck.search import planning
from foredeck.search.index import Filters, SearchPlan
from foredeck.search.planning import plan_query, plans_for
from foredeck.search.query import parse_query
from search.sessions import Searched, Talk, searched


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Searched]:
    monkeypatch.setattr(planning, "SMALL", 10)
    monkeypatch.setattr(planning, "SCORED", 11)
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        for number in range(60):
            words = ["only" + "abcdefgh"[number % 8] + "stuvwxyz"[number // 8], "apple"]
            words += ["pear"] * (number % 3 == 0) + ["plum"] * (number % 5 == 0)
            talk.say(user=" ".join(words))
        yield stored


def planned(stored: Searched, query: str) -> SearchPlan:
    with stored.index() as index:
        plan = plan_query(index, parse_query(query), Filters())
    assert plan is not None
    return plan


def test_words_are_left_out_from_the_most_common_on(stored: Searched) -> None:
    plan = planned(stored, "apple pear onlyhs")
    assert [term.text for term in plan.looked] == ["onlyhs"]
    assert [term.text for term in plan.left_out] == ["apple", "pear"]


def test_of_common_words_an_entry_must_hold_several(stored: Searched) -> None:
    assert planned(stored, "apple pear").match == '("pear" AND "apple")'
    found = stored.find("apple pear plum")
    assert found.total == 60 / 15
    assert all(set(hit.words) == {"apple", "pear", "plum"} for hit in found.hits)


def test_one_word_that_all_entries_hold_is_looked_for_in_the_newest(stored: Searched) -> None:
    plan = planned(stored, "apple")
    assert (plan.oldest, plan.scored) == (49, True)
    assert stored.find("apple").hits[0].entry.message == "turn:one:60"


def test_what_takes_too_long_to_count_is_not_scored(
    stored: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "COUNTED_THROUGH", 10)
    assert not planned(stored, "apple pear").scored
    newest = [hit.entry.message for hit in stored.find("apple pear", limit=3).hits]
    assert newest == ["turn:one:58", "turn:one:55", "turn:one:52"]


def test_a_filter_leaves_time_for_more(stored: Searched) -> None:
    filters = Filters(sessions=("one",))
    with stored.index() as index:
        plan = plan_query(index, parse_query("apple pear"), filters)
    assert plan is not None
    assert plan.left_out == ()


def test_a_name_alone_is_looked_for_whole_and_then_by_its_parts(tmp_path: Path) -> None:
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        talk.say(user="max_retries")
        talk.say(user="retries, retries: how many at the max?")
        talk.say(user="retries again")
        assert [len(hit.words) for hit in stored.find("max_retries", limit=1).hits] == [1]
        assert stored.find("max_retries", limit=1).total == 1
        messages = [hit.entry.turn for hit in stored.find("max_retries").hits]
        assert messages[0] == 1
        assert sorted(messages[1:]) == [2, 3]
        with stored.index() as index:
            assert len(plans_for(index, "max_retries", Filters())) == 2
            assert len(plans_for(index, "retry_max", Filters())) == 1
            assert len(plans_for(index, "max_retries again", Filters())) == 1


def test_an_index_that_is_searched_knows_how_common_words_are(stored: Searched) -> None:
    with stored.index() as index:
        estimates = [index.estimate(term) for term in parse_query("apple pear nowhere")]
    assert estimates == [60, 20, 0]


def test_a_phrase_is_counted_among_the_newest(
    stored: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = parse_query('"apple pear" "apple plum" "plum apple"')
    with stored.index() as index:
        whole = [index.estimate(term) for term in terms]
        monkeypatch.setattr(searching, "_NEWEST", 12)
        newest = [index.estimate(term) for term in terms]
    # Every third has the first, and every fifth of the others the second; of the newest twelve
    # four have the first and two the second.
    assert whole == [20, 8, 0]
    assert newest == [20, 10, 0]


def test_what_was_found_in_full_is_not_counted_again(stored: Searched) -> None:
    asked: list[str] = []
    with stored.index() as index:
        plan = plan_query(index, parse_query("pear"), Filters())
        assert plan is not None
        found = index.candidates(plan, Filters())
        index._db.set_trace_callback(asked.append)
        assert index.count(plan, Filters()) == len(found)
        assert asked == []
        assert index.count(plan, Filters(type="toolcall")) == 0
        assert asked != []
