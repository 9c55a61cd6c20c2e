"""The calls of a stored session, read one after the other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from foredeck.accounting.cache import Shapes
from foredeck.accounting.stored import StoredCalls
from foredeck.config import Config
from foredeck.lookup.prompts import prompt_at
from foredeck.store.place import open_store
from goldens.scripted import Dice, Playing


@pytest.mark.parametrize("seed", [2, 3, 5, 8, 13, 21])
def test_what_is_read_of_a_call_is_what_it_sent(seed: int, tmp_path: Path) -> None:
    playing = Playing(tmp_path, Dice(seed))
    playing.play()
    session = playing.host.session
    playing.host.close()
    with closing(open_store(Config(home=tmp_path))) as store:
        calls = list(StoredCalls(store, session))
        for call in calls:
            prompt = prompt_at(store, session, call.ordinal)
            assert call.sent == Shapes().of(prompt.messages)
            assert len(call.messages) == len(call.keys) == call.record.length
    assert calls
