"""What `show` puts together from the store is what the replay sent, message for message."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.context.messages.shape import identifying_fields
from foredeck.errors import Missing, UnknownSession
from foredeck.lookup.prompts import Prompt, prompt_at
from foredeck.store.store import open_sqlite
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from replay.recordings import everything


def sent(folder: Path) -> list[dict[str, Any]]:
    """Every prompt that a replay wrote, as far as messages are told apart by it."""
    prompts = []
    for path in sorted(folder.iterdir()):
        prompt = json.loads(path.read_bytes().decode(errors="surrogatepass"))
        prompts.append(prompt | {"messages": [identifying_fields(m) for m in prompt["messages"]]})
    return prompts


@pytest.mark.parametrize("layout", ["anchored", "pools"])
@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("every", [None, 1])
def test_show_is_what_was_sent(
    tmp_path: Path, foredeck: Foredeck, layout: str, with_ids: bool, every: int | None
) -> None:
    recording = everything(with_ids)
    session = recording.write(tmp_path / "one.jsonl")
    options = ReplayOptions(layout=layout, restart_every=every, prompts=tmp_path / "prompts")
    replay([session], options, keep=tmp_path / "keep")
    home = str(tmp_path / "keep" / "one")
    prompts = sent(tmp_path / "prompts" / "one")
    assert len(prompts) > 20
    with closing(open_sqlite(Path(home) / "foredeck.db")) as store:
        for prompt in prompts:
            got = prompt_at(store, recording.id, prompt["call"])
            assert [identifying_fields(message) for message in got.messages] == prompt["messages"]
            assert got.record.time_ms == prompt["time_ms"]
    for prompt in prompts[:: len(prompts) // 3]:
        number = str(prompt["call"])
        shown = foredeck.json("show", recording.id, "--call", number, "--home", home)
        assert list(shown) == ["call", "system", "tools", "messages"]
        assert [identifying_fields(message) for message in shown["messages"]] == prompt["messages"]


@pytest.fixture
def prompt(tmp_path: Path) -> Prompt:
    """The last prompt of a session in which something was folded."""
    recording = everything()
    # So that a run folds in so short a session.
    settings = ("adaptive.patience=1", "adaptive.newest_results=0", "adaptive.fold_runs_after=2")
    options = ReplayOptions(settings=settings)
    replay([recording.write(tmp_path / "one.jsonl")], options, keep=tmp_path)
    with closing(open_sqlite(tmp_path / "one" / "foredeck.db")) as store:
        count = len(store.query("call", {"session": recording.id}))
        with pytest.raises(UnknownSession, match=f"its calls go from 1 to {count}"):
            prompt_at(store, recording.id, count + 1)
        with pytest.raises(UnknownSession, match="No session 'nobody'"):
            prompt_at(store, "nobody", 1)
        return prompt_at(store, recording.id, count)


def test_our_edits_and_messages_are_told_from_the_hosts(prompt: Prompt) -> None:
    folded = [
        number
        for number, message in enumerate(prompt.messages)
        if "@" in (said := json.dumps(message.get("content"))) and " folded: " in said
    ]
    assert len(folded) >= 2
    assert set(folded) <= prompt.edited
    pairs = list(zip(prompt.messages, prompt.numbers, strict=True))
    inserted = [message for message, number in pairs if number is None]
    (run, answer) = sorted(inserted, key=lambda message: message["role"] == "toolResult")
    assert answer["toolCallId"] == "lost"
    assert "calls, folded:" in json.dumps(run["content"])
    assert not [n for n in prompt.edited if prompt.numbers[n] is None]
    users = [n for n, message in enumerate(prompt.messages) if message["role"] == "user"]
    assert not prompt.edited.intersection(users)


def test_a_message_has_the_number_that_why_and_trace_give_it(
    prompt: Prompt, tmp_path: Path, foredeck: Foredeck
) -> None:
    numbers = [number for number in prompt.numbers if number is not None]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == prompt.record.length > len(prompt.messages)
    foredeck(tmp_path / "one", "show", everything().id)
    last = f"--- {len(prompt.messages)} {prompt.messages[-1]['role']}"
    heading = [line for line in foredeck.out.splitlines() if line.startswith(last)]
    assert f"message {numbers[-1]} of the chat" in heading[0]


def test_a_prompt_whose_bytes_are_gone_is_an_error_and_never_a_guess(tmp_path: Path) -> None:
    recording = everything()
    replay([recording.write(tmp_path / "one.jsonl")], ReplayOptions(), keep=tmp_path)
    with closing(open_sqlite(tmp_path / "one" / "foredeck.db")) as store:
        store.db.execute("DELETE FROM blob WHERE rowid % 7 = 0")
        with pytest.raises(Missing):
            prompt_at(store, recording.id, 20)
