"""What a session has cost beside plain Pi: the same figure wherever it is shown."""

from __future__ import annotations

import json

import pytest

from foredeck.cli.main import main
from foredeck.ui.views.sessions import session_page
from foredeck_bench.scripted import call
from harness import Pi, one_version
from observed import notified, session_of, stored

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(900))
"""Long enough for a figure that is worth a word in the status line."""


@one_version
def test_every_screen_has_the_same_figure(pi: Pi, capsys: pytest.CaptureFixture[str]) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    pi.serve([*[call("read", path="a.txt")] * 6, call("pin", id="a.txt"), "done"])
    rpc = pi.rpc(foredeck=True)
    rpc.prompt("go")
    rpc.command("/foredeck cost")
    answer = notified(rpc)[-1].split("\n")[0]
    status = rpc.statuses()[-1]
    with stored(pi) as store:
        session = session_of(store)
    home = ["--home", str(pi.config().home)]

    def printed(*command: str) -> str:
        assert main([*command, *home]) == 0
        return capsys.readouterr().out

    figure = json.loads(printed("cost", session, "--json"))["figure"]
    assert figure["unit"] == "dollars"
    assert figure["saved"] > 0.01
    assert f"{figure['text']}." == answer
    assert f"foredeck: {figure['short']}" in status
    assert printed("cost", session).startswith(answer)
    with stored(pi) as store:
        assert session_page(store, session, None).data["figure"] == figure
    everything = json.loads(printed("cost", "--json"))
    assert everything["total"] == [figure]
    assert printed("cost").startswith(answer)
    assert figure["short"] in printed("sessions", "--json")
