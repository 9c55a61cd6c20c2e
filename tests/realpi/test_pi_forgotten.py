"""Sessions that the user deletes in Pi, or has foredeck forget."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from foredeck.engine.current import FORGOTTEN
from foredeck.errors import Conflict
from foredeck.store.erasing import erase, erasure_of, plan_forgetting
from foredeck.store.store import Store
from foredeck_bench.twin.script import call
from harness import TEXT, Asked, Pi
from observed import answered, assert_stable, calls_of, notified, results, session_of, stored
from patience import ENOUGH_S
from processes import run_program


def test_a_session_deleted_in_pi_is_offered_and_forgotten(pi: Pi, asked: Asked) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            [call("read", path="a.txt"), call("bash", command="seq 300")],
            "worked",
            call("read", path="a.txt"),
            "worked elsewhere",
            "went on",
        ]
    )
    assert pi.print("work", foredeck=True).code == 0
    (first,) = pi.workspace.session_files()
    assert pi.print("work elsewhere", foredeck=True).code == 0
    first.unlink()
    known = json.loads(asked("sessions", "--size", "--json"))["sessions"]
    sizes = {session["session"]: session["size_bytes"] for session in known}
    (gone,) = [session["session"] for session in known if session["gone"]]
    assert all(sizes.values())
    listed = asked("sessions")
    assert "(gone)" in listed
    assert "`foredeck forget SESSION` deletes the rest." in listed
    assert json.loads(asked("forget", gone, "--yes", "--json"))["kept"] >= 1
    assert pi.print("go on", foredeck=True, arguments=["--continue"]).code == 0
    assert_stable(answered(model)[2:])
    with stored(pi) as store:
        assert calls_of(store, gone) == []
        assert [t.fields["tool"] for t in store.query("toolcall")] == ["read"]
        assert store.query("file")
        assert store.head(f"forgotten:{gone}") is not None


def test_a_session_is_not_forgotten_while_pi_has_it_open(pi: Pi) -> None:
    """Neither by its agent, nor by a command beside it that no terminal tells from the agent's."""
    program = Path(sys.executable).with_name("foredeck")

    def forget_it(session: str) -> str:
        return f"{program} forget {session} --yes --home {pi.config().home}"

    model = pi.serve(
        [
            call("bash", command=f"env -u FOREDECK_SESSION {forget_it('$FOREDECK_SESSION')}"),
            "It is not for me to do.",
            "went on",
        ]
    )
    with pi.rpc("erase yourself", foredeck=True) as rpc:
        assert "is for you only" in results(model.requests[-1])[-1]
        with stored(pi) as store:
            session = session_of(store)
        beside = run_program(*forget_it(session).split(), start_new_session=True)
        assert (beside.returncode, "no terminal" in beside.stderr) == (2, True)
        rpc.prompt("go on")
    assert_stable(answered(model))


def _erase(pi: Pi, store: Store, session: str) -> None:
    """Again while the engine still writes what ends a turn, as the message of `Conflict` says."""
    until = time.monotonic() + ENOUGH_S
    while True:
        try:
            return erase(pi.config(), store, erasure_of(plan_forgetting(store, [session])))
        except Conflict:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_a_session_erased_under_pi_begins_anew_and_is_resumed(pi: Pi) -> None:
    """As on a shared database by another machine, which cannot see that it is open."""
    model = pi.serve(
        [
            call("bash", command="seq 300"),
            "worked",
            "began anew",
            call("bash", command="seq 9"),
            "resumed",
        ]
    )
    with pi.rpc("work", foredeck=True) as rpc:
        with stored(pi) as store:
            session = session_of(store)
            _erase(pi, store, session)
        rpc.prompt("go on")
        (told,) = [text for text in notified(rpc) if "begins it anew" in text]
        # A command that is not on PATH is named by its path.
        assert re.sub(r"`\S*/foredeck ", "`foredeck ", told) == FORGOTTEN
    assert pi.print("resume", foredeck=True, arguments=["--continue"]).code == 0
    assert len(answered(model)) == 5
    with stored(pi) as store:
        records = calls_of(store, session)
        # The first stands for what was said before: it begins there, and not at a call of before.
        assert [(r.ordinal, r.parent is None) for r in records] == [
            (n + 1, n == 0) for n in range(len(records))
        ]
        assert session_of(store) == session
