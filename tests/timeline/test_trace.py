"""Traces of a session whose chat its host put away, and what they read."""

from __future__ import annotations

from typing import Any

import pytest

from file_agent import FileAgent as Agent
from foredeck.accounting import trace as module
from foredeck.accounting.trace import trace
from foredeck.context.messages.shape import Message
from foredeck.model.records import call_id
from foredeck.store.store import Store


def test_what_the_host_has_put_away_is_compacted_and_not_unknown(at_work: Agent) -> None:
    (at_work.cwd / "names.txt").write_text("calculate_everything\n")
    at_work.read("names.txt")
    at_work.answer()
    at_work.put_away(7)
    at_work.answer()
    at_work.read("names.txt")
    last = at_work.answer()
    opened = at_work.engine.opened
    found = trace(opened.session.objects.store, "s", "calculate_everything", call_id("s", last))
    assert found.calls == last
    assert [(span.visibility.label, span.first, span.last) for span in found.spans] == [
        ("never seen", 1, 2),
        ("in view", 3, 3),
        ("compacted", 4, 4),
        ("in view", 5, 5),
    ]
    assert found.spans[2].places[0].what == "result of read names.txt"


class CountingStore:
    """A store that counts how often it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.questions = 0

    def __getattr__(self, name: str) -> Any:
        self.questions += 1
        return getattr(self._store, name)


def test_a_session_of_twice_as_many_calls_takes_no_more_than_twice_the_work(
    at_work: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, texts_of = list[str](), module.texts_of

    def counted(message: Message) -> list[str]:
        own = texts_of(message)
        texts.extend(own)
        return own

    monkeypatch.setattr(module, "texts_of", counted)
    (at_work.cwd / "names.txt").write_text("calculate_everything\n")
    searched, asked = [], []
    for calls in (20, 40):
        while (last := at_work.answer()) < calls:
            (at_work.cwd / "names.txt").write_text(f"calculate_everything {last}\n")
            at_work.read("names.txt")
        store: Any = CountingStore(at_work.engine.opened.session.objects.store)
        texts.clear()
        found = trace(store, "s", "calculate_everything", call_id("s", last))
        assert found.calls == last
        searched.append(len(texts))
        asked.append(store.questions)
    assert searched[1] <= 2 * searched[0]
    assert asked[1] <= asked[0]
