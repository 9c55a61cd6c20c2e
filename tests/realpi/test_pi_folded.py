"""Whatever was folded in the real Pi comes back by the handle that stands in its place."""

from __future__ import annotations

import base64
import re

from foredeck_bench.twin.script import ModelRequest, Step, call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi
from observed import answered, errors, last_result
from pictures import png

LINE = "entry {}: nothing of note has happened since then, and nobody has asked for more of it\n"
LOG = "".join(LINE.format(n) for n in range(60_000))
"""Some 5 MB."""
NO_COMPACTION = {"compaction": {"enabled": False}}
FILLING = [
    call("bash", command=f"seq -f 'output {n} of %.0f, which is long enough' 400") for n in range(9)
]


def bring(request: ModelRequest) -> Step:
    """Ask for the first result by the handle of the line that stands in its place."""
    return call("activate", id=re.match(r"(@\d+) folded:", next(iter(request.results.values())))[1])


def run(pi: Pi, first: Step) -> ScriptedModel:
    """Play this step and then so many others that it is folded; then bring it back."""
    model = pi.serve(
        [first, *FILLING, bring, "done"], context_window=32_000, settings=NO_COMPACTION
    )
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stderr) == (0, "")
    assert errors(model.requests[-1]) == []
    return model


def test_a_part_of_a_log_of_five_megabytes(pi: Pi) -> None:
    (pi.repo / "big.log").write_text(LOG)
    read = call("read", path="big.log", offset=40_000, limit=100)

    model = run(pi, read)
    shown = "".join(LINE.format(n) for n in range(39_999, 40_099))
    assert shown not in answered(model)[-2].request.text
    assert shown.rstrip("\n") in last_result(model.requests[-1])


def test_an_image(pi: Pi) -> None:
    picture = png(400)
    (pi.repo / "shot.png").write_bytes(picture)
    data = base64.b64encode(picture).decode()

    model = run(pi, call("read", path="shot.png"))
    assert data not in str(answered(model)[-2].request.messages)
    assert str(model.requests[-1].request.newest).count(data) == 1
    assert "Read image file [image/png]" in last_result(model.requests[-1])
