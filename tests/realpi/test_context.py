"""What reaches the provider when foredeck runs inside the real Pi."""

from __future__ import annotations

import re

from foredeck.model.quoting import block
from foredeck_bench.scripted import Reply, call
from foredeck_bench.twin.request import ModelRequest
from foredeck_bench.twin.steps import Script, Step
from harness import Pi, both_versions
from observed import answered, assert_stable, results

LONG = "\n".join(f"line {n}: the quick brown fox jumps over the lazy dog" for n in range(120))


@both_versions
def test_results_carry_handles_and_rereads_collapse(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve(
        [
            [call("read", path="a.txt")],
            [call("read", path="a.txt")],
            [call("read", path="a.txt", offset=10, limit=20)],
            "done",
        ]
    )
    run = pi.print("look", foredeck=True)
    assert (run.code, model.violations) == (0, [])
    first, second, third = results(model.requests[-1])
    assert first.endswith(LONG)
    assert re.match(r"@\d+\n", first)
    handle = first.split("\n", 1)[0]
    assert second == f"Unchanged: the same as {handle} above."
    assert third == f"Unchanged: these lines are in {handle} above."
    assert run.stdout.strip() == "done"


def test_what_was_sent_stays_as_it_was_sent(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(LONG)
    script: Script = [
        [call("read", path="a.txt"), call("bash", command="seq 300")],
        [call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}])],
        [call("read", path="a.txt")],
        [call("activate", id="a.txt")],
        [call("bash", command="exit 3")],
        "done",
        [call("pin", id="a.txt"), call("read", path="nowhere.txt")],
        [call("deactivate", id="a.txt")],
        "done",
    ]
    model = pi.serve(script)
    assert pi.print("work", "go on", foredeck=True).code == 0
    assert model.violations == []
    assert model.steps_left == 0
    assert_stable(answered(model))


def test_old_output_comes_back_by_its_handle(pi: Pi) -> None:
    """The window is small, so that the high-water mark makes older output go."""

    def bring_back(request: ModelRequest) -> Reply:
        oldest = next(iter(request.results.values()))
        handle = oldest.split()[0]
        return Reply((call("activate", id=handle),))

    steps: list[Step] = [
        [call("bash", command=f"seq {start} {start + 900}")] for start in (1, 2000, 4000, 6000)
    ]
    model = pi.serve([*steps, bring_back, "done"], context_window=6000)
    run = pi.print("count", foredeck=True)
    assert (run.code, run.stdout.strip(), model.violations) == (0, "done", [])
    folded = model.requests[4].request
    oldest = next(iter(folded.results.values()))
    assert re.match(r"@\d+ folded: 901 lines, \d+ chars\b", oldest)
    brought = results(model.requests[5])[-1]
    assert brought.split("\n")[1:4] == ["1", "2", "3"]


def test_a_long_answer_folds_in_a_later_turn_and_comes_back(pi: Pi) -> None:
    eager = {
        "FOREDECK_ADAPTIVE__PATIENCE": "1",
        "FOREDECK_ADAPTIVE__FOLD_ANSWERS": "true",
        "FOREDECK_REBASE__CARRYING_FACTOR": "0",
        "FOREDECK_REBASE__GAP": "0",
        "FOREDECK_REBASE__GUARD": "10",
    }

    def fetch(request: ModelRequest) -> Reply:
        found = re.search(r'<activate \\?"(@\d+ turn \d+)\\?": \d+ chars folded>', request.text)
        assert found is not None
        return [call("activate", id=found[1])]

    model = pi.serve([LONG, "one", "two", "three", fetch, "done"])
    run = pi.print("plan", "a", "b", "c", "what was the plan?", foredeck=True, environment=eager)
    assert (run.code, model.violations) == (0, [])
    before, last = model.requests[-2:]
    assert LONG not in before.request.text
    assert LONG[:200] in before.request.text
    assert block(LONG) in results(last)[-1]
