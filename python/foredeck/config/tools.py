"""`[tools]`: which tools foredeck gives the model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.config.section import Section
from foredeck.model.own_tools import Facility


class ToolsSection(Section):
    """`[tools]`: what the model's tools are, from the next session on.

    A tool is declared with every request, so one that came or went within a session would void
    the provider's whole cache. What is off costs nothing.
    """

    context: bool = Field(
        True,
        description="`activate`, `deactivate`, `pin`, `unpin`. Without them content still folds, "
        "and the model reads again what it needs.",
    )
    search: bool = Field(
        True, description="`memory-search`: what was said, done and read in any session."
    )
    tasks: Literal["auto", "on", "off"] = Field(
        "auto",
        description="`task-query`, `task-mutate`: `auto` declares them where the project holds "
        "tasks or has a page of working memory, which the model writes with them, or after "
        "`/tasks on`.",
    )

    findings: Literal["auto", "on", "off"] = Field(
        "auto",
        description="`promote-finding`: `auto` declares it where a session of the project has had "
        "one of `memory.data_tools`, or after `/memory findings on`.",
    )

    def declared(self, *, tasks: bool, findings: bool = False) -> tuple[Facility, ...]:
        """What a session of a project declares; `tasks`, `findings`: whether `auto` means those."""
        with_tasks = self.tasks == "on" or (self.tasks == "auto" and tasks)
        wanted: dict[Facility, bool] = {
            "context": self.context,
            "search": self.search,
            "tasks": with_tasks,
            "findings": self.findings == "on" or (self.findings == "auto" and findings),
        }
        return tuple(facility for facility, declared in wanted.items() if declared)
