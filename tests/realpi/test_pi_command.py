"""What the user types and sees: /foredeck and the status line."""

from __future__ import annotations

import re
import subprocess

import httpx

from foredeck_bench.twin.script import call
from harness import TEXT, Pi, both_versions
from observed import (
    answered,
    assert_recorded,
    assert_stable,
    calls_of,
    command_text,
    errors,
    handle,
    last_result,
    messages,
    notified,
    results,
    session_of,
    stored,
)
from test_pi_observing import until


def test_objects_and_what_fills_the_window_are_listed_and_verbs_explained(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    pi.serve([[call("read", path="a.txt"), call("bash", command="echo hi")], "done"])
    rpc = pi.rpc(foredeck=True)
    rpc.command("/context")
    rpc.prompt("go")
    for command in ("/context", "/context all", "/foredeck nonsense", "/foredeck help"):
        rpc.command(command)
    before, shown, refused, wrong, help_text = notified(rpc)
    assert before.startswith("No call has gone out with foredeck on this branch yet.")
    verdict, kinds, objects, *lines = shown.split("\n")
    assert re.fullmatch(
        r"The window is about \d+% full: [\d.]+k? of 200k tokens\. Plain Pi: [\d.]+k?\.", verdict
    )
    named = [re.sub(r" [\d.]+k?$", "", kind) for kind in kinds.removesuffix(".").split(", ")]
    assert named == ["system and tools", "chat", "in view"]
    assert objects == "2 in view, 0 pinned, 0 folded."
    assert re.fullmatch(rf"{handle(pi, '/a.txt')} +in view +\d+  a\.txt", lines[0])
    assert re.fullmatch(r"@\d+ +in view +\d*  bash echo hi", lines[1])
    assert "/foredeck why @12" in refused
    assert wrong == "There is no /foredeck nonsense. /foredeck help lists what there is."
    for verb in ("fold", "name", "why", "cost", "compact", "trace", "off", "on", "setup"):
        assert verb in help_text
    # A session of two short calls has nothing to say of money.
    shown_below = [text for text in rpc.statuses() if text.startswith("foredeck")]
    assert all(re.fullmatch(r"foredeck(: \d+ folded)?", text) for text in shown_below[-2:])


def test_a_session_that_is_taken_up_is_known_before_its_first_call(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([[call("read", path="a.txt"), call("bash", command="echo hi")], "done", "ok"])
    pi.print("go", foredeck=True)
    rpc = pi.rpc(foredeck=True, arguments=["--continue"])
    rpc.command("/foredeck")
    rpc.command("/foredeck why")
    rpc.command(f"/foredeck pin {handle(pi, '/a.txt')}")
    window, why, pinned = notified(rpc)
    assert window.startswith("The window is about ")
    assert "\n2 in view, 0 pinned, 0 folded.\n" in window
    assert why.startswith("Call 2: ")
    assert pinned.endswith("is pinned: it stays in view.")
    rpc.prompt("and on")
    assert_stable(model.requests)


@both_versions
def test_off_sends_pis_own_bytes_and_on_goes_on(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("read", path="a.txt"),
            call("read", path="a.txt"),
            "managed",
            call("bash", command="seq 300"),
            [call("read", path="a.txt"), call("activate", id="a.txt")],
            "plain",
            call("read", path="a.txt"),
            "managed again",
            "end",
        ]
    )
    rpc = pi.rpc("first", foredeck=True)
    assert command_text(rpc, "/foredeck off").startswith("foredeck is off: ")
    assert rpc.statuses()[-1] == "foredeck off"
    rpc.prompt("second")
    rpc.command("/foredeck on")
    assert notified(rpc)[-1].startswith("foredeck is on. What has gone out stays as it is, ")
    rpc.prompt("third")
    rpc.prompt("fourth")
    plain = answered(model)[5]
    assert results(plain)[:2] == [TEXT, TEXT]
    assert results(plain)[3] == TEXT
    assert "@" not in "".join(results(plain))
    (refused,) = errors(plain)
    assert (
        refused == "The user has switched the context manager off: everything is in view as it is."
    )
    managed = answered(model)[6]
    shared = messages(plain)
    assert messages(managed)[: len(shared)] == shared
    assert last_result(answered(model)[7]).startswith("Unchanged: ")
    assert_stable(answered(model)[6:])
    with stored(pi) as store:
        assert_recorded(store, session_of(store), answered(model))
        decisions = [record.decision for record in calls_of(store)]
    assert [d.kind for d in decisions] == ["append"] * 3 + ["host"] * 3 + ["append"] * 3
    assert {d.reason for d in decisions[3:6]} == {"off"}


def test_off_from_the_start_and_on_later(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([call("read", path="a.txt"), "plain", call("read", path="a.txt"), "end"])
    rpc = pi.rpc("first", foredeck=True, environment={"FOREDECK": "off"})
    assert results(model.requests[1]) == [TEXT]
    rpc.command("/foredeck on")
    rpc.prompt("second")
    assert results(model.requests[-1])[0] == TEXT
    assert results(model.requests[-1])[1].startswith("Unchanged: ")
    assert_stable(answered(model))


def answers(address: str) -> bool:
    try:
        httpx.get(address)
    except httpx.TransportError:
        return False
    return True


def test_the_inspector_opens_from_pi_and_ends_with_it(pi: Pi) -> None:
    pi.serve(["hello"])
    with pi.rpc("go", foredeck=True, environment={"BROWSER": "true"}) as rpc:
        rpc.command("/foredeck ui")
        rpc.command("/foredeck ui")
        opened, again = notified(rpc)
        assert opened == again
        address = opened.removeprefix("The inspector is open at ").rstrip(".")
        page = httpx.get(address, follow_redirects=True)
        assert page.status_code == 200
        assert "Overview" in page.text
    until(lambda: not answers(address))


def test_the_command_goes_on_the_path_when_the_user_asks(pi: Pi) -> None:
    target = pi.workspace.root / "home" / ".local" / "bin" / "foredeck"
    pi.serve(["hello"])
    with pi.rpc("go", foredeck=True) as rpc:
        assert not target.exists()
        rpc.command("/foredeck setup path")
        (told,) = notified(rpc)
    assert told.startswith(f"{target} runs foredeck's command line.")
    ran = subprocess.run([target, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("foredeck ")
