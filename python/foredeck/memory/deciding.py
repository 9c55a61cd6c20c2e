"""The user's word on what waits for it."""

from __future__ import annotations

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.keeping import BUSY, Kept
from foredeck.memory.rules import MemoryRefused
from foredeck.memory.user_acts import UserActs, Wording
from foredeck.model.memory import MemoryDocument
from foredeck.store.change import changed
from foredeck.store.protocol import Batch


class Deciding(UserActs):
    """The acts of one user, with those of the inbox."""

    def accept(self, id: str, wording: Wording | None = None) -> Kept:
        """As for every entry; a finding that is only confirmed stays derived."""
        if wording is not None or self._reread(id).document.place != "findings":
            return super().accept(id, wording)

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            if entry.document.state != "proposed":
                raise MemoryRefused(f"That finding is {entry.document.state}, and not proposed.")
            document.state, document.act = "kept", "accepted"
            document.used_ms = self._later(document)

        return self._change(id, edit, "human")

    def accept_instead(self, id: str, of: str) -> Kept:
        """Keep what was proposed, in place of the entry `of`: both in one transaction, so that
        there is always exactly one of them."""

        def attempt() -> Kept:
            entry, old = self._reread(id), self._reread(of)
            if (entry.document.state, old.document.state) != ("proposed", "kept"):
                raise MemoryRefused("One of them was answered or changed meanwhile.")
            if entry.document.place == "global":
                self._check_may_leave(entry.document.session)
            left = self._leaving(old, "superseded")
            left.superseded_by = id
            batch = Batch([self._accepted(entry.document, entry.parents).seal(), left.seal()])
            batch.expect = {id: entry.token, of: old.token}
            self.store.commit(batch)
            return Kept(self._reread(id), (self._reread(of),))

        return changed(attempt, MemoryRefused(BUSY))

    def _accepted(self, document: MemoryDocument, parents: tuple[str, ...]) -> MemoryDocument:
        accepted = document.model_copy(deep=True)
        accepted.state, accepted.act = "kept", "accepted"
        accepted.updated_ms = accepted.used_ms = self._later(document)
        accepted.provenance = self._provenance("human", parents)
        accepted.vouched = self.user.vouch(accepted.statement())
        return accepted
