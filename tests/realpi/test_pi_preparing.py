"""A turn that reads many files in a row and then edits them, on each wire."""

from __future__ import annotations

import json

import pytest

from foredeck_bench.twin.script import Step, Thinking, call
from harness import Pi

NAMES = [f"part_{letter}" for letter in "abcdefgh"]

CHEAP = {"FOREDECK_REBASE__CARRYING_FACTOR": "0", "FOREDECK_REBASE__GUARD": "10"}
"""So that whatever may go does."""


def old_text(name: str) -> str:
    return f"def {name}_first():\n    return 1\n"


def source(name: str) -> str:
    """A file of 16,000 characters, of which one piece is edited."""
    return "".join(f"# {name} line {n:04}: nothing happens here\n" for n in range(380)) + old_text(
        name
    )


def turn(*, sealed: bool) -> list[Step]:
    """Reads all files, one in each call, then edits them in the same order."""
    reads = [call("read", path=f"{name}.py") for name in NAMES]
    edits = [
        call("edit", path=f"{name}.py", oldText=old_text(name), newText=f"def {name}(): ...\n")
        for name in NAMES
    ]
    thought = [Thinking("", redacted=True)] if sealed else []
    return [*([*thought, asked] for asked in [*reads, *edits]), "done"]


@pytest.mark.parametrize(
    ("api", "sealed"), [("anthropic-messages", False), ("openai-responses", True)]
)
def test_what_a_turn_has_read_stays_until_it_edits_it(pi: Pi, api: str, sealed: bool) -> None:
    for name in NAMES:
        (pi.repo / f"{name}.py").write_text(source(name))
    model = pi.serve(turn(sealed=sealed), api=api, reasoning=sealed)
    assert pi.print("go", foredeck=True, environment=CHEAP).stdout.strip() == "done"
    shown = [
        json.dumps(old_text(name))[1:-1] in json.dumps(each.request.messages)
        for name, each in zip(NAMES, model.requests[len(NAMES) : 2 * len(NAMES)], strict=True)
    ]
    assert shown == [True] * len(NAMES)
