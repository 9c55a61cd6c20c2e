"""What a session was first asked, by which people and models know it."""

from __future__ import annotations

from contextlib import suppress

from foredeck.errors import ForedeckError
from foredeck.model.figures import shortened
from foredeck.model.messages import load_with_words
from foredeck.model.records import TurnDocument, turn_id
from foredeck.search.passages import passage
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import said_by
from foredeck.store.protocol import Head, Store

TITLE_CHARS = 80
_PROMPT_CHARS = 1200
_TITLED_BY = 3


def title_of(store: Store, session: str) -> str:
    """What a session was first asked, on a line; empty where nothing was asked."""
    return shortened(first_prompt(store, session), TITLE_CHARS)


def first_prompt(store: Store, session: str) -> str:
    """The beginning of what a session was first asked, without keys and tokens; empty where
    nothing was asked."""
    turns = store.heads(turn_id(session, number) for number in range(1, _TITLED_BY + 1))
    asked = sorted((head for head in turns.values() if head.fields.get("user")), key=_number)
    for head in asked:
        with suppress(ForedeckError, LookupError, TypeError, ValueError):
            said = said_by(load_with_words(str(head.view(TurnDocument).user), store.blob))
            if said.strip():
                return passage(mask_secrets(said), (), _PROMPT_CHARS).text
    return ""


def _number(turn: Head) -> int:
    return int(turn.id.rpartition(":")[2])
