"""The vault that `foredeck bench notes` makes: always the same, and with all that is awkward."""

from __future__ import annotations

from pathlib import Path

from foredeck.notes.markdown import parse_note
from foredeck_bench.vault import measure_vault, write_vault


def test_the_vault_is_always_the_same_and_awkward(tmp_path: Path) -> None:
    paths = write_vault(tmp_path / "one", 200)
    again = write_vault(tmp_path / "two", 200)
    assert len(set(paths)) == 200
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    parsed = [parse_note(path.read_text(encoding="utf-8")) for path in paths]
    assert not [problem for note in parsed for problem in note.problems]
    relations = {reference.relation for note in parsed for reference in note.references}
    assert relations == {"parent", "mentions", "embeds"}


def test_a_small_vault_is_measured() -> None:
    found = measure_vault(150)
    assert found["notes"] == 150
    assert min(found["broken"], found["ambiguous"], found["neighbours_nodes"]) > 0
