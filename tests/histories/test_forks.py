"""Messages that several files have, or one file several times, count once: a fork, a resumed
session and a subagent's file repeat those that they go on from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_codex import item, meta, output
from test_codex import said as codex_said
from written_histories import START, ClaudeCode, claude_code_session, said, use, write_lines

from commands import Foredeck
from foredeck.config import Config
from foredeck.store.place import open_store
from foredeck.store.store import Store
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.recordings import load_recording

FIRST, SECOND, THIRD = (f"0199aaaa-0000-7000-8000-00000000000{n}" for n in "123")


def calls_in(tmp_path: Path, foredeck: Foredeck, *files: Path) -> int:
    found = foredeck.json(tmp_path / "state", "cost", "--histories", *files)
    assert found["unread"] == []
    return sum(total["calls"] for total in found["total"])


def pi(id: str, *texts: str, start: int = 0, parent: str = "", **header: Any) -> list[Any]:
    """Questions and answers of a session of Pi's, each in a chain; ids say only their number."""
    lines: list[Any] = [{"type": "session", "version": 3, "id": id, "cwd": "/repo", **header}]
    for number, text in enumerate(texts, start):
        for role in ("user", "assistant"):
            own = f"{role[0]}{number}"
            message = {
                "role": role,
                "content": [said(text)],
                "timestamp": 1_770_000_000_000 + number,
            }
            if role == "assistant":
                message |= {"provider": "anthropic", "model": "claude-x", "stopReason": "stop"}
            time = START.format(number)
            entry = {"type": "message", "id": own, "parentId": parent or None, "timestamp": time}
            lines.append({**entry, "message": message})
            parent = own
    return lines


def codex(id: str, *texts: str, time: str | None = None) -> list[Any]:
    lines = []
    for number, text in enumerate(texts):
        lines += [codex_said("user", text), item("function_call", name="x", call_id=f"{text}1")]
        lines += [output(f"{text}1", text), codex_said("assistant", f"{text} is done")]
        for line in lines[-4:]:
            line["timestamp"] = time or START.format(number)
    return [meta(id=id), *lines]


def test_a_fork_of_pis_costs_what_it_adds(tmp_path: Path, foredeck: Foredeck) -> None:
    first = write_lines(tmp_path / "1.jsonl", pi(FIRST, "a", "b", "c"))
    fork = pi(SECOND, "a", "b", "d", parentSession=f"/x/2026_{FIRST}.jsonl")
    second = write_lines(tmp_path / "2.jsonl", fork)
    assert calls_in(tmp_path, foredeck, first, second) == 4
    assert calls_in(tmp_path, foredeck, second, first) == 4
    assert calls_in(tmp_path, foredeck, second) == 3


def test_calls_of_models_with_a_price_and_without_are_summed_apart(
    tmp_path: Path, foredeck: Foredeck
) -> None:
    lines = pi(FIRST, "a", "b", "c")
    for line, model in zip(
        lines[2::2], ("claude-sonnet-4-5", "no-model", "claude-sonnet-4-5"), strict=True
    ):
        line["message"]["model"] = model
    file = write_lines(tmp_path / "1.jsonl", lines)
    totals = foredeck.json(tmp_path / "state", "cost", "--histories", file)["total"]
    assert {total["unit"]: total["calls"] for total in totals} == {
        "dollars": 2,
        "uncached input tokens": 1,
    }


def test_short_ids_that_two_sessions_share_are_two_messages(
    tmp_path: Path, foredeck: Foredeck
) -> None:
    first = write_lines(tmp_path / "1.jsonl", pi(FIRST, "a", "b"))
    second = write_lines(tmp_path / "2.jsonl", pi(SECOND, "c", "d"))
    assert calls_in(tmp_path, foredeck, first, second) == 4


def test_forks_of_codex_whose_copies_have_the_time_of_the_fork(
    tmp_path: Path, foredeck: Foredeck
) -> None:
    first = codex(FIRST, "a", "b", "b")
    copied = codex(FIRST, "a", "b", "b", "c", time=START.format(50))
    second = [meta(id=SECOND, forked_from_id=FIRST), *copied]
    third = [meta(id=THIRD, forked_from_id=SECOND), *second[:-4], *codex(THIRD, "d")[1:]]
    files = [write_lines(tmp_path / f"{n}.jsonl", f) for n, f in enumerate((first, second, third))]
    assert calls_in(tmp_path, foredeck, *files) == 10
    assert calls_in(tmp_path, foredeck, *files[1:]) == 10
    assert load_recording(files[1]).id == SECOND


def test_two_sessions_of_codex_that_begin_alike_are_two(tmp_path: Path, foredeck: Foredeck) -> None:
    files = [write_lines(tmp_path / f"{id}.jsonl", codex(id, "a")) for id in (FIRST, SECOND)]
    assert calls_in(tmp_path, foredeck, *files) == 4


def resumed() -> tuple[ClaudeCode, ClaudeCode]:
    """A session, and the file of one that goes on from its middle, with its lines first."""
    first, second = claude_code_session(FIRST), ClaudeCode(SECOND)
    second.lines = [*first.lines[:6]]
    second.user("Go on elsewhere.")
    second.answer("msg_9", said("Elsewhere."), stop_reason="end_turn")
    return first, second


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_file_that_begins_with_another_sessions_lines_leaves_that_whole(
    tmp_path: Path, store: Store, foredeck: Foredeck, order: tuple[int, int]
) -> None:
    files = [write_lines(tmp_path / f"{n}.jsonl", one.lines) for n, one in enumerate(resumed())]
    alone = open_store(Config(home=tmp_path / "alone"))
    ingest_files(alone, files[:1])
    assert ingest_files(store, [files[n] for n in order]).skipped == {}
    for session in (FIRST, SECOND):
        turns = [one.query("turn", {"session": session}) for one in (store, alone)]
        answers = [[head.fields["assistant"] for head in found] for found in turns]
        assert answers[0] == answers[1] if session == FIRST else len(answers[0]) == 1
    again = ingest_files(store, files)
    assert (again.new, again.grown, again.skipped) == (0, 0, {})
    alone.close()
    assert calls_in(tmp_path, foredeck, *files) == calls_in(tmp_path, foredeck, files[0]) + 1


def test_a_file_that_differs_is_still_named(tmp_path: Path, store: Store) -> None:
    first, second = resumed()
    second.lines[2] = {**second.lines[2], "message": {"id": "msg_0", "content": [said("No.")]}}
    files = [write_lines(tmp_path / f"{n}.jsonl", h.lines) for n, h in enumerate((first, second))]
    (reason,) = ingest_files(store, files).skipped.values()
    assert "differs from what was read" in reason


def test_a_subagents_copies_of_its_parents_messages_cost_nothing(
    tmp_path: Path, foredeck: Foredeck
) -> None:
    main_file = claude_code_session(FIRST)
    copies = [{**line, "isSidechain": True, "agentId": "beef01"} for line in main_file.lines[1:6]]
    agent = ClaudeCode(FIRST, isSidechain=True, agentId="beef01")
    agent.lines = copies
    agent.user("Look there.")
    agent.answer("msg_a", said("There."), stop_reason="end_turn")
    files = [
        write_lines(tmp_path / "main.jsonl", main_file.lines),
        write_lines(tmp_path / "agent-beef01.jsonl", agent.lines),
    ]
    assert calls_in(tmp_path, foredeck, *files) == calls_in(tmp_path, foredeck, files[0]) + 1


@pytest.mark.parametrize(
    "lines",
    [claude_code_session().lines, pi(FIRST, "a", "b"), codex(FIRST, "a", "b")],
    ids=["claude-code", "pi", "codex"],
)
@pytest.mark.parametrize("how", ["one after the other", "as a whole"])
def test_a_file_that_has_each_line_twice_is_the_same_session(
    tmp_path: Path, store: Store, foredeck: Foredeck, lines: list[Any], how: str
) -> None:
    double = [line for line in lines for _ in range(2)] if how[0] == "o" else lines * 2
    files = [write_lines(tmp_path / f"{n}.jsonl", each) for n, each in enumerate((lines, double))]
    once, twice = (ingest_files(None, [file], dry=True) for file in files)
    assert (once.messages, once.tool_calls) == (twice.messages, twice.tool_calls)
    assert calls_in(tmp_path, foredeck, files[0]) == calls_in(tmp_path, foredeck, files[1]) > 0
    once, twice = (load_recording(file) for file in files)
    assert [each.message for each in once.messages] == [each.message for each in twice.messages]
    ingest_files(store, [files[1]])
    turns = store.query("turn")
    assert len({head.fields["assistant"] for head in turns}) == len(turns)


def test_the_cost_of_a_file_is_that_of_all_its_branches(tmp_path: Path, foredeck: Foredeck) -> None:
    lines = [*pi(FIRST, "a", "b", "c"), *pi("", "d", "e", start=7, parent="a0")[1:]]
    file = write_lines(tmp_path / "1.jsonl", lines)
    assert foredeck.json(tmp_path / "state", "cost", file)["figure"]["calls"] == 5
    assert calls_in(tmp_path, foredeck, file) == 5
    assert [call.branch for call in load_recording(file, branches=True).calls] == [0, 1, 1, 0, 0]
    assert len(load_recording(file).calls) == 3


def test_a_search_shows_what_forks_repeat_once(
    tmp_path: Path, store: Store, foredeck: Foredeck
) -> None:
    word = "kingfisher"
    forks = [
        pi(FIRST, f"the {word} dives", "b"),
        pi(SECOND, f"the {word} dives", "c", parentSession=f"/x/2026_{FIRST}.jsonl"),
        codex(THIRD, f"a {word} waits"),
    ]
    again = codex(THIRD, f"a {word} waits", time=START.format(50))
    forks.append([meta(id=THIRD[:-1] + "4", forked_from_id=THIRD), *again])
    ingest_files(store, [write_lines(tmp_path / f"{n}.jsonl", f) for n, f in enumerate(forks)])
    hits = foredeck.json(tmp_path / "state", "search", word, "--type", "message")["hits"]
    said_by = [(hit["role"], hit["snippet"]) for hit in hits]
    assert len(said_by) == len(set(said_by)) == 4


def test_the_word_of_two_sessions_that_have_nothing_in_common_is_found_in_both(
    tmp_path: Path, store: Store, foredeck: Foredeck
) -> None:
    for id in (FIRST, SECOND):
        ingest_files(store, [write_lines(tmp_path / f"{id}.jsonl", pi(id, "the kingfisher"))])
    hits = foredeck.json(tmp_path / "state", "search", "kingfisher")["hits"]
    assert {hit["session"] for hit in hits} == {FIRST, SECOND}


def chain_of_pi(folder: str = "/repo") -> list[list[Any]]:
    second, third = (f"/x/2026_{id}.jsonl" for id in (FIRST, SECOND))
    return [
        pi(FIRST, "the kingfisher dives", "b", "c"),
        pi(SECOND, "the kingfisher dives", "b", "d", parentSession=second, cwd=folder),
        pi(THIRD, "the kingfisher dives", "b", "d", "e", parentSession=third),
    ]


def chain_of_codex() -> list[list[Any]]:
    copied = codex(FIRST, "kingfisher", "b", "c", time=START.format(50))
    second = [meta(id=SECOND, forked_from_id=FIRST), *copied]
    third = [meta(id=THIRD, forked_from_id=SECOND), *second[:-4], *codex(THIRD, "d")[1:]]
    return [codex(FIRST, "kingfisher", "b"), second, third]


def chain_of_claude_code() -> list[list[Any]]:
    """As `--fork-session` writes them: the same lines, under the new session's id."""
    files: list[list[Any]] = []
    for number, id in enumerate((FIRST, SECOND, THIRD)):
        history = ClaudeCode(id)
        history.lines = [{**line, "sessionId": id} for line in (files[-1] if files else [])]
        history.user("the kingfisher dives" if number == 0 else f"{number}")
        history.answer(f"m{number}", use(f"t{number}", "Bash", command=f"ls kingfisher {number}"))
        history.result(f"t{number}", "no such file")
        history.answer(f"n{number}", said(f"{number}: none"), stop_reason="end_turn")
        files.append(history.lines)
    return files


@pytest.mark.parametrize("order", ["012", "210", "102", "021"])
@pytest.mark.parametrize(
    ("chain", "calls", "hits"),
    [
        (chain_of_pi(), 5, 2),
        (chain_of_pi("/elsewhere"), 5, 2),
        (chain_of_codex(), 8, 3),
        (chain_of_claude_code(), 6, 4),
    ],
    ids=["pi", "pi in other folders", "codex", "claude-code"],
)
def test_a_fork_of_a_fork_is_counted_and_found_once_in_any_order(
    tmp_path: Path,
    store: Store,
    foredeck: Foredeck,
    chain: list[list[Any]],
    calls: int,
    hits: int,
    order: str,
) -> None:
    files = [write_lines(tmp_path / f"{n}.jsonl", lines) for n, lines in enumerate(chain)]
    for number in map(int, order):
        assert ingest_files(store, [files[number]]).skipped == {}
    again = ingest_files(store, files)
    assert (again.new, again.grown, again.skipped) == (0, 0, {})
    assert calls_in(tmp_path, foredeck, *files) == calls
    found = foredeck.json(tmp_path / "state", "search", "kingfisher")["hits"]
    assert len({(hit["type"], hit["role"], hit["snippet"]) for hit in found}) == len(found)
    assert len(found) <= hits


def test_a_parent_that_grows_after_its_fork_is_counted_and_found_once(
    tmp_path: Path, store: Store, foredeck: Foredeck
) -> None:
    parent = write_lines(tmp_path / "1.jsonl", chain_of_pi()[0][:-2])
    fork = write_lines(tmp_path / "2.jsonl", chain_of_pi()[1])
    ingest_files(store, [parent, fork])
    write_lines(parent, chain_of_pi()[0])
    assert ingest_files(store, [parent, fork]).grown == 1
    assert calls_in(tmp_path, foredeck, parent, fork) == 4
    found = foredeck.json(tmp_path / "state", "search", "kingfisher")["hits"]
    assert len(found) == len({hit["role"] for hit in found})
