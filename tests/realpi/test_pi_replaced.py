"""Sessions that Pi replaces while it runs: fork, clone, new, switch, reload.

In RPC mode `session_start` comes twice after each of them.
"""

from __future__ import annotations

from pathlib import Path

from foredeck_bench.twin.script import call
from harness import TEXT, Pi, both_versions
from observed import answered, assert_recorded, assert_stable, calls_of, messages, notified, stored

COUNTS_STARTS = """
import { appendFileSync } from "node:fs";
export default function (pi) {
  pi.on("session_start", ({ reason }) => appendFileSync("STARTS", `${reason}\\n`));
  pi.registerCommand("again", {
    description: "load all extensions anew",
    handler: async (_, ctx) => { await ctx.reload(); },
  });
}
"""


def counting(tmp_path: Path) -> tuple[Path, Path]:
    """An extension that writes down each `session_start`, and the file that it writes."""
    starts = tmp_path / "starts"
    extension = tmp_path / "counts.ts"
    extension.write_text(COUNTS_STARTS.replace("STARTS", str(starts)))
    return extension, starts


def test_sessions_replaced_over_rpc_are_each_opened_once(pi: Pi, tmp_path: Path) -> None:
    extension, starts = counting(tmp_path)
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("read", path="a.txt"),
            call("pin", id="a.txt"),
            "worked",
            "second",
            "forked",
            "cloned",
            "new",
            call("read", path="a.txt"),
            "back",
        ]
    )
    rpc = pi.rpc("work", "go on", foredeck=True, extensions=[extension])
    first = rpc.state()
    rpc.fork(1)
    rpc.prompt("go another way")
    forked = rpc.state()
    rpc.send("clone")
    rpc.prompt("and on in a copy")
    cloned = rpc.state()
    rpc.send("new_session")
    rpc.prompt("begin anew")
    new = rpc.state()
    rpc.send("switch_session", sessionPath=first["sessionFile"])
    rpc.prompt("back in the first")
    assert len({s["sessionId"] for s in (first, forked, cloned, new)}) == 4
    assert starts.read_text().split().count("fork") in (2, 4), "Pi 1.5 says each twice"
    assert notified(rpc) == []
    sent = answered(model)
    assert_stable(sent[:4])
    assert_stable([sent[2], sent[4], sent[5]])
    assert_stable([sent[3], sent[7], sent[8]])
    assert [message["role"] for message in messages(sent[6])] == ["user", "system"]
    with stored(pi) as store:
        assert_recorded(store, first["sessionId"], [*sent[:4], *sent[7:]])
        for session, request in ((forked, 4), (cloned, 5), (new, 6)):
            assert_recorded(store, session["sessionId"], [sent[request]])
        assert {record.decision.kind for record in calls_of(store)} == {"append"}
        pinned = [record.stats.pinned for record in calls_of(store)]
    assert pinned == [0, 0, 1, 1, 1, 1, 0, 1, 1]


@both_versions
def test_a_reload_leaves_bytes_sets_and_one_engine(pi: Pi, tmp_path: Path) -> None:
    extension, starts = counting(tmp_path)
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("read", path="a.txt"),
            call("pin", id="a.txt"),
            "worked",
            call("read", path="a.txt"),
            "read again",
            "and again",
        ]
    )
    rpc = pi.rpc("work", foredeck=True, extensions=[extension])
    rpc.command("/again")
    rpc.prompt("read it again")
    rpc.command("/again")
    rpc.prompt("and again")
    assert starts.read_text().split() == ["startup", "reload", "reload"]
    assert len(rpc.engines()) == 1
    assert_stable(answered(model))
    with stored(pi) as store:
        assert_recorded(store, rpc.state()["sessionId"], answered(model))
        assert calls_of(store)[-1].stats.pinned == 1
