"""Observations and reflections in tests: stored, and known to the session at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context.driver import Host
from foredeck.context.state.facilities import StandIn, StandInKind
from foredeck.model.observations import ObservationDocument, ReflectionDocument
from foredeck.model.records import by_foredeck
from foredeck.observations.chunks import ends_of_batches


class Noted:
    """What stands in for stretches of a host's chat, from so many tokens on."""

    def __init__(self, host: Host, threshold: int = 0) -> None:
        self._host = host
        self._all: list[StandIn] = []
        self._threshold = threshold
        self.use(host)

    def use(self, host: Host) -> None:
        """Switch it on for the engine that runs now, of this host or of a fork."""
        self._host = host
        host.stand_in(self)

    def known(self) -> Sequence[StandIn]:
        """See `StandIns`."""
        return self._all

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """See `StandIns`."""
        return chat_tokens + standing_tokens >= self._threshold

    def ends(self) -> list[int]:
        """Where a stretch of the branch at hand may end."""
        items = self._host.state.chat.branch.plan.items
        return ends_of_batches(items)

    def observe(
        self, first: int, until: int, text: str, task: str = "", suggestion: str = ""
    ) -> StandIn:
        """An observation of the host's messages from `first` to before `until`."""
        return self._add("observation", first, until, text, task, suggestion)

    def reflect(self, first: int, until: int, text: str) -> StandIn:
        """A reflection on all observations of these messages."""
        return self._add("reflection", first, until, text)

    def _add(self, kind: StandInKind, first: int, until: int, text: str, *work: str) -> StandIn:
        session = self._host.state
        items = session.chat.branch.plan.items[first:until]
        covers = [item.key.address for item in items]
        id = f"{kind}:{session.info.id}:{len(self._all)}"
        about: dict[str, Any] = {"id": id, "session": session.info.id, "content": text}
        about["provenance"] = by_foredeck()
        document = (
            ObservationDocument(covers=covers, **about)
            if kind == "observation"
            else ReflectionDocument(replaces=[], **about)
        )
        session.objects.workspace.put(document.seal())
        session.objects.workspace.commit()
        made = StandIn(id, kind, tuple(covers), text, *work)
        self._all.append(made)
        return made
