"""A key that was pasted by mistake, put out of all that is stored of a session with Pi."""

from __future__ import annotations

import json

from foredeck_bench.twin.script import call
from harness import Asked, Pi
from observed import answered, calls_of, stored

KEY = "sk-live-51H8xQ"
TEXT = "".join(f"line {n}: {KEY} is what it says\n" for n in range(60))


def test_a_leaked_key_is_gone_and_the_session_goes_on(pi: Pi, asked: Asked) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    script = [call("read", path="a.txt"), call("bash", command=f"echo {KEY}"), "seen", "went on"]
    model = pi.serve(script)
    assert pi.print(f"My key is {KEY}.", foredeck=True).code == 0
    (file,) = pi.workspace.session_files()

    told = json.loads(asked("purge", "--text", KEY, "--yes", "--json"))
    assert told["purged"]
    assert told["host_files"] == [str(file)]
    assert KEY not in asked("search", KEY)
    (session,) = told["sessions"]
    for ordinal in (1, 2, 3):
        shown = asked("show", session, "--call", str(ordinal))
        assert KEY not in shown
        assert "[purged]" in shown
    with stored(pi) as store:
        assert len(calls_of(store, session)) == 3
    for path in pi.config().home.rglob("*.db"):
        assert KEY.encode() not in path.read_bytes()

    # Pi's own file has it still: what the user was told, and what the model goes on reading.
    assert pi.print("Go on.", foredeck=True, arguments=["--continue"]).code == 0
    assert len(answered(model)) == 4
