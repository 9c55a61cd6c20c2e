"""How much of what was written an observer is shown."""

from __future__ import annotations

from pathlib import Path

from foredeck.observations.chunks import ChunkRules
from foredeck_bench.excerpts import chunks_of, measure_excerpts, question_about, total_of
from replay.recordings import Recording, text


def recorded(folder: Path) -> Path:
    recording = Recording()
    recording.user("Write the parser.")
    for number in range(24):
        content = "\n".join(f"def parse_{number}_{n}(row): return {n}" for n in range(120))
        recording.run(f"w{number}", "write", "Wrote it.", path=f"p{number}.py", content=content)
    recording.run("e", "edit", "Done.", path="p1.py", oldText="parse_1_1", newText="parse_1_one")
    recording.assistant(text("The parser is written."))
    return recording.write(folder / "parser.jsonl")


def test_names_that_were_written_are_counted_and_shown(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    found = measure_excerpts(path)
    assert found.chunks > 1
    assert found.names > 2000
    assert 0.3 < found.share < 1, "what is written is more than there is room for"
    assert found.excerpt_tokens < 0.5 * found.tokens
    total = total_of([found, found])
    assert (total.names, total.share) == (2 * found.names, found.share)
    first = next(chunks_of(path, ChunkRules()))
    assert "def parse_0_0(row)" in question_about(first).text
