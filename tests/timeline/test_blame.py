"""Which version brought a line."""

from __future__ import annotations

import random
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foredeck.timeline.blame import line_origins, lines_of, returns_of
from with_git import git

TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "", "same"]), max_size=8).map("\n".join),
    min_size=1,
    max_size=6,
)


@given(TEXTS)
def test_each_line_has_an_origin_that_holds_it(texts: list[str]) -> None:
    origins = line_origins(texts)
    assert len(origins) == len(lines_of(texts[-1]))
    for line, origin in zip(lines_of(texts[-1]), origins, strict=True):
        # Every version from there on has the line, or it would have been brought again.
        assert all(line in lines_of(text) for text in texts[origin:])


def test_git_blames_the_same_versions(tmp_path: Path) -> None:
    """Each version is a commit; no line stands twice, so only one answer is right."""
    chosen = random.Random(5)
    lines = [f"line {number}" for number in range(60)]
    texts, commits = [], {}
    git(tmp_path, "init", "-q")
    for version in range(12):
        at = chosen.randrange(len(lines))
        lines[at : at + chosen.randrange(4)] = [
            f"{version}: {n}" for n in range(chosen.randrange(4))
        ]
        texts.append("".join(f"{line}\n" for line in lines))
        (tmp_path / "f").write_text(texts[-1])
        git(tmp_path, "add", "f")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", str(version))
        commits[git(tmp_path, "rev-parse", "HEAD").strip()] = version
    said = git(tmp_path, "blame", "--porcelain", "f")
    named = re.findall(r"^([0-9a-f]{40}) \d+ \d+", said, re.MULTILINE)
    assert line_origins(texts) == [commits[commit] for commit in named]


def test_a_text_that_is_an_earlier_one_again_has_its_lines() -> None:
    texts = ["a\n", "a\nb\n", "", "a\nb\n", "a\nc\n", "a\n"]
    assert returns_of(texts) == {3: 1, 5: 0}
    assert line_origins(texts[:4], returns_of(texts[:4])) == [0, 1]
    assert line_origins(texts[:5], returns_of(texts[:5])) == [0, 4]
    assert line_origins(texts, returns_of(texts)) == [0]
