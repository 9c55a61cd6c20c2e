"""The block before the chat, and the line after a pause, as the provider gets them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foredeck_bench.twin.script import Api, call, content_text
from foredeck_bench.twin.server import RecordedRequest
from harness import Pi
from observed import answered, assert_recorded, assert_stable, calls_of, stored

NOTE = "# Release checklist\n\nTag it. #release\n"
HEAD = (
    "[foredeck] Background, not the user's words. The chat is newer.\n"
    "[foredeck] this project has (activate PATH to read one):\n"
    " notes/release.md: Release checklist #release"
)
TWO_HOURS_MS = 2 * 3600 * 1000
NO_LOG = {"FOREDECK_HEAD__SHOWS": '["rules", "memory", "page", "notes"]'}


def users_words(recorded: RecordedRequest) -> list[str]:
    """The texts of the messages that go out as the user's, tool results left out."""
    found = [content_text(m["content"]) for m in recorded.request.messages if m["role"] == "user"]
    return [text for text in found if text]


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-completions"])
def test_it_stands_first_on_both_wires_and_outlives_the_engine(pi: Pi, api: Api) -> None:
    pi.serve([call("write", path="notes/release.md", content=NOTE), "kept"])
    assert pi.print("keep a note", foredeck=True).code == 0
    script = [call("bash", command="seq 300"), "one"]
    script += [call("write", path="notes/ideas.md", content="# Ideas\n"), "two", "three"]
    model = pi.serve(script, api=api)
    rpc = pi.rpc("What do I know?", foredeck=True, environment=NO_LOG)
    assert rpc.kill_engine()
    rpc.prompt("Write down your ideas.")
    rpc.prompt("And now?")
    requests = answered(model)
    assert users_words(requests[0]) == [HEAD, "What do I know?"]
    assert users_words(requests[-1])[:2] == [HEAD, "What do I know?"]
    assert_stable(requests)
    rpc.shutdown()
    with stored(pi) as store:
        sessions = [head.fields["session_id"] for head in store.query("session")]
        (newest,) = [id for id in sessions if len(calls_of(store, id)) == len(requests)]
        if api == "anthropic-messages":
            assert_recorded(store, newest, requests)


def _two_hours_ago(line: str) -> str:
    entry: dict[str, Any] = json.loads(line)
    if entry.get("type") == "message":
        entry["message"]["timestamp"] -= TWO_HOURS_MS
    return json.dumps(entry)


def test_after_a_pause_the_users_message_says_what_time_it_is(pi: Pi) -> None:
    model = pi.serve(["one", "two", "three"])
    assert pi.print("Begin.").code == 0
    (file,) = pi.workspace.session_files()
    file.write_text("\n".join(map(_two_hours_ago, file.read_text().splitlines())) + "\n")
    tokyo = {"TZ": "Asia/Tokyo"}
    ended = pi.print(
        "Go on.", "And on.", foredeck=True, arguments=["--continue"], environment=tokyo
    )
    assert ended.code == 0
    _, second, third = answered(model)
    begun, went_on, *_ = users_words(third)
    assert begun == "Begin."
    assert went_on.startswith("Go on.\n[foredeck] Now ")
    assert went_on.endswith(" (Asia/Tokyo, UTC+09:00).")
    assert users_words(third)[-1] == "And on."
    assert_stable([second, third])
