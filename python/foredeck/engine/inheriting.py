"""A fork takes over what its parent's memory held where it left: with its first call, once."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.errors import Corrupt, Missing
from foredeck.lookup.chat import addresses_back
from foredeck.memory.keeping import Memory, inherited_memory
from foredeck.model.memory import MemoryDocument

log = logging.getLogger(__name__)


@dataclass(slots=True)
class MemoryOfParent:
    """An `Inheritance`: committed with the fork's first call, it is there whole or not at all, and
    that call's head has it as the parent's had."""

    objects: Objects
    chat: Chat
    reader: Memory
    parent: str
    _is_done: bool = False

    def take_over(self) -> None:
        """See `Inheritance`."""
        if self._is_done:
            return
        self._is_done = True
        try:
            for document in self._taken():
                self.objects.workspace.put(document)
        except (Corrupt, Missing) as error:
            log.warning("what the parent knew was not taken over: %s", error)

    def uncommitted(self) -> Iterable[MemoryDocument]:
        """See `Inheritance`."""
        pending = self.objects.workspace.pending.values()
        return [document for document in pending if isinstance(document, MemoryDocument)]

    def _taken(self) -> list[MemoryDocument]:
        messages = [item.key.address for item in self.chat.branch.plan.items]
        lineage = sorted(self.objects.info.family)
        path = set(addresses_back(self.objects.store, messages, lineage, self._blob))
        now = self.reader.now_ms()
        return inherited_memory(self.reader, self.parent, self.objects.info.id, path, now)

    def _blob(self, address: str) -> bytes:
        found = self.objects.workspace.blobs.get(address)
        return self.objects.store.blob(address) if found is None else found
