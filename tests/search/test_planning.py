"""Which words of a query are looked for, in an index too large to score all that match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.search import searching
from foredeck.search.index import Filters
from foredeck.search.query import parse_query
from foredeck.search.searching import SearchPlan, plan_query
from search.sessions import Searched, Talk, searched


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Searched]:
    monkeypatch.setattr(searching, "SMALL", 10)
    monkeypatch.setattr(searching, "SCORED", 11)
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        for number in range(60):
            words = ["only" + "abcdefgh"[number % 8] + "stuvwxyz"[number // 8], "apple"]
            words += ["pear"] * (number % 3 == 0) + ["plum"] * (number % 5 == 0)
            talk.say(user=" ".join(words))
        yield stored


def planned(stored: Searched, query: str, **filters: tuple[str, ...]) -> SearchPlan:
    with stored.index() as index:
        return plan_query(index, parse_query(query), Filters(**filters))


def test_where_all_words_are_common_the_newest_texts_are_searched(stored: Searched) -> None:
    plan = planned(stored, "apple pear nowhere")
    assert plan.is_part
    assert plan.extent.last == 60
    assert plan.extent.first > 45
    found = stored.find("apple pear")
    assert found.is_part
    assert found.hits[0].rank.words == ("pear", "apple")
    assert found.hits[0].entry.message == "turn:one:58"


def test_a_name_alone_is_looked_for_whole_and_then_by_its_parts(tmp_path: Path) -> None:
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        talk.say(user="max_retries")
        talk.say(user="retries, retries: how many at the max?")
        talk.say(user="retries again")
        assert [len(hit.rank.words) for hit in stored.find("max_retries", limit=1).hits] == [1]
        assert stored.find("max_retries", limit=1).total == 1
        messages = [hit.entry.turn for hit in stored.find("max_retries").hits]
        assert messages[0] == 1
        assert sorted(messages[1:]) == [2, 3]
