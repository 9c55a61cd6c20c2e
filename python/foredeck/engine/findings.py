"""Findings of an opened session: the model's tool for them, and what data tools have found."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from foredeck.config import Config
from foredeck.context.state.objects import Objects
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import MemoryQuestion
from foredeck.memory.entry import MemoryRefused
from foredeck.memory.findings import PromoteFinding, SessionFindings, findings_in, has_data
from foredeck.memory.session import SessionMemory

if TYPE_CHECKING:
    from foredeck.engine.opened import OpenedSession

log = logging.getLogger(__name__)


def promote_finding(
    config: Config, objects: Objects, memory: SessionMemory | None
) -> PromoteFinding | None:
    """The tool; None where findings are switched off, and without memory."""
    if config.tools.findings == "off" or memory is None:
        return None
    return PromoteFinding(_findings(config, objects, memory))


def questions_of(opened: OpenedSession, tool: PromoteFinding) -> list[MemoryQuestion]:
    """What the tool has just proposed, for the host to ask the user about at once."""
    # Loads with the first finding.
    from foredeck.engine.memory_commands import memory_questions

    return [] if tool.proposed is None else memory_questions(opened, tool.proposed)


def propose_found(opened: OpenedSession, tool: str, call: str, details: Any) -> None:
    """What the result of a data tool has found waits for the user, who reads of it once; the
    project's next session has the tool for findings. Nothing of it may fail the tool."""
    config = opened.config
    if tool not in config.memory.data_tools or config.tools.findings == "off":
        return
    if opened.switches is not None:
        opened.switches.note_data()
    memory = opened.features.memory
    if memory is None:
        return
    findings = _findings(config, opened.session.objects, memory)
    count = 0
    for text, tags in findings_in(details):
        try:
            findings.propose(text, tags, "analysis", call)
            count += 1
        except MemoryRefused as refusal:
            log.info("a finding of %s: %s", tool, refusal)
        except ForedeckError as error:
            log.warning("a finding of %s is not proposed: %s", tool, error)
            return
    if count:
        what = "One finding waits" if count == 1 else f"{count} findings wait"
        opened.session.inbox.notify(f"{what} for your word: /memory")


def _findings(config: Config, objects: Objects, memory: SessionMemory) -> SessionFindings:
    store, session, tools = objects.store, objects.info.id, config.memory.data_tools
    return SessionFindings(memory.memory, session, lambda: has_data(store, session, tools))
