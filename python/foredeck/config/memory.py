"""The section about what is remembered beyond a session."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.config.section import Section


class MemorySection(Section):
    """`[memory]`: what is kept of sessions, and of you beyond them ([memory.md](memory.md))."""

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
    data_tools: tuple[str, ...] = Field(
        ("load-data", "query-data", "query-sql", "analyze-data", "duckdb", "sql"),
        description="Tools of other extensions that bring data. After one of them has, the model "
        "may propose findings (`tools.findings`), and `findings` among the details of their "
        "results are proposed to you.",
    )
    head: bool = Field(
        True,
        description="What is kept of you, of the session and of its findings stands before the "
        "chat. Nothing does where nothing is kept.",
    )
    rules: bool = Field(
        True,
        description="What `rules.md` beside your own configuration file says stands first there.",
    )
    session_entries: int = Field(
        50, ge=1, le=1000, description="Most entries that are kept of one session."
    )
    global_entries: int = Field(
        100, ge=1, le=1000, description="Most entries that are kept of you, in all projects."
    )
    findings: int = Field(100, ge=1, le=1000, description="Most findings that a session keeps.")
    expire_days: int = Field(
        90,
        ge=1,
        le=10_000,
        description="After how many days without use an entry expires that you have not stated.",
    )
