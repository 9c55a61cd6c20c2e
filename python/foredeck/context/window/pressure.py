"""How much of a context window a prompt may take."""

from __future__ import annotations

from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import Model
from foredeck.context.state.session import Session

AFTER_REFUSAL = 0.9
"""Of a prompt that was refused as too long, what still counts as the window."""


def usable_window(session: Session, model: Model | None, gauge: Gauge) -> int | None:
    """The model's window in tokens, less where the provider has refused a smaller prompt.

    None where it is not known.
    """
    if model is None or model.window is None:
        return None
    refused = [
        fields["refused"]["chars"]
        for fields in session.compactions.values()
        if (fields.get("refused") or {}).get("model") == model.name
    ]
    return min([model.window, *(int(AFTER_REFUSAL * gauge.tokens(chars)) for chars in refused)])


def room(window: int) -> int:
    """The largest prompt: what is left of the window once the answer has its place."""
    return window - min(window // 8, 8192)
