"""The example of the page does what it says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from foredeck_bench.twin.script import ToolCall
from foredeck_bench.twin.server import ScriptedModel
from processes import run_program


def test_the_example_works(tmp_path: Path, checkout: Path) -> None:
    page = (checkout / "docs" / "library.md").read_text()
    example, _ = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(example.splitlines()) <= 50
    (tmp_path / "a.txt").write_text("the quick brown fox\n" * 100)
    script = [ToolCall("read", {"path": "a.txt"}), ToolCall("read", {"path": "a.txt"}), "A fox."]
    with ScriptedModel(script) as model:
        command = (sys.executable, "-c", example, model.url, "What is in a.txt?")
        environment = {**os.environ, "FOREDECK_HOME": str(tmp_path / "home")}
        run = run_program(*command, cwd=tmp_path, env=environment, timeout=120)
    assert (run.stdout, run.stderr) == ("A fox.\n", "")
    assert model.violations == []
    assert "Unchanged: the same as @" in model.requests[-1].request.text
