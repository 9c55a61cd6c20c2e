"""Sessions that an earlier version has stored are shown and resumed byte for byte."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from foredeck.context.messages.shape import Message
from foredeck.lookup.prompts import prompt_at
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.kind import open_store
from resume.recorded import FIXTURES, FORMS, StoredSession, digest, stored_sessions, unpack_store

CONSTANTS_THEN = (
    *("adaptive.patience=20", "adaptive.patience_edited=60", "adaptive.fold_answers=false"),
    *("adaptive.at_work=0", "adaptive.copy_chars=0", "adaptive.idle_output=0.7"),
)
"""Those of the policy when 0.1.0 stored its sessions. `pools` renders all at every call, so that
its bytes follow the constants of the day."""

CASES = [
    pytest.param(folder, stored, id=f"{folder.name}-{stored.id}")
    for folder in (FIXTURES / form for form in FORMS)
    for stored in stored_sessions(folder)
]


@pytest.mark.parametrize(("folder", "stored"), CASES)
def test_stored_prompts_are_shown_as_they_went_out(
    folder: Path, stored: StoredSession, tmp_path: Path
) -> None:
    unpack_store(folder, tmp_path / "home")
    with closing(open_store(stored.options.config(tmp_path / "home"))) as store:
        calls = range(1, stored.calls + 1)
        shown = [digest(prompt_at(store, stored.id, call).messages) for call in calls]
    assert shown == stored.prompts[: stored.calls]


@pytest.mark.parametrize(("folder", "stored"), CASES)
def test_the_session_goes_on_with_the_bytes_of_before(
    folder: Path, stored: StoredSession, tmp_path: Path
) -> None:
    unpack_store(folder, tmp_path / "home")
    transcript = stored.transcript(folder, tmp_path)
    options = stored.options
    if options.layout == "pools":
        options = replace(options, settings=(*options.settings, *CONSTANTS_THEN))
    session = ReplayedSession(tmp_path / "home", transcript, options)
    made, prompt = stored.calls, list[Message]()
    for call in transcript.calls[stored.calls :]:
        prompt, decision = session.call(call)
        made += 1
        if decision.kind == "rebase":
            # What is rendered again from here on follows the rules of today.
            break
        assert digest(prompt) == stored.prompts[made - 1]
        if options.layout == "pools":
            break
    session.close()
    with closing(open_store(options.config(tmp_path / "home"))) as store:
        assert digest(prompt_at(store, stored.id, made).messages) == digest(prompt)
