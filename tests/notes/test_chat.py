"""Links in chat messages: through the layer the same as by reading every message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from foredeck.derived.follower import Follower
from foredeck.model.documents import ChatDocument, chat_id, session_object_id
from foredeck.model.messages import load_message, store_message
from foredeck.model.records import TurnDocument, turn_id
from foredeck.notes.graph import Graph
from foredeck.notes.layer import read_chats
from foredeck.notes.markdown import parse_note
from foredeck.notes.parsed import MENTIONS, Reference
from foredeck.notes.resolving import references_of
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite

from .test_graph import PROVENANCE, document, id_of

Message = dict[str, Any]
Turn = tuple[str, int, list[Message], Message | None, Message | None]
"""Session, number, other messages, the user's, the answer."""

SAID = st.sampled_from(
    [
        *("see [[Tides]]", "![[Tides]] [[Tides#Low|that]]", "`[[code]]`", "\\[[no]]", "[x](a.md)"),
        *("```\n[[fenced]]\n```", "```\nopen [[fence]]", "[[@3]] and [[@3 v2]]", "if [[ -f x ]]"),
        *("---\nparent: '[[Sea]]'\n---\n[[b]]", "[[\udce4]]", "É 🌊 [[潮|海]]", "", "[[", "# no"),
    ]
)
LONG = st.builds(lambda said, times: "word " * times + said, SAID, st.sampled_from([0, 0, 200]))
BLOCKS = st.one_of(
    LONG.map(lambda text: {"type": "text", "text": text}),
    LONG.map(lambda text: {"type": "thinking", "thinking": text}),
    st.just({"type": "toolCall", "id": "c", "name": "x", "arguments": {"a": ["[[not said]]"]}}),
    st.just({"type": "image", "data": "QUJD" * 300, "mimeType": "image/png"}),
)
ROLES = st.sampled_from(["user", "assistant", "toolResult", "custom", "bashExecution"])
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content, "output": "[[printed]]"},
    ROLES,
    st.one_of(LONG, st.lists(BLOCKS, max_size=3)),
)
MAYBE = st.one_of(st.none(), MESSAGES)
TURNS = st.tuples(
    *(st.sampled_from(["s1", "s2"]), st.integers(1, 3), st.lists(MESSAGES, max_size=2)),
    *(MAYBE, MAYBE),
)


def plain(turn: Turn) -> Iterator[Reference]:
    """The links of a turn, by reading all of it."""
    _, number, others, user, assistant = turn
    named = [(f"others[{at}]", message) for at, message in enumerate(others)]
    for field, message in [*named, ("user", user), ("assistant", assistant)]:
        if message is None or message["role"] not in ("user", "assistant"):
            continue
        content = message["content"]
        if not isinstance(content, str):
            content = "\n".join(block["text"] for block in content if block["type"] == "text")
        for reference in parse_note(content).references:
            if reference.style == "wiki":
                place = f"turns[{number}].{field}"
                yield replace(reference, relation=MENTIONS, field=place)


def commit(store: Store, turn: Turn) -> None:
    session, number, others, user, assistant = turn
    blobs: dict[str, bytes] = {}
    stored = TurnDocument(
        id=turn_id(session, number),
        session=session,
        others=[store_message(message, blobs) for message in others],
        user=None if user is None else store_message(user, blobs),
        assistant=None if assistant is None else store_message(assistant, blobs),
    )
    chat = ChatDocument(
        id=chat_id(session),
        session_ref=session_object_id(session),
        turn_count=number,
        provenance=PROVENANCE.model_copy(deep=True),
    )
    store.commit(Batch(puts=[stored.seal(), chat.seal()], blobs=blobs))


def said_in(follower: Follower, session: str) -> list[Reference]:
    """The references of a chat but the one to its session, as the layer has them."""
    query = "SELECT number FROM object WHERE id = ?"
    row = follower.db.execute(query, (chat_id(session),)).fetchone()
    found = [row.reference for row in references_of(follower.db, row or ())]
    return [reference for reference in found if reference.style != "id"]


def check(store: Store, home: Path, turns: Sequence[Turn]) -> None:
    newest: dict[tuple[str, int], Turn] = {}
    with closing(store), Follower(store, "notes", home, batch=2) as follower:
        for turn in turns:
            commit(store, turn)
            newest[turn[:2]] = turn
            if turn[1] == 2:
                follower.catch_up()
                read_chats(follower, store)
        for again in (False, True):
            follower.make_again() if again else follower.catch_up()
            read_chats(follower, store)
            for session in ("s1", "s2"):
                here = [newest[key] for key in sorted(newest) if key[0] == session]
                assert said_in(follower, session) == [r for turn in here for r in plain(turn)]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=st.lists(TURNS, max_size=6))
def test_links_in_messages_are_those_of_reading_every_message(turns: list[Turn]) -> None:
    with TemporaryDirectory() as folder:
        check(open_sqlite(Path(folder) / "store.db"), Path(folder), turns)


def user(text: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_a_note_has_the_chats_that_mention_it_as_backlinks(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "store.db")
    with closing(store), Follower(store, "notes", tmp_path) as follower:
        for number, text in enumerate(("first [[Tides]]", "nothing", "[[v/a]], [[a]]"), 1):
            commit(store, ("s1", number, [], user(text), user("[[Tides#Low|so]]")))
        # A note that appears after it was named.
        store.commit(Batch(puts=[document("/v/a.md", "# Tides\n")]))
        follower.catch_up()
        assert Graph(follower.db).backlinks(id_of("/v/a.md")) == []
        assert read_chats(follower, store) == 3
        assert read_chats(follower, store) == 0
        edges = Graph(follower.db).backlinks(id_of("/v/a.md"))
    assert {(edge.source, edge.reference.relation) for edge in edges} == {("chat:s1", MENTIONS)}
    assert [(e.reference.field, e.reference.start, e.reference.end) for e in edges] == [
        *(("turns[1].user", 6, 15), ("turns[1].assistant", 0, 16), ("turns[2].assistant", 0, 16)),
        *(("turns[3].user", 0, 7), ("turns[3].user", 9, 14), ("turns[3].assistant", 0, 16)),
    ]


def test_a_reader_whose_time_ends_has_the_newest_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foredeck.notes.layer.CHUNK", 1)
    store = open_sqlite(tmp_path / "store.db")

    def stop() -> None:
        raise TimeoutError

    with closing(store), Follower(store, "notes", tmp_path) as follower:
        for number in (1, 2, 3):
            commit(store, ("s1", number, [], user(f"[[note {number}]]"), None))
        follower.catch_up()
        with pytest.raises(TimeoutError):
            read_chats(follower, store, stop)
        assert [r.target for r in said_in(follower, "s1")] == ["note 3"]
        assert read_chats(follower, store) == 2
        assert [r.target for r in said_in(follower, "s1")] == ["note 1", "note 2", "note 3"]


def test_a_message_that_is_gone_or_is_no_message_has_no_links(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "store.db")
    blobs: dict[str, bytes] = {}
    lost = store_message(user("[[lost]]"), {})
    address = store_message({"role": "user", "content": [["[[deep]]"], None, 3]}, blobs)
    assert load_message(address, blobs.__getitem__)["role"] == "user"
    turn = TurnDocument(id=turn_id("s1", 1), session="s1", user=lost, assistant=address)
    with closing(store), Follower(store, "notes", tmp_path) as follower:
        store.commit(Batch(puts=[turn.seal()], blobs=blobs))
        follower.catch_up()
        assert read_chats(follower, store) == 1
        assert said_in(follower, "s1") == []
