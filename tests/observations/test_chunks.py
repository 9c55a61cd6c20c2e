"""Which stretch is observed next: nothing is cut within a batch, counted twice, or left out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foredeck.observations.chunks import (
    Chunk,
    ChunkRules,
    Position,
    SourceMessage,
    ends_of_batches,
    next_chunk,
    pending_tokens,
    tokens_of,
)
from observations.chat import answer, result, rounds, user

RULES = ChunkRules(least=2000, most=5000)


def test_too_little_is_not_observed_unless_the_user_asks() -> None:
    chat = rounds(1)
    assert next_chunk(chat, Position(), RULES) is None
    assert next_chunk(chat, Position(), RULES, least=1) is not None


def test_a_chunk_that_costs_too_much_waits_and_grows() -> None:
    chat, more = rounds(3), rounds(4)
    dear = next_chunk(chat, Position(), RULES, lambda chunk: chunk.tokens >= 4000)
    later = next_chunk(more, Position(), RULES, lambda chunk: chunk.tokens >= 4000)
    assert dear is None
    assert len(later.messages) == len(more)


def test_results_count_for_what_is_shown_of_them() -> None:
    chat = [answer("read", "big", tokens=100), result("big", "x" * 400_000, tokens=100_000)]
    chunk = next_chunk(chat, Position(), RULES)
    assert chunk.tokens == 100_100


def test_one_huge_message_is_observed_in_parts_and_its_end_with_its_answer() -> None:
    huge = user("word " * 10_000, tokens=12_000)
    chat = [
        user("first", tokens=500),
        answer("yes", tokens=600),
        huge,
        answer("read it"),
        user("n"),
    ]
    chunks = list(_all(chat, replace(RULES, least=1)))
    assert [chunk.covers for chunk in chunks] == [
        [chat[0].address, chat[1].address],
        [],
        [],
        [huge.address, chat[3].address],
    ]
    assert "".join(chunk.text_of(huge) for chunk in chunks[1:]) == huge.text
    assert abs(sum(chunk.tokens for chunk in chunks) - tokens_of(chat[:4])) <= 3


def test_a_huge_message_that_nothing_answers_yet_waits() -> None:
    assert next_chunk([user("word " * 10_000, tokens=12_000)], Position(), RULES) is None


def _all(chat: list[SourceMessage], rules: ChunkRules) -> list[Chunk]:
    found, position = [], Position()
    while chunk := next_chunk(chat, position, rules):
        found.append(chunk)
        part = chunk.part
        done = position.messages + len(chunk.covers)
        position = Position(done, part.end if part and part.end < part.length else 0)
    return found


PIECES = st.sampled_from(["user", "answer", "calls", "huge user", "huge calls", "open", "void"])


def _chat(pieces: list[str]) -> list[SourceMessage]:
    chat: list[SourceMessage] = []
    for n, piece in enumerate(pieces):
        text, tokens = (f"{n} " + "w " * 30_000, 15_000) if "huge" in piece else (f"{n}", 700)
        if "user" in piece:
            chat.append(user(text, tokens=tokens))
        elif piece == "answer":
            chat.append(answer(text, tokens=tokens))
        elif piece == "void":
            chat.append(replace(answer(text, f"v{n}", tokens=tokens), unsent=True))
        elif piece == "open":
            chat.append(answer(text, f"o{n}", tokens=tokens))
        else:
            chat += [answer(text, f"x{n}", f"y{n}", tokens=tokens), result(f"x{n}", f"rx{n}")]
            chat.append(result(f"y{n}", f"ry{n}"))
    return chat


@given(st.lists(PIECES, max_size=14))
def test_every_message_up_to_the_last_end_is_observed_once_and_no_batch_is_cut(
    pieces: list[str],
) -> None:
    chat = _chat(pieces)
    chunks = _all(chat, replace(RULES, least=1))
    covered = [address for chunk in chunks for address in chunk.covers]
    ends = ends_of_batches(chat)
    assert covered == [message.address for message in chat[: ends[-1] if ends else 0]]
    for chunk in chunks:
        waiting = {c.id for m in chunk.messages if not m.unsent for c in m.calls}
        answered = {m.call_id for m in chunk.messages if m.kind == "result"}
        whole = chunk.part is None or chunk.part.end == chunk.part.length
        assert not whole or answered >= {c for c in waiting if not c.startswith("o")}


@given(st.lists(PIECES, max_size=10), st.integers(0, 5))
def test_what_is_observed_no_longer_counts_as_pending(pieces: list[str], after: int) -> None:
    chat = _chat(pieces)
    chunks = _all(chat, replace(RULES, least=1))[:after]
    done = sum(len(chunk.covers) for chunk in chunks)
    part = chunks[-1].part if chunks else None
    chars = part.end if part and part.end < part.length else 0
    pending = pending_tokens(chat, Position(done, chars))
    assert abs(pending + sum(c.tokens for c in chunks) - tokens_of(chat)) <= len(chunks) + 1
