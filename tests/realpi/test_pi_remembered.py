"""Memory through the real Pi: over three sessions of a file that changes, deleted in the midst of
one, and in a private session."""

from __future__ import annotations

import json
import re
from typing import Any

from foredeck_bench.twin.script import call, content_text
from foredeck_bench.twin.server import RecordedRequest
from harness import Asked, Pi
from observed import answered, notified

QUIET = {
    "FOREDECK_MEMORY__EXTRACT": "false",
    "FOREDECK_HEAD__SHOWS": '["rules", "memory", "page", "notes"]',
}
FACT = "Retries are three, set in limits.py"
LINE = re.compile(
    r"\[foredeck\] memory of the user and the project:\n"
    r"- \[user-stated\] \[decision\] " + re.escape(FACT) + r" \(learned \d{4}-\d\d-\d\d\)"
)
MOVED = "(1 left out: the code that they rest on has changed)"


def first_words(recorded: RecordedRequest) -> str:
    """What stands first of all that goes out as the user's."""
    found = [content_text(m["content"]) for m in recorded.request.messages if m["role"] == "user"]
    return next(text for text in found if text)


def head_of_a_session(pi: Pi) -> str:
    """The head of a new session; empty where it begins with the prompt itself."""
    model = pi.serve(["hello"])
    assert pi.print("Hello.", foredeck=True, environment=QUIET).code == 0
    words = first_words(answered(model)[0])
    return "" if words == "Hello." else words


def remembered(asked: Asked, pi: Pi, *arguments: str) -> Any:
    """What `foredeck memory` says, in Pi's folder."""
    return json.loads(asked("memory", *arguments, "--project", str(pi.repo), "--json"))


def test_a_memory_about_a_file_over_three_sessions(pi: Pi, asked: Asked) -> None:
    """Kept, left out once the file has changed, and back when it is confirmed."""
    limits = pi.repo / "limits.py"
    limits.write_text("RETRIES = 3\n")
    assert head_of_a_session(pi) == ""
    ground = ["--ground", str(limits)]
    name = remembered(asked, pi, "add", FACT, "--category", "decision", *ground)["name"]
    assert LINE.search(head_of_a_session(pi))

    limits.write_text("RETRIES = 5\n")
    left_out = head_of_a_session(pi)
    assert FACT not in left_out
    assert MOVED in left_out
    assert remembered(asked, pi, "show", name)["moved"] == [str(limits)]

    remembered(asked, pi, "confirm", name)
    assert LINE.search(head_of_a_session(pi))


def test_what_changes_or_is_deleted_in_mid_session_leaves_at_the_next_call(
    pi: Pi, asked: Asked
) -> None:
    limits = pi.repo / "limits.py"
    limits.write_text("RETRIES = 3\n")
    assert head_of_a_session(pi) == ""
    ground = ["--ground", str(limits)]
    name = remembered(asked, pi, "add", FACT, *ground)["name"]
    other = remembered(asked, pi, "add", "Tests use pytest")["name"]
    script = ["one", call("write", path="limits.py", content="RETRIES = 5\n"), "two", "three"]
    model = pi.serve([*script, "four"])
    rpc = pi.rpc("Hello.", "Make it five.", foredeck=True, environment=QUIET)
    remembered(asked, pi, "delete", other, "--yes")
    rpc.prompt("And now?")
    rpc.prompt("Go on.")
    told = notified(rpc)
    rpc.shutdown()

    heads = [first_words(request) for request in answered(model)]
    assert [FACT in head for head in heads] == [True, True, False, False, False]
    assert ["Tests use pytest" in head for head in heads] == [True, True, True, False, False]
    assert heads[3:] == [heads[3]] * 2
    assert sum("is out of the prompt" in text for text in told) == 2
    assert remembered(asked, pi, "show", name)["moved"] == [str(limits)]


def test_a_private_session_says_so_and_is_found_by_nobody(pi: Pi, asked: Asked) -> None:
    model = pi.serve(["The zebrafish is noted."])
    private = pi.print(
        "Remember the zebrafish.",
        foredeck=True,
        arguments=["--foredeck-private"],
        environment=QUIET,
    )
    assert private.code == 0
    model = pi.serve([call("memory-search", query="zebrafish", scope="all"), "nothing"])
    assert pi.print("Look.", foredeck=True, environment=QUIET).code == 0
    assert "noted" not in json.dumps(list(answered(model)[-1].request.results.values()))
    assert "noted" not in asked("search", "zebrafish")
