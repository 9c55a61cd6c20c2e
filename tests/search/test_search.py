"""What a search finds, in which order, and that no query is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.documents import Provenance, ToolcallDocument
from foredeck.model.messages import store_message
from foredeck.model.records import TurnDocument
from foredeck.search.searching import search
from foredeck.sources.snapshots import AT_MS
from foredeck.store.protocol import Batch
from search.sessions import DAY_MS, START_MS, Searched, Talk


def test_messages_calls_files_and_thinking_are_found(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    asked = talk.say(user="why does the walrus sleep")
    answered = talk.say(assistant="because the penguin said so", thinking="perhaps an ostrich")
    call = talk.run("bash", "flamingo: command not found", failed=True, command="flamingo --run")
    file = talk.meet("/repo/zoo.py", "class Heron: pass")
    assert stored.found("walrus") == [asked]
    assert stored.found("penguins") == [answered]  # in another form
    assert stored.find("ostrich").hits[0].entry.role == "thinking"
    hit = stored.find("flamingo").hits[0]
    assert (hit.entry.document, hit.entry.role, hit.entry.status) == (call, "bash", "fail")
    assert stored.find("heron").hits[0].object == file
    assert stored.find("heron").hits[0].session == "one"


def test_a_piece_of_names_marks_the_names_and_not_their_words(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="Look at /usr/the/MainTransport.py.")
    talk.say(user="Go to the MainTransporter, by the user.")
    marked = {hit.passage.marked() for hit in stored.find("ransport").hits}
    assert marked == {
        "Look at /«usr/the/MainTransport.py».",
        "Go to the «MainTransporter», by the user.",
    }


def test_a_file_is_named_with_the_latest_session_that_may_be_named(stored: Searched) -> None:
    for session in ("one", "two"):
        Talk(stored.store, session).meet("/repo/zoo.py", "class Heron: pass")

    def sessions(*without: str) -> list[str | None]:
        return [hit.session for hit in stored.find("heron", without=without).hits]

    assert sessions() == ["two"]
    assert sessions("two") == ["one"]
    assert sessions("one", "two") == [None]


@pytest.mark.parametrize(
    "query",
    [
        "retryWithBackoff",  # whole
        "backoff",  # a part of camelCase
        "MAX_RETRY_COUNT",
        "max_retry",
        "count",
        "http.client.Session",
        "client",
        "src/net/transport.py",
        "transport.py",
        "retryWith*",  # a prefix
        "retrywithb",  # the same, unasked for
        "ithBacko",  # a piece of an identifier
        "nsport",  # a piece of a path
    ],
)
def test_identifiers_are_found_whole_and_in_parts(stored: Searched, query: str) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="nothing of interest")
    wanted = talk.say(
        assistant="retryWithBackoff reads MAX_RETRY_COUNT of http.client.Session, see "
        "src/net/transport.py."
    )
    assert stored.found(query) == [wanted]


def test_the_whole_identifier_comes_before_its_parts(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    parts = talk.say(user="the count of a retry, at max")
    whole = Talk(stored.store, "two").say(user="we use max_retry_count there")
    assert stored.found("max_retry_count") == [whole, parts]


def test_a_path_counts_more_than_content(stored: Searched) -> None:
    inside = Talk(stored.store, "one").run("edit", "done", path="src/lantern.py")
    for number in range(5):
        Talk(stored.store, f"other{number}").run("edit", "the lantern is on", path="src/a.py")
    assert stored.found("lantern")[0] == inside


def test_words_in_quotes_are_a_phrase(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="green the light is")
    wanted = talk.say(user="a green light")
    assert stored.found('"green light"') == [wanted]


def test_recency_decides_between_equals_and_not_otherwise(stored: Searched) -> None:
    old = Talk(stored.store, "old").say(user="the kettle boils", time_ms=START_MS)
    new = Talk(stored.store, "new").say(user="the kettle boils", time_ms=START_MS + 90 * DAY_MS)
    better = Talk(stored.store, "better").say(user="kettle kettle", time_ms=START_MS)
    assert stored.found("kettle") == [better, new, old]


def test_a_session_with_several_hits_comes_before_one_with_a_better_one(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="fox fox fox")
    two = Talk(stored.store, "two")
    for text in ("a fox", "nothing of it", "nothing else", "the fox"):
        two.say(user=text)
    with stored.index() as index:
        for first, order in ((False, ["one", "two"]), (True, ["two", "one"])):
            found = search(stored.store, index, "fox", sessions_first=first)
            assert [session for session, _ in found.groups()] == order


def test_a_reply_is_found_by_the_words_of_what_it_answers(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    asked = talk.say(user="which heron did you paint there")
    answered = talk.say(assistant="the grey one by the lake")
    Talk(stored.store, "two").say(user="nothing of the kind")
    assert stored.found("heron that you painted in Venice") == [asked, answered]
    assert stored.found("heron painted") == [asked]


def test_what_stands_near_does_not_overtake_a_text_that_has_all_words(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="heron heron heron")
    talk.say(user="lake")
    talk.say(user="grey grey grey")
    filler = " ".join(f"filler{number}" for number in range(60))
    wanted = Talk(stored.store, "two").say(assistant=f"a grey heron of the lake {filler}")
    assert stored.found("grey heron lake")[0] == wanted


def test_irregular_forms_are_found(stored: Searched) -> None:
    said = Talk(stored.store, "one").say(user="we went to the mountains and the children ran")
    for query in ("going", "go", "child", "running"):
        assert stored.found(query) == [said]


def test_a_month_and_a_year_are_looked_for_in_the_time(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    for number in range(8):
        talk.say(user="the ferry was late", time_ms=START_MS + number * 31 * DAY_MS)
    # The first is of February 2026.
    assert stored.found("Was the ferry late in May 2026?")[0] == "turn:one:4"
    assert stored.found("Was the ferry late in september?")[0] == "turn:one:8"
    assert stored.find("may the ferry be late").hits[0].rank.dated == 0


def test_rarity_is_counted_among_the_sessions_that_are_searched(stored: Searched) -> None:
    for number in range(300):
        Talk(stored.store, f"other{number}").say(user="the otter")
    here = Talk(stored.store, "here")
    rare = here.say(user="the otter and nothing else to say")
    for _ in range(200):
        here.say(user="a badger and nothing else to say")
    assert stored.found("otter badger", sessions=("here",))[0] == rare


def test_only_the_newest_version_of_a_file_unless_an_older_one_has_it(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    file = talk.meet("/repo/a.py", "tulip and rose")
    talk.meet("/repo/a.py", "tulip and daisy")
    found = stored.find("tulip")
    assert [hit.entry.document for hit in found.hits] == [file]
    assert found.hits[0].entry.newest
    older = stored.find("rose").hits[0]
    assert (older.entry.document, older.entry.newest) == (file, 0)
    talk.meet("/repo/a.py", "tulip and rose")
    assert stored.find("rose").hits[0].entry.newest


def test_filters(stored: Searched) -> None:
    one, two = Talk(stored.store, "one"), Talk(stored.store, "two")
    said = one.say(user="the anchor", time_ms=START_MS)
    ran = two.run("bash", "anchor", command="ls")
    read = two.run("read", "anchor", path="/repo/deep/ship.py")
    file = two.meet("/repo/deep/ship.py", "anchor = 1")
    assert set(stored.found("anchor")) == {said, ran, read, file}
    assert stored.found("anchor", sessions=("one",)) == [said]
    assert set(stored.found("anchor", sessions=("two",))) == {ran, read, file}
    assert stored.found("anchor", sessions=()) == []
    assert stored.found("anchor", type="message") == [said]
    assert stored.found("anchor", tool="Read") == [read]
    assert set(stored.found("anchor", path="deep/")) == {read, file}
    assert said not in stored.found("anchor", since_ms=START_MS + 1)


def test_neighbours_come_on_request_and_from_the_same_session(stored: Searched) -> None:
    one, two = Talk(stored.store, "one"), Talk(stored.store, "two")
    one.say(user="first")
    two.say(user="elsewhere")
    one.say(user="the needle")
    two.say(user="elsewhere")
    one.say(user="last")
    hit = stored.find("needle", around=1).hits[0]
    assert [text for _entry, text in hit.around] == ["first", "last"]
    assert stored.find("needle").hits[0].around == ()


def test_the_best_hit_has_the_passage_that_speaks_of_it(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="filler " * 900 + "the marmot ate the \x1b[31mcable\x1b[0m" + " filler" * 900)
    snippet = stored.find("marmot cable").hits[0].passage.text
    assert "the marmot ate the cable" in snippet
    assert len(snippet) < 1300


def test_a_word_that_is_in_every_text_is_found(stored: Searched) -> None:
    talk = Talk(stored.store, "one")
    for _ in range(5):
        talk.say(user="the same word")
    assert stored.find("word").total == 5


def test_the_order_is_the_same_each_time(stored: Searched) -> None:
    for number in range(30):
        Talk(stored.store, f"s{number}").say(user="equal texts here")
    first = stored.found("equal texts", limit=30)
    assert stored.found("equal texts", limit=30) == first
    assert stored.found("equal texts", limit=7) == first[:7]


AWKWARD = [
    *("", " ", '"', '""', '"a', "*", "a*b*", "AND", "a AND", "NOT", "NEAR(a b)", "a OR"),
    *("said:x", "{a b}: c", "^a", "a + b", "-a", "(", ")", "';--", "\0", "a\0b", "\ud83d"),
    *("漢字", "e\u0301", "%_\\", "a" * 10_000, "a " * 10_000, "\u2028", "١٢٣", "ﬁ", "İ"),
]


@pytest.mark.parametrize("query", AWKWARD)
def test_any_text_is_a_query(stored: Searched, query: str) -> None:
    talk = Talk(stored.store, "one")
    talk.say(user="a b said x NEAR e\u0301 漢字", assistant="\ud83d \0 odd")
    assert stored.find(query).total <= 3


def test_random_texts_are_queries(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="a text to look through")

    @given(st.text())
    def finds(query: str) -> None:
        assert stored.find(query).total <= 1

    finds()


def test_a_call_of_a_history_is_as_old_as_its_message(stored: Searched) -> None:
    call = Talk(stored.store, "one").run("bash", "gecko", asked_ms=START_MS)
    hit = stored.find("gecko").hits[0]
    assert (hit.entry.document, hit.entry.time_ms) == (call, START_MS)


def test_a_call_that_is_stored_after_its_turn_has_the_time_of_its_history(stored: Searched) -> None:
    made = Provenance(origin="claude-code a.jsonl", generator="tool", **{AT_MS: START_MS})
    call = ToolcallDocument(id="call-late", tool="bash", content="gecko", provenance=made)
    stored.store.commit(Batch(puts=[call.seal()]))
    assert stored.find("gecko").hits[0].entry.time_ms == START_MS


def test_a_text_that_comes_after_its_turn_is_found_then(stored: Searched) -> None:
    blobs: dict[str, bytes] = {}
    asked = store_message({"role": "user", "content": "a late walrus"}, blobs)
    talk = Talk(stored.store, "one")
    turn = TurnDocument(id="turn:one:late", session="one", user=asked, user_turn=1)
    stored.store.commit(Batch(puts=[turn.seal()]))
    assert stored.found("walrus") == []
    stored.store.commit(Batch(blobs=blobs))
    talk.say(user="something else")
    assert stored.found("walrus") == ["turn:one:late"]
