"""The section about what is remembered beyond a session."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.config.section import Section


class MemorySection(Section):
    """`[memory]`: what is kept of sessions, and of you beyond them."""

    extract: bool = Field(
        True,
        description="Whether a model is asked after a turn what of it is worth remembering, within "
        "what `[asking]` allows.",
    )
    accept: Literal["ask", "user-stated", "off"] = Field(
        "user-stated",
        description="What of that outlives its session. `user-stated` keeps whole sentences of "
        "yours and asks you about all else (`/memory`); `ask` asks about everything; `off` keeps "
        "nothing.",
    )
