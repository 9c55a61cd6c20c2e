"""What was noted of a session's chat, with the messages that it stands for."""

from __future__ import annotations

from typing import Any

from foredeck.observations.reading import Observation, Reflection, stored_notes
from foredeck.store.protocol import Store
from foredeck.ui.pages import WebPage
from foredeck.ui.views.session_head import described, found_session

_FIELDS = (
    *("mode", "priority", "category", "first_turn", "last_turn", "files", "remark_count"),
    *("current_task", "suggestion", "observed_by", "model", "is_edited", "dropped"),
)


def observations_page(store: Store, name: str) -> WebPage:
    """Reflections and observations of a session, oldest first. Raises `NotFound`."""
    session, head = found_session(store, name)
    stored = stored_notes(store, [session])
    reflections = sorted(stored.reflections, key=lambda one: one.generation)
    data = {
        **described(store, session, head),
        "reflections": [_reflection(one) for one in reflections],
        "observations": [_observation(one) for one in stored.observations],
        "covered_tokens": sum(one.document.covered_tokens for one in stored.observations),
        "tokens": sum(one.tokens for one in stored.observations),
    }
    return WebPage("observations.html", "Observations", data, "sessions")


def _observation(one: Observation) -> dict[str, Any]:
    return {
        **_common(one),
        "covered_tokens": one.document.covered_tokens,
        "unfounded": sorted({name for remark in one.document.remarks for name in remark.unfounded}),
    }


def _reflection(one: Reflection) -> dict[str, Any]:
    return {
        **_common(one),
        "level": one.document.level,
        "generation": one.generation,
        "observations": list(one.document.observations),
        "input_tokens": one.document.input_tokens,
    }


def _common(one: Observation | Reflection) -> dict[str, Any]:
    fields = {name: one.head.fields.get(name) for name in _FIELDS}
    text = None if one.is_deleted else one.text
    return {"object": one.id, "text": text, "tokens": one.tokens, **fields}
