"""The picture of a comparison, and the page that shows it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.replay.options import ReplayOptions
from foredeck_bench import compare
from foredeck_bench import economics_page as page
from foredeck_bench.judging.plot import Point, frontier_svg, unbeaten
from foredeck_bench.judging.replaying import RIVALS, Compared, Way, rivals
from replay.recordings import Recording, text

SVG = "{http://www.w3.org/2000/svg}"


def row(name: str, cost: float | None, edits: float | None = 95.0, all_in: float = 0.0) -> Any:
    return {
        "row": name,
        "cost_percent": cost,
        "all_in_percent": all_in or cost,
        "worst_percent": cost,
        "edit_evidence_percent": edits,
        "identifier_evidence_percent": 97.0,
        "mean_tokens": 12_000,
        "peak_tokens": 150_000,
        "lost_tokens": {"expiry": 1000},
        "rebases": {"pays": 3},
    }


ROWS = [
    row("plain Pi", 100.0, 98.0, 105.0),
    row("pools, seed-window", 435.0, 83.6),
    row("anchored, adaptive", 57.0, 96.0, 66.0),
    row("anchored, <lean> & \"mean\"", 53.0, 89.0),
]  # fmt: skip


def test_the_picture_is_sound_and_names_every_row() -> None:
    root = ET.fromstring(frontier_svg(ROWS, "A title & more"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "A title & more" in texts
    for label in ("plain Pi", "adaptive", '<lean> & "mean"'):
        assert texts.count(label) == 2
    assert "pools, seed-window (cost 435, in view 84)" in texts
    circles = [c for c in root.iter(f"{SVG}circle") if c.get("r") == "4.5"]
    assert len(circles) == 8
    for circle in circles:
        assert 0 < float(circle.get("cx") or 0) < 980
        assert 0 < float(circle.get("cy") or 0) < 480


@given(
    st.lists(st.tuples(st.floats(30, 140), st.floats(50, 100)), min_size=1, max_size=20),
)
def test_nothing_beats_what_stands_on_the_line(pairs: list[tuple[float, float]]) -> None:
    points = [Point("x", cost, cost, evidence) for cost, evidence in pairs]
    line = unbeaten(points)
    assert line
    for kept in line:
        assert not any(
            p.cost <= kept.cost
            and p.evidence >= kept.evidence
            and (p.cost, p.evidence) != (kept.cost, kept.evidence)
            for p in points
        )
    costs, evidences = [p.cost for p in line], [p.evidence for p in line]
    assert (costs, evidences) == (sorted(costs), sorted(evidences))


def test_the_rivals_differ_from_what_is_asked_and_one_has_no_digests() -> None:
    options = ReplayOptions(settings=("adaptive.patience=9",))
    others = rivals(options)
    assert len(others) == len(RIVALS)
    assert others[-1].label == f"{Way(options).label}, no digests"
    assert others[-1].options.settings == ("adaptive.patience=9", "digests.max_tokens=0")


def session(folder: Path) -> Path:
    recording = Recording()
    for number in range(3):
        recording.user(f"Question {number}: " + "word " * 200)
        recording.assistant(text("Yes."))
    return recording.write(folder / "one.jsonl")


def test_the_comparison_is_printed_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cost.svg"
    assert compare.main([str(session(tmp_path)), "--plot", str(file)]) == 0
    assert "1 recorded session, 3 calls" in file.read_text()
    ET.fromstring(file.read_text())
    assert "anchored, adaptive, no digests" in capsys.readouterr().out
    assert compare.main([str(session(tmp_path)), "--plot", str(tmp_path / "no" / "x.svg")]) == 1
    told = capsys.readouterr()
    assert ("not writable" in told.err, told.out) == (True, ""), "before anything is replayed"


def test_the_page_is_made_between_its_marks(tmp_path: Path) -> None:
    file = tmp_path / "economics.md"
    file.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    results = {cache: Compared(2, 1234, table=ROWS) for cache in page.CACHES}
    page.write(file, results)
    made = file.read_text()
    page.write(file, results)
    assert file.read_text() == made
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert "old" not in made
    assert "2 recorded sessions, 1,234 calls; 0 invalid prompts, 0 errors." in made
    assert "| anchored, adaptive | 57.0% | 57.0% | 66.0% | 66.0% | 57.0% | 96.0% | 97.0% |" in made
    ET.fromstring(file.with_suffix(".svg").read_text())


def test_the_page_of_this_repository_has_its_marks() -> None:
    text_ = page.PAGE.read_text()
    assert (text_.count(page.BEGIN), text_.count(page.END)) == (1, 1)


def test_the_readme_has_the_figure_of_the_page(tmp_path: Path) -> None:
    line = page.saved(page.PAGE.read_text())
    assert f"{page.SAVED_BEGIN}\n{line}\n{page.SAVED_END}" in page.README.read_text()
    assert re.fullmatch(r"\*\*Input that costs \$100 with plain Pi costs \$\d+ .*", line)
    readme = tmp_path / "README.md"
    readme.write_text(f"# x\n\n{page.SAVED_BEGIN}\nold\n{page.SAVED_END}\n\nrest\n")
    page.write_saved(readme, page.PAGE)
    assert readme.read_text() == (f"# x\n\n{page.SAVED_BEGIN}\n{line}\n{page.SAVED_END}\n\nrest\n")


def test_a_file_that_is_no_session_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second.jsonl").write_text("{}\n")
    session(tmp_path)
    assert compare.main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "second.jsonl: TranscriptError" in printed.err
    assert "2 recorded sessions, 3 calls" in printed.out


def test_tools_that_are_declared_are_paid_for_and_the_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, costs = session(tmp_path), {}
    for tools in ("none", "context,search", "search,context", "context,search,tasks"):
        assert compare.main([str(path), "--tools", tools, "--observations", "--json"]) == 0
        rows = {row["row"]: row["cost"] for row in json.loads(capsys.readouterr().out)}
        costs[tools] = rows["anchored, adaptive"] - rows["plain Pi"]
    assert costs["none"] == 0
    assert costs["none"] < costs["context,search"] < costs["context,search,tasks"]
    assert costs["search,context"] == costs["context,search"]
