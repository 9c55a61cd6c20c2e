"""Two Pis at once in one folder."""

from __future__ import annotations

from foredeck_bench.twin.script import call
from harness import TEXT, Pi
from observed import answered, assert_stable, results, stored

CHANGED = "changed on disk"


def test_two_agents_are_each_told_once_of_the_others_change(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    edit = {"path": "a.txt", "edits": [{"oldText": "line 7:", "newText": "line seven:"}]}
    back = {"path": "a.txt", "edits": [{"oldText": "line 9:", "newText": "line nine:"}]}
    model = pi.serve(
        [
            call("read", path="a.txt"),
            "one has read",
            call("read", path="a.txt"),
            call("edit", **edit),
            "two has edited",
            call("edit", **back),
            "one has edited",
            "two goes on",
            "one goes on",
        ]
    )
    one, two = pi.rpc(foredeck=True), pi.rpc(foredeck=True)
    one.prompt("read, one")
    two.prompt("edit, two")
    one.prompt("edit, one")
    two.prompt("go on, two")
    one.prompt("go on, one")
    sent = answered(model)
    of_one, of_two = [*sent[:2], *sent[5:7], sent[8]], [*sent[2:5], sent[7]]
    for requests in (of_one, of_two):
        assert_stable(requests)
        assert requests[-1].request.text.count(CHANGED) == 1
    assert CHANGED in of_one[2].request.text
    assert CHANGED in of_two[3].request.text
    assert TEXT in results(of_two[1])[0]
    assert (pi.repo / "a.txt").read_text() == TEXT.replace("line 7:", "line seven:").replace(
        "line 9:", "line nine:"
    )
    with stored(pi) as store:
        assert len(store.query("session")) == 2
        members = [m for m in store.query("member") if m.fields["label"].endswith("/a.txt")]
        assert len({m.fields["object"] for m in members}) == 1
        assert len(store.history(members[0].fields["object"])) == 3
