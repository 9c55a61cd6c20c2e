"""An engine that is missing, slow, wrong or dead: Pi goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faults import ASSEMBLE, WORK, complaints, count_of, hostile, sent_records, wait_for_count
from foredeck_bench.twin.script import ModelRequest, Step, Thinking, ToolCall, call
from harness import TEXT, Pi
from observed import (
    answered,
    assert_shows,
    assert_stable,
    calls_of,
    errors,
    messages,
    results,
    session_of,
    stored,
)

FAULTS = [
    (ASSEMBLE, 3, "ignore"),
    (ASSEMBLE, 1, "die-twice"),
    (ASSEMBLE, 3, "refuse"),
    (ASSEMBLE, 3, "misfit"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[2]}-{fault[1]}")
def test_one_call_without_an_answer(
    pi: Pi, checkout: Path, tmp_path: Path, fault: tuple[str, int, str]
) -> None:
    # Waited out once, and never too short for the requests that are answered.
    deadline_ms = 12_000 if fault[2] == "ignore" else None
    method, number, do = fault
    faults = [(method, number + n, "die") for n in (0, 1)] if do == "die-twice" else [fault]
    go_on_after(pi, tmp_path, hostile(checkout, tmp_path, *faults, deadline_ms=deadline_ms), fault)


def go_on_after(
    pi: Pi, tmp_path: Path, environment: dict[str, str], fault: tuple[str, int, str]
) -> None:
    """Work with an engine that fails at one request, and what must be true afterwards."""
    _, number, do = fault
    (pi.repo / "a.txt").write_text(TEXT)

    def once_recovered(_: ModelRequest) -> ToolCall:
        wait_for_count(tmp_path, "session/open", 3 if do == "die-twice" else 1)
        return call("bash", command="seq 500")

    model = pi.serve([*WORK[:-2], once_recovered, WORK[-1]])
    run = pi.print("work", foredeck=True, environment=environment)
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert len(complaints(run)) == 1
    assert "Pi goes on" in run.stderr
    assert_stable(answered(model))
    assert results(model.requests[-1])[-1].startswith("@")
    with stored(pi) as store:
        records = sent_records(store)
        kinds = [record.decision.kind for record in records]
        assert len(kinds) == len(model.requests)
        assert (kinds[number - 1], kinds[-1]) == ("host", "append")
        session = session_of(store)
        for record, request in zip(records, model.requests, strict=True):
            assert_shows(store, session, record.ordinal, request)


@pytest.mark.parametrize("fault", [(ASSEMBLE, 3, "die-answered"), ("tool/observed", 2, "die")])
def test_a_death_between_calls_loses_nothing(
    pi: Pi, checkout: Path, tmp_path: Path, fault: tuple[str, int, str]
) -> None:
    """Whether the next call waits for the new engine or not: the bytes go on, all is stored."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    run = pi.print("work", foredeck=True, environment=hostile(checkout, tmp_path, fault))
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert len(complaints(run)) <= 1
    assert_stable(answered(model))
    with stored(pi) as store:
        assert len(sent_records(store)) == len(model.requests)
        assert len(store.query("toolcall")) == len(results(model.requests[-1]))
        assert_shows(store, session_of(store), calls_of(store)[-1].ordinal, model.requests[-1])


@pytest.mark.parametrize("do", ["die", "die-committed", "die-answered"])
def test_a_death_changes_no_byte(pi: Pi, checkout: Path, tmp_path: Path, do: str) -> None:
    """The engine that comes after it sends what one that never died would send."""
    steady = worked(pi, list(WORK), {})
    for number in (1, 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        steps = list(WORK)
        if do == "die-answered":
            steps[number - 1] = once_replaced(folder, steps[number - 1])
        environment = hostile(checkout, folder, (ASSEMBLE, number, do))
        assert worked(pi, steps, environment) == steady, f"at call {number}"
        assert count_of(folder, ASSEMBLE) > number, f"call {number} went without it"


def worked(pi: Pi, steps: list[Step], environment: dict[str, str]) -> list[list[dict[str, Any]]]:
    """The messages of every request of one session of work, of which the user is told nothing."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(steps)
    run = pi.print("work", foredeck=True, environment=environment)
    assert (run.code, complaints(run)) == (0, [])
    return [messages(recorded) for recorded in answered(model)]


def once_replaced(tmp_path: Path, step: Step) -> Step:
    """The step, after a second engine has opened the session."""

    def wait(_: ModelRequest) -> Any:
        wait_for_count(tmp_path, "session/open", 2)
        return step

    return wait


def test_content_at_the_end_stays_where_a_turn_with_sealed_reasoning_goes_on_without_an_answer(
    pi: Pi, checkout: Path, tmp_path: Path
) -> None:
    """Under layout `pools`: the model refuses reasoning whose beginning was changed."""
    (pi.repo / "a.txt").write_text(TEXT)
    steps: list[Step] = [
        [Thinking("Read it."), call("read", path="a.txt")],
        [Thinking("Run."), call("bash", command="seq 300")],
        [Thinking("Once more."), call("bash", command="seq 400")],
        "worked",
    ]
    model = pi.serve(steps, reasoning=True)
    environment = hostile(checkout, tmp_path, (ASSEMBLE, 3, "refuse"))
    run = pi.print("work", foredeck=True, environment={**environment, "FOREDECK_LAYOUT": "pools"})
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert len(complaints(run)) == 1
    assert_stable(answered(model))
    assert all(TEXT in recorded.request.text for recorded in answered(model)[1:])
    with stored(pi) as store:
        records = sent_records(store)
        assert records[2].decision.kind == "host"
        for record, request in zip(records, model.requests, strict=True):
            assert_shows(store, session_of(store), record.ordinal, request)


def test_an_edit_that_no_engine_saw_is_still_the_agents_own(
    pi: Pi, checkout: Path, tmp_path: Path
) -> None:
    """The engine dies with the word of it; the next one must not call it somebody else's."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    fault = ("tool/observed", 4, "die")
    run = pi.print("work", foredeck=True, environment=hostile(checkout, tmp_path, fault))
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert "[foredeck]" not in model.requests[-1].request.text
    with stored(pi) as store:
        (file,) = store.query("file")
        assert len(store.history(file.id)) == 2
        (edit,) = store.query("toolcall", {"tool": "edit"})
        assert edit.fields["file_refs"] == [file.id]


@pytest.mark.parametrize("why", ["not there", "ends at once", "hang", "refuse"])
def test_an_engine_that_never_gets_ready(pi: Pi, checkout: Path, tmp_path: Path, why: str) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(WORK)
    if why == "not there":
        environment = {"FOREDECK_ENGINE": str(tmp_path / "no-such-engine")}
    elif why == "ends at once":
        environment = {"FOREDECK_ENGINE": "false"}
    else:
        faults = [("initialize", n, why) for n in range(1, 10)]
        deadline_ms = 500 if why == "hang" else None
        environment = hostile(checkout, tmp_path, *faults, deadline_ms=deadline_ms)
    run = pi.print("work", foredeck=True, environment=environment)
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert 1 <= len(complaints(run)) <= (2 if why == "ends at once" else 1)
    if why == "not there":
        assert "could not be started" in run.stderr
        assert "(plain Pi goes on)" in run.stderr
    assert results(model.requests[-1])[0] == TEXT
    assert_stable(answered(model))


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_tool_asks_the_next_engine_once_and_then_says_how_to_go_on(
    pi: Pi, checkout: Path, tmp_path: Path, deaths: int
) -> None:
    model = pi.serve([call("bash", command="seq 300"), call("activate", id="@3"), "done", "end"])
    faults = [("tool/call", n, "die") for n in range(1, deaths + 1)]
    run = pi.print("work", "on", foredeck=True, environment=hostile(checkout, tmp_path, *faults))
    assert run.code == 0
    told = results(model.requests[2])[-1]
    away = "The context manager is not available right now."
    assert told.startswith(away) == (deaths == 2)
    assert (told in errors(model.requests[2])) == (deaths == 2)
    assert_stable(answered(model))
