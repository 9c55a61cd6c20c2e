"""The section about observations: notes that stand in place of chat which has been read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.config.section import Section


class ObservingSection(Section):
    """`[observing]`: how sessions are observed, where `observations` is not `off`."""

    scope: Literal["thread", "resource"] = Field(
        "thread",
        description="Whose notes a session has: its own (`thread`), or those of the project's "
        "other sessions as well (`resource`), as a short block in its head. Then nothing is "
        "observed before the threshold is reached, and one session of a project at a time.",
    )
    mode: (
        Literal[
            "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
        ]
        | None
    ) = Field(
        None,
        description="What kind of work is observed. Unset: guessed by what the tools did, unless "
        "you say it in a session (`/foredeck observe mode testing`).",
    )
    threshold: int | None = Field(
        None,
        ge=2000,
        le=1_000_000,
        description="Tokens of chat from which on observations take its place, themselves "
        "included. Unset: that of the mode, 30,000 to 60,000.",
    )
    activation: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Share of the threshold at which they do.",
    )
    buffer_tokens: int = Field(
        6000,
        ge=500,
        le=100_000,
        description="Fewest tokens of chat that are observed at once.",
    )
    block_after: int = Field(
        7200,
        ge=0,
        le=1_000_000,
        description="Tokens of unobserved chat beyond that with which observing goes before all "
        "else that is done in the background.",
    )
    reflection_tokens: int = Field(
        40_000,
        ge=2000,
        le=1_000_000,
        description="Tokens of notes at which the oldest are condensed, condensed ones with them; "
        "never more than a fifth of the model's window.",
    )
    raw_count: int = Field(
        50,
        ge=0,
        le=1000,
        description="Notes of the last `raw_hours` that stay as they are then, the newest first.",
    )
    raw_hours: int = Field(24, ge=0, le=1000, description="See `raw_count`.")
    subagents: bool = Field(
        False, description="Whether sessions that an agent has started are observed, too."
    )
