"""The section about asking a model for foredeck itself, beside the agent's work."""

from __future__ import annotations

from pydantic import Field

from foredeck.config.section import Section


class AskingSection(Section):
    """`[asking]`: when a model may be asked for foredeck, beside the agent's work."""

    enabled: bool = Field(
        True,
        description="Whether foredeck may ask a model by itself at all, in the background. What "
        "you ask for with a command is asked all the same.",
    )
    model: str | None = Field(
        None,
        pattern=r"^[^/\s]+/\S+$",
        description="The model to ask, as `provider/id`: a cheaper one, say. Unset: the one that "
        "the agent works with, whose warm cache can then be read.",
    )
    share: float = Field(
        0.08,
        ge=0,
        le=1,
        description="Most that questions may cost, as a share of what the session has cost so far.",
    )
    per_hour: int = Field(20, ge=0, le=1000, description="Most questions within an hour.")
    single_slot: bool = Field(
        False,
        description="Whether a model on this machine or without a price may be asked: it usually "
        "answers one at a time, so a question pushes the agent's own prompt out of its cache.",
    )
    timeout_s: int = Field(120, ge=5, le=600, description="Longest wait for an answer, in seconds.")
