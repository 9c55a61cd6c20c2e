"""The chat of a session: its calls, the branch that is at hand, and what was compacted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foredeck.context.messages.items import Item
from foredeck.context.state.branch import Branch
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.info import SessionInfo
from foredeck.model.calls import CallRecord
from foredeck.model.canonical import hash_text
from foredeck.model.documents import Fields
from foredeck.model.records import call_id
from foredeck.store.protocol import Head, Store

if TYPE_CHECKING:  # of a session that asks for a part of a chat
    from foredeck.model.places import Slice

Compactions = dict[str, Fields]
"""What was compacted, by id, oldest first; without its turns."""


@dataclass(frozen=True, slots=True)
class StoredChats:
    """Chats of stored sessions, as the host's adapter reads them."""

    text: Callable[[str, int, Slice | None, Mapping[str, int]], str] = lambda *_: ""
    """`text(session, turns, asked, handles)`: the first `turns` turns of a session's chat; `asked`:
    only these user turns, or messages; `handles`: those to write for objects, all others go by
    their ids."""
    inherited_turns: Callable[[str], Sequence[Head]] = lambda _session: ()
    """The turns that the chat of a session begins with, where it is a fork, oldest first."""


@dataclass(slots=True)
class Chat:
    """What a session's calls have held, on all branches.

    The branch at hand changes by `go_to` alone, when a list of messages is aligned or a refused
    call is taken back.
    """

    info: SessionInfo
    store: Store
    log: CallLog
    compactions: Compactions = field(default_factory=dict)
    turns: int = 0
    """How many turns are stored, those of all branches together."""
    private: bool = False
    """Whether nothing that is said in it is kept or found outside it."""
    stored: StoredChats = field(default_factory=StoredChats)
    _branch: Branch = field(default_factory=Branch)

    @property
    def branch(self) -> Branch:
        """The branch that was asked for last. Another takes its place at a call, so whoever
        outlives a call keeps the chat and not the branch."""
        return self._branch

    def go_to(self, branch: Branch) -> None:
        """Go on from another branch."""
        self._branch = branch

    @property
    def branch_record(self) -> CallRecord | None:
        """The newest call record of the branch; None before its first call."""
        return self.log.record(self.branch.call)

    @property
    def newest_record(self) -> CallRecord | None:
        """The newest call record of the session; before a fork's first, the one it goes on from."""
        return self.log.last or self.branch_record

    def load_record(self, id: str) -> CallRecord | None:
        """A call record of any session."""
        head = self.store.head(id)
        return None if head is None else CallRecord(head.fields)

    def take_up_newest(self) -> None:
        """Before a first request: go on from the newest call, until that request brings the
        messages of the branch that the host is on."""
        if self.branch.call is not None or self.branch.shown is not None:
            return
        ids = (call_id(self.info.id, ordinal) for ordinal in range(self.log.newest, 0, -1))
        newest = next((id for id in ids if id not in self.log.unsent), None)
        self.go_to(Branch.provisional(self.log.replay(newest, self.load_record)))


def by_summary(compactions: Compactions, text: str) -> str | None:
    """Id of the compaction whose summary this is; None for a summary of another's."""
    digest = hash_text(text)
    ids = [id for id, fields in compactions.items() if fields.get("text_hash") == digest]
    return ids[-1] if ids else None


def host_compaction(chat: Chat) -> str | None:
    """Id of the compaction whose summary is first in the host's list; None for none of ours."""
    return summarised_by(chat.compactions, chat.branch.plan.items)


def summarised_by(compactions: Compactions, items: Sequence[Item]) -> str | None:
    """Id of the compaction whose summary begins this list; None for none of ours."""
    first = items[0].blocks[0] if items and items[0].kind == "context" and items[0].blocks else {}
    return by_summary(compactions, str(first.get("text") or ""))


def turn_of(chat: Chat, item: Item) -> int:
    """The number of the user turn that this item of the list belongs to, along the branch."""
    before = chat.compactions.get(host_compaction(chat) or "")
    offset = 0 if before is None else int(before["last_turn"])
    return offset + item.turn
