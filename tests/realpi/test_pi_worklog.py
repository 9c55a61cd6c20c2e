"""What one session did, in the next one through the real Pi."""

from __future__ import annotations

from datetime import UTC, datetime

from foredeck_bench.twin.script import call
from harness import Pi
from observed import answered, assert_stable, messages

COMMIT = "git add -A && git -c user.name=a -c user.email=a@example.org commit -qm 'Say hello'"


def today() -> str:
    """As the line says it."""
    now = datetime.now(UTC)
    return f"{now.day} {now:%B}"


def test_a_later_session_is_told_what_is_done(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text("hello\n")
    pi.serve(
        [
            call("bash", command="git init -q"),
            call("edit", path="a.txt", edits=[{"oldText": "hello", "newText": "hello all"}]),
            call("bash", command=COMMIT),
            "done",
        ]
    )
    day = today()
    assert pi.print("say hello", foredeck=True).code == 0

    model = pi.serve([call("bash", command="cat a.txt"), "done"])
    assert pi.print("go on", foredeck=True).code == 0

    head = messages(model.requests[0])[0]["content"][0]["text"]
    assert f'{day}: committed "Say hello" (a.txt)' in head or day != today()
    assert_stable(answered(model))
