"""Sessions that the user deletes in Pi, or has foredeck forget."""

from __future__ import annotations

import json

from foredeck_bench.scripted import call
from harness import Asked, Pi, one_version
from observed import answered, assert_stable, calls_of, stored

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))


@one_version
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
    assert "`foredeck forget SESSION` erases them." in listed
    told = json.loads(asked("forget", gone, "--yes", "--json"))
    assert told["kept"] >= 1
    assert pi.print("go on", foredeck=True, arguments=["--continue"]).code == 0
    assert model.violations == []
    assert_stable(answered(model)[2:])
    with stored(pi) as store:
        assert calls_of(store, gone) == []
        assert [t.fields["tool"] for t in store.query("toolcall")] == ["read"]
        assert store.query("file")
        assert store.head(f"forgotten:{gone}") is not None
