"""The work log's layer: what sessions did, whatever batches it was taken in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from foredeck.derived import follower as following
from foredeck.derived.follower import Follower
from foredeck.model.documents import ToolcallDocument
from foredeck.model.messages import pack
from foredeck.model.tasks import TaskDocument
from foredeck.store.protocol import Batch
from foredeck.worklog import FinishedWork, SessionWork, done_by, folders
from search.sessions import START_MS, TEST, Searched, Talk, searched

CALLS = (
    ("bash", {"command": "gh pr diff 88 --stat"}, "unknown flag: --stat", True),
    ("bash", {"command": "gh pr diff 88 --name-only"}, "a.py", False),
    ("edit", {"path": "src/a.py", "oldText": "a", "newText": "b"}, "Edited", False),
    ("bash", {"command": "npm test"}, "Tests: 3 passed, 3 total\n\n12 passed", False),
    ("bash", {"command": "git commit -qm 'Say b'"}, "", False),
    ("bash", {"command": "ls"}, "a.py", False),
)


def layer_of(stored: Searched, *sessions: str) -> list[FinishedWork]:
    """What the layer has of sessions, brought up to date."""
    with Follower(stored.store, "worklog", stored.home) as follower:
        follower.catch_up()
        assert set(sessions) <= set(folders(follower.db))
        return done_by(follower.db, sessions)


def straight(session: str, picks: Sequence[int]) -> list[FinishedWork]:
    """The same without a layer."""
    work = SessionWork(session)
    done: list[FinishedWork] = []
    for number, pick in enumerate(picks):
        tool, arguments, output, failed = CALLS[pick]
        time_ms = START_MS + number * 1000
        thing = work.take(tool, arguments, output, failed=failed, time_ms=time_ms)
        done += [] if thing is None else [thing]
    return done


def play(stored: Searched, session: str, picks: Sequence[int]) -> None:
    talk = Talk(stored.store, session)
    for number, pick in enumerate(picks):
        tool, arguments, output, failed = CALLS[pick]
        talk.run(tool, output, failed, START_MS + number * 1000, **arguments)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(picks=st.lists(st.integers(0, len(CALLS) - 1), max_size=30), batch=st.integers(1, 7))
def test_it_says_what_the_calls_say(
    picks: list[int], batch: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with searched(tmp_path_factory.mktemp("home")) as stored, pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "BATCH", batch)
        play(stored, "s", picks)

        assert layer_of(stored, "s") == straight("s", picks)


def test_what_was_done_names_the_files_that_were_edited_for_it(stored: Searched) -> None:
    play(stored, "s", range(len(CALLS)))

    done = layer_of(stored, "s")

    assert [(thing.kind, thing.what, thing.how, thing.files) for thing in done] == [
        ("tests", "npm test", "12 passed", ("src/a.py",)),
        ("commit", "Say b", "", ("src/a.py",)),
    ]


def test_a_closed_task_is_done_until_it_is_opened_again(stored: Searched) -> None:
    Talk(stored.store, "s")
    closed = {"status": "closed", "close_reason": "completed", "closed_ms": START_MS}
    for fields in ({}, closed, {}, closed, {**closed, "close_reason": "wontfix"}, closed):
        task = TaskDocument(
            id="t1",
            project="p",
            title="Write it",
            session="s",
            created_ms=START_MS,
            updated_ms=START_MS,
            provenance=TEST,
            **fields,
        )
        stored.store.commit(Batch(puts=[task.seal()]))
        done = layer_of(stored, "s")
        is_done = fields.get("close_reason") == "completed"
        assert [thing.what for thing in done] == (["Write it"] if is_done else [])


def test_a_task_that_a_person_closed_is_its_projects(stored: Searched) -> None:
    Talk(stored.store, "s")
    task = TaskDocument(
        id="t1",
        project="p",
        title="Write it",
        status="closed",
        close_reason="completed",
        created_ms=START_MS,
        updated_ms=START_MS,
        provenance=TEST,
    )
    stored.store.commit(Batch(puts=[task.seal()]))

    with Follower(stored.store, "worklog", stored.home) as follower:
        follower.catch_up()
        assert [thing.what for thing in done_by(follower.db, [], "p")] == ["Write it"]
        assert done_by(follower.db, ["s"], "another") == []


def test_a_call_whose_text_was_out_of_reach_is_taken_in_later(stored: Searched) -> None:
    Talk(stored.store, "s")
    blobs: dict[str, bytes] = {}
    call = ToolcallDocument(
        id="c1",
        tool="bash",
        args=pack({"command": f"git commit -m 'Add a parser' -m '{'why ' * 200}'"}, blobs),
        status="ok",
        chat_ref="chat:s",
        content="",
        provenance=TEST,
    )
    stored.store.commit(Batch(puts=[call.seal()]))
    assert layer_of(stored, "s") == []

    Talk(stored.store, "other")
    stored.store.commit(Batch(blobs=blobs))
    Talk(stored.store, "third")
    assert [thing.what for thing in layer_of(stored, "s")] == ["Add a parser"]


def test_sessions_are_kept_apart(stored: Searched) -> None:
    play(stored, "one", [2])
    play(stored, "two", [4])

    assert layer_of(stored, "one") == []
    assert [work.files for work in layer_of(stored, "two")] == [()]


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        (
            "git add -A && git commit -m x",
            "[main 1a2b3c4] Add a parser\n 1 file changed",
            "Add a parser",
        ),
        ("git commit -am 'Fix it'", "", "Fix it"),
        ("git commit -m \"$(cat <<'EOF'\nLong subject\n\nBody\nEOF\n)\"", "", "Long subject"),
        ("git commit --amend --no-edit", "[a/b 1a2b3c4] Kept\n Date: now", "Kept"),
        (
            "git commit -m one && git commit --amend -m two",
            "[main 1a2b3c4] one\n 1 file changed\n[main 5d6e7f8] two\n Date: now\n 1 file changed",
            "two",
        ),
        ("git commit -m 'x' | tail -1", " 1 file changed, 1 insertion(+)", "x"),
        ("git commit --dry-run -m x", "On branch main\nChanges to be committed:\n\tnew: a", None),
        ("git commit -m x || true", "On branch main\nnothing to commit, working tree clean", None),
        ("git commit -m x | cat", 'no changes added to commit (use "git add")', None),
        ("git commit -m x 2>&1 | tail -2", "ruff.....Failed\n- hook id: ruff", None),
        ("git commit -qm x 2>&1 | tail -2", "error: gpg failed to sign the data", None),
        ("git log", "[main 1a2b3c4] Add", None),
        ("echo git commit -m x", "", None),
    ],
)
def test_commits(command: str, output: str, expected: str | None) -> None:
    work = SessionWork("s")

    found = work.take("bash", {"command": command}, output, failed=False, time_ms=1)

    assert (None if found is None else found.what) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("== 12 passed, 1 skipped in 0.3s ==", "12 passed, 1 skipped"),
        ("== 1 failed, 3 passed in 0.3s ==", None),
        ("ok  \tx/a\t0.3s\nok  \tx/b\t(cached)", "2 packages ok"),
        ("ok  \tx/a\t0.3s\nFAIL\tx/b\t0.1s", None),
        ("test result: ok. 3 passed; 0 failed; 0 ignored", None),
        ("Found 0 errors", None),
        ("...\n-----\nRan 3 tests in 0.001s\n\nOK (skipped=1)", "Ran 3 tests, OK (skipped=1)"),
        ("..F\n-----\nRan 3 tests in 0.001s\n\nFAILED (failures=1)", None),
    ],
)
def test_passing_runs(output: str, expected: str | None) -> None:
    found = SessionWork("s").take("bash", {"command": "make t"}, output, failed=False, time_ms=1)

    if output.startswith("test result: ok"):
        assert found.how.startswith("test result: ok")
    else:
        assert (None if found is None else found.how) == expected
