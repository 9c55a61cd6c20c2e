"""What a real small model writes. Its form alone counts: it is far too small to observe."""

from __future__ import annotations

from datetime import UTC

import pytest

from context.real_model import RealModel
from foredeck.observations.chunks import WallTime
from foredeck.observations.observers import parse_answer
from foredeck.observations.prompts import EXAMPLES, observer_text, repair_system
from foredeck.observations.texts import TextRules

RULES = TextRules(WallTime(UTC))
BEGUN = "<observations>\n2026-05-03\n- 09:20 medium request: User"
CHATS = (
    "2026-05-03\n09:20 user:\n  Please add a test for the login. I prefer pytest.\n"
    "09:21 agent:\n  I will look at the login first.\n  calls read src/login.py\n"
    "09:21 result of read src/login.py:\n  def login(name: str, password: str) -> bool:\n"
    "09:24 agent:\n  I wrote tests/test_login.py: 2 tests pass.",
    "2026-05-03\n14:02 user:\n  Why does the build fail?\n"
    "14:03 agent:\n  calls bash npm run build\n"
    "14:03 result of bash npm run build (failed):\n"
    "  TypeError: cannot read due of undefined in src/order.ts:88\n"
    "14:05 agent:\n  Guests have no due date. I added a default in src/order.ts.",
)


@pytest.mark.long
def test_notes_are_read_of_what_a_small_model_writes() -> None:
    model = RealModel.start()
    for chat in CHATS:
        asked = [
            {"role": "system", "content": repair_system()},
            {"role": "user", "content": observer_text(chat, 4)},
        ]
        # By itself it does not find the form. Begun for it, it goes on in one of its own.
        written = BEGUN + model.goes_on(asked, BEGUN, 120)
        parsed = parse_answer(written, RULES, stop="length", examples=EXAMPLES)
        assert len(parsed.remarks) > 1, written
        assert not parsed.is_poor
