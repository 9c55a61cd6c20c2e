"""What can be told of contents after a pause: the fit, and what is noted of recorded sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck_bench.foreseen import FEATURES, Met, main, met_in, report
from foredeck_bench.logistic import Observed, area_under_curve, fit
from replay.recordings import SOURCE, Recording, call, text

HOUR_MS = 3_600_000


def paused() -> Recording:
    """A file and a listing are read; after a pause the file is edited."""
    recording = Recording()
    recording.user("Look at the source.")
    recording.run("t1", "read", SOURCE, path="src/a.ts")
    recording.run("t2", "bash", "the moduleRegistry\n" + "total 3\n" * 200, command="ls -la")
    for number in range(9):
        recording.run(f"u{number}", "bash", f"output {number}\n" * 50, command=f"make {number}")
    recording.assistant(text("Read."))
    recording.user("Now rename value7.", wait_ms=HOUR_MS)
    edits = [{"oldText": "value7 =", "newText": "seven ="}]
    recording.assistant(call("t3", "edit", path="src/a.ts", edits=edits), stop="toolUse")
    recording.result("t3", "edit", text("Successfully replaced 1 block(s) in src/a.ts."))
    recording.run("t4", "bash", "nothing\n" * 9, command="grep moduleRegistry src")
    recording.assistant(text("Done."))
    return recording


def test_what_was_needed_after_a_pause_is_told_from_what_was_not(tmp_path: Path) -> None:
    met = met_in(paused().write(tmp_path / "me__app__1.jsonl"))
    read, listing, *others = met
    assert (read.edited, read.named) == (True, False)
    assert (listing.edited, listing.named) == (False, True)
    assert len(others) == 9
    assert not any(each.edited or each.named for each in others)
    known = dict(zip(FEATURES, read.row, strict=True))
    assert (known["a read"], known["code"]) == (True, True)
    assert known["calls since its last use"] > known["turns since"] > 0


def test_without_a_pause_there_is_nothing_to_tell(tmp_path: Path) -> None:
    recording = Recording()
    recording.user("Look.")
    recording.run("t1", "read", SOURCE, path="src/a.ts")
    recording.assistant(text("Read."))
    assert met_in(recording.write(tmp_path / "me__app__1.jsonl")) == []


def test_each_repository_is_judged_by_a_fit_without_it() -> None:
    def row(size: float) -> tuple[float, ...]:
        return (1.0, size, *[0.0] * (len(FEATURES) - 2))

    large = [Met(row(5 + n / 10), edited=True, named=n > 1) for n in range(4)]
    small = [Met(row(n / 10), edited=False, named=False) for n in range(20)]
    lines = "\n".join(report([("me/a", large + small), ("me/b", large + small)]))
    [edited, _] = lines.split("named within 40 calls:")
    assert [line.split()[-1] for line in edited.splitlines() if line.startswith("me/")] == [
        "1.00",
        "1.00",
    ]


def test_the_fit_finds_the_chances_that_it_was_given() -> None:
    cases = [
        Observed((1.0, float(side)), n < often)
        for side, often in ((0, 100), (1, 700))
        for n in range(1000)
    ]
    fitted = fit(cases)
    assert fitted.chance((1.0, 0.0)) == pytest.approx(0.1, abs=0.01)
    assert fitted.chance((1.0, 1.0)) == pytest.approx(0.7, abs=0.01)
    thinned = [case for case in cases if case.happened]
    thinned += [Observed(c.row, False, 4.0) for c in [c for c in cases if not c.happened][::4]]
    assert fit(thinned).chance((1.0, 1.0)) == pytest.approx(0.7, abs=0.01)
    with pytest.raises(ValueError, match="no cases"):
        fit([])


def test_the_area_counts_ties_half() -> None:
    assert area_under_curve([(0.1, False), (0.9, True)]) == 1.0
    assert area_under_curve([(0.5, False), (0.5, True)]) == 0.5
    assert area_under_curve([(0.1, False), (0.5, True), (0.5, False)]) == 0.75
    assert area_under_curve([(0.1, False)]) is None


def test_a_path_without_sessions_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err
