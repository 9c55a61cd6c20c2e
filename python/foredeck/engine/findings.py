"""Findings of an opened session: the model's tool for them, and what data tools have found."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.engine.memory import memory_of
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import MemoryQuestion
from foredeck.memory.findings import PromoteFinding, SessionFindings, findings_in
from foredeck.memory.rules import MemoryRefused
from foredeck.model.documents import chat_id
from foredeck.store.protocol import Store

if TYPE_CHECKING:
    from foredeck.engine.opening import OpenedSession

log = logging.getLogger(__name__)


def promote_finding(config: Config, session: Session) -> PromoteFinding | None:
    """The tool; None where findings are switched off."""
    if config.tools.findings == "off":
        return None
    findings = _findings(config, session)
    return None if findings is None else PromoteFinding(findings)


def questions_of(config: Config, session: Session, tool: PromoteFinding) -> list[MemoryQuestion]:
    """What the tool has just proposed, for the host to ask the user about at once."""
    # Loads with the first finding.
    from foredeck.engine.memory_commands import memory_questions

    return [] if tool.proposed is None else memory_questions(config, session, tool.proposed)


def propose_found(
    config: Config, opened: OpenedSession, tool: str, call: str, details: Any
) -> None:
    """What the result of a data tool has found waits for the user, who reads of it once; the
    project's next session has the tool for findings. Nothing of it may fail the tool."""
    if tool not in config.memory.data_tools or config.tools.findings == "off":
        return
    if opened.switches is not None:
        opened.switches.note_data()
    session = opened.session
    findings = _findings(config, session)
    count = 0
    for text, tags in findings_in(details) if findings is not None else ():
        try:
            assert findings is not None
            findings.propose(text, tags, "analysis", call)
            count += 1
        except MemoryRefused as refusal:
            log.info("a finding of %s: %s", tool, refusal)
        except ForedeckError as error:
            log.warning("a finding of %s is not proposed: %s", tool, error)
            return
    if count:
        what = "One finding waits" if count == 1 else f"{count} findings wait"
        session.inbox.notify(f"{what} for your word: /memory")


def has_data(store: Store, session: str, tools: Iterable[str]) -> bool:
    """Whether a data tool has brought anything in a session."""
    where = {"chat_ref": chat_id(session), "status": "ok"}
    return any(store.query("toolcall", {**where, "tool": tool}, limit=1) for tool in tools)


def _findings(config: Config, session: Session) -> SessionFindings | None:
    memory = memory_of(config, session)
    if memory is None:
        return None
    tools = config.memory.data_tools
    return SessionFindings(
        memory.memory,
        session.info.id,
        lambda: has_data(session.objects.store, session.info.id, tools),
    )
