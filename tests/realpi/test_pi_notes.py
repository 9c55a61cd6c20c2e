"""Notes in the real Pi: written with plain tools, walked by links, renamed by a command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from foredeck_bench.twin.script import call
from harness import Pi
from observed import results

SEA = "---\ntags: [sea]\n---\n# Sea\nTwice a day: [[Tides]]. Some day: [[Currents]].\n"
TIDES = '---\nparent: "[[Sea]]"\n---\n# Tides\n## Low water\nThe harbour falls dry.\n'


def asked(pi: Pi, *words: str) -> Any:
    """What a command of foredeck's prints with --json."""
    command = [sys.executable, "-m", "foredeck.cli.main", *words, "--json"]
    place = ["--home", str(pi.workspace.foredeck_home)]
    done = subprocess.run([*command, *place], cwd=pi.repo, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_what_was_typed_and_answered_is_a_backlink_in_the_next_session(pi: Pi) -> None:
    write = call("write", path="notes/tides.md", content=TIDES)
    pi.serve([write, "Low water is in [[Tides#Low water]]."])
    assert pi.print("keep what I say of [[Tides]]", foredeck=True).code == 0
    model = pi.serve([call("activate", id="[[Tides]]", show="links"), "done"])
    assert pi.print("who speaks of it?", foredeck=True).code == 0
    links = results(model.requests[-1])[-1]
    assert " chat (mentions, mentions #Low water)" in links

    backlinks = asked(pi, "graph", "--backlinks", "notes/tides.md")["edges"]
    edges = [edge for edge in backlinks if "turns[" in edge["field"]]
    ends = {(e["field"].partition(".")[2], e["start"], e["end"]) for e in edges}
    assert ends == {("user", 19, 28), ("assistant", 16, 35)}
    assert {(e["from"].partition(":")[0], e["relation"]) for e in edges} == {("chat", "mentions")}


def test_notes_of_any_editor_are_known_when_a_session_opens(pi: Pi) -> None:
    (pi.repo / "notes" / "sub").mkdir(parents=True)
    (pi.repo / "notes" / "tides.md").write_text(TIDES)
    (pi.repo / "notes" / "sub" / "sea.md").write_text(SEA)
    (pi.repo / "notes" / "no.txt").write_text("no note")
    model = pi.serve([call("activate", id="[[Sea]]", show="links"), "done"])
    assert pi.print("what do I know?", foredeck=True).code == 0
    assert "\n notes/tides.md: Tides\n" in model.requests[0].request.text
    assert re.search(r'- @\d+ notes/tides.md "Tides"', results(model.requests[-1])[-1])

    # In between the user renames one, deletes nothing, and writes another.
    (pi.repo / "notes" / "tides.md").rename(pi.repo / "notes" / "ebb.md")
    (pi.repo / "notes" / "new.md").write_text("# Currents\n")
    model = pi.serve([call("activate", id="[[Sea]]", show="links"), "done"])
    assert pi.print("and now?", foredeck=True).code == 0
    assert "notes/tides.md" not in model.requests[0].request.text
    links = results(model.requests[-1])[-1]
    assert re.search(r'- @\d+ notes/ebb.md "Tides"', links)
    assert re.search(r'- @\d+ notes/new.md "Currents"', links)
