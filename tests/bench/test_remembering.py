"""Memory under bad conditions, as `foredeck bench memory` and `foredeck bench extraction` make
them."""

from __future__ import annotations

import json
from pathlib import Path

from foredeck_bench.remembering.crash import MOMENTS, crash_on
from foredeck_bench.remembering.recorded import measure_recorded
from foredeck_bench.remembering.worker import ACTS

SAID = (
    "Never use tabs in Python files of this project.",
    "Look into the parser and its tables, and tell me where they are.",
    "go on",
    "Never use tabs in Python files of this project.",
)
ANSWERED = "The parser stores its tables in `tables.py` here."


def test_every_act_may_be_cut_off_at_any_moment_of_a_commit() -> None:
    found = crash_on("sqlite", len(ACTS) * len(MOMENTS), 1, lambda _note: None)
    assert found["ok"], found
    assert found["killed"] == {f"{act} {moment}": 1 for act in ACTS for moment in MOMENTS}


def test_a_recorded_session_is_read_out(tmp_path: Path) -> None:
    header = {"type": "session", "version": 3, "id": "s-1", "cwd": "/repo"}
    lines = [header]
    for number, said in enumerate(SAID):
        texts = {"user": said, "assistant": ANSWERED}
        for role, text in texts.items():
            message = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1}
            if role == "assistant":
                message["usage"] = {"cost": {"total": 0.5}}
            id, parent = f"{role}-{number}", lines[-1]["id"] if len(lines) > 1 else None
            lines.append({"type": "message", "id": id, "parentId": parent, "message": message})
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = measure_recorded([file], lambda: None)
    assert (found["sessions"], found["questions"], found["unasked"]) == (1, 3, 1)
    assert found["kept"] == {"context": 2, "fact": 1, "preference": 1}
    assert found["refused"] == {"duplicate": 5}
    assert found["junk"] == {"kept": 1, "duplicates": 0, "unused": 0, "rate": 0.0}
    assert found["sessions_cost"] == 2.0
    assert found["cost"] > 0
