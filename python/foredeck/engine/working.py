"""Working memory of an opened session: its section of the head, and what the model writes."""

from __future__ import annotations

from foredeck.config import Config
from foredeck.context.state.objects import SessionInfo
from foredeck.context.state.opening import SessionFolder
from foredeck.model.documents import Provenance
from foredeck.model.memory import by_an_agent
from foredeck.sources.projects import Project
from foredeck.store.protocol import Store
from foredeck.working import (
    TEMPLATE,
    ContextUpdates,
    JsonForm,
    MarkdownForm,
    PageForm,
    WorkingMemory,
    WorkingSection,
)


def page_form(config: Config) -> PageForm:
    """What pages are, as configured."""
    if config.working.json_schema:
        return JsonForm(config.working.json_schema)
    return MarkdownForm(config.working.template or TEMPLATE)


def project_page(config: Config, store: Store, project: Project, by: Provenance) -> WorkingMemory:
    """The page of a project."""
    form, most = page_form(config), config.working.max_chars
    return WorkingMemory(store, "resource", project.id, form, most, by)


def session_page(config: Config, store: Store, session: str, by: Provenance) -> WorkingMemory:
    """The page of one session."""
    form, most = page_form(config), config.working.max_chars
    return WorkingMemory(store, "thread", session, form, most, by)


def working_section(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> WorkingSection | None:
    """The section of the head; None where it is switched off, and in a replay: which project its
    folder was in is no longer known."""
    if not config.working.head or not info.is_live:
        return None
    return WorkingSection(_pages(config, store, info, session_folder))


def update_context(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> ContextUpdates | None:
    """What the model's `update_context` does; None in a replay."""
    if not info.is_live:
        return None
    project, own = _pages(config, store, info, session_folder)
    return ContextUpdates({"resource": project, "thread": own})


def _pages(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> tuple[WorkingMemory, WorkingMemory]:
    by = by_an_agent(info.id)
    return (
        project_page(config, store, session_folder.project, by),
        session_page(config, store, info.id, by),
    )
