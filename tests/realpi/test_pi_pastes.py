"""A long paste in the real Pi: an object at once, folded in a later turn, and had again."""

from __future__ import annotations

from foredeck.model.documents import UserDocument
from foredeck_bench.twin.script import call
from harness import Pi
from observed import answered, messages, notified, results, stored

EAGER = {
    "FOREDECK_ADAPTIVE__PATIENCE": "1",
    "FOREDECK_REBASE__CARRYING_FACTOR": "0",
    "FOREDECK_REBASE__GAP": "0",
    "FOREDECK_REBASE__GUARD": "10",
}
PASTE = "Why did it fail?\n" + "\n".join(f"line {n} of what was logged" for n in range(400))


def handle(pi: Pi) -> str:
    """The handle of the only paste."""
    with stored(pi) as store:
        (member,) = store.query("member", {"object_type": "user"})
    return f"@{member.fields['ordinal']}"


def test_a_paste_folds_in_a_later_turn_and_comes_back(pi: Pi) -> None:
    assert len(PASTE) > 10_000
    script = [
        *("I see.", "Yes.", "Yes.", "Yes."),
        lambda _: call("activate", id=handle(pi)),
        "I see it again.",
    ]
    model = pi.serve(script)
    rpc = pi.rpc(PASTE, foredeck=True, environment=EAGER)
    with stored(pi) as store:
        (head,) = store.query("user")
        document = store.get(head.id, UserDocument)
    assert document.content == PASTE
    for number in range(4):
        rpc.prompt(f"Question {number}")
    first, *_, last = answered(model)
    assert PASTE in first.request.text
    assert results(last)[-1] == f"{handle(pi)}\n{PASTE}"
    told = next(text for m in messages(last) if "Why did it fail?" in (text := str(m["content"])))
    assert f"<activate {handle(pi)}: lines " in told
    assert len(told) < len(PASTE) / 2
    # The user reads their own words, and nothing had to be said.
    said = [e["message"] for e in rpc.entries() if e["type"] == "message"]
    users = [message["content"] for message in said if message["role"] == "user"]
    assert users[0] in (PASTE, [{"type": "text", "text": PASTE}])
    assert notified(rpc) == []
