"""Sessions of the stored fixture are shown and resumed byte for byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from foredeck.context.messages.shape import Message
from foredeck.lookup.prompts import prompt_at
from foredeck.store.place import open_store
from foredeck_lab.replay.replayed_session import ReplayedSession
from resume.recorded import StoredSession, digest, stored_sessions, unpack_store

SESSIONS = pytest.mark.parametrize("stored", list(stored_sessions()), ids=lambda each: each.id)


@SESSIONS
def test_stored_prompts_are_shown_as_they_went_out(stored: StoredSession, tmp_path: Path) -> None:
    unpack_store(tmp_path / "home")
    with closing(open_store(stored.options.config(tmp_path / "home"))) as store:
        calls = range(1, stored.calls + 1)
        shown = [digest(prompt_at(store, stored.id, call).messages) for call in calls]
    assert shown == stored.prompts[: stored.calls]


@SESSIONS
def test_the_session_goes_on_with_the_bytes_of_before(
    stored: StoredSession, tmp_path: Path
) -> None:
    unpack_store(tmp_path / "home")
    transcript = stored.transcript(tmp_path)
    session = ReplayedSession(tmp_path / "home", transcript, stored.options)
    made, prompt = stored.calls, list[Message]()
    for call in transcript.calls[stored.calls :]:
        prompt, decision = session.call(call)
        made += 1
        if decision.kind == "rebase" or stored.options.layout == "pools":
            # What is rendered again from here on follows the rules of today.
            break
        assert digest(prompt) == stored.prompts[made - 1]
    session.close()
    with closing(open_store(stored.options.config(tmp_path / "home"))) as store:
        assert digest(prompt_at(store, stored.id, made).messages) == digest(prompt)
