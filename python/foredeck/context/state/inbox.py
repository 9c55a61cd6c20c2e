"""What has happened since the newest call and waits for the next one, on whichever branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from foredeck.context.state.request import CompactionRequest
from foredeck.sources.snapshots import FileSnapshot
from foredeck.store.protocol import Token

FileChange = Literal["changed", "deleted", "moved", "overwritten"]
"""`overwritten`: it was changed, and the agent's write replaced that before foredeck saw it."""


@dataclass(slots=True)
class EarlyResult:
    """The files that a tool touched, and the transaction that stored them.

    `full_output`: hash of the blob with all that the tool wrote, where the result is cut.
    `stored`: the call's own object was written with them; its turn was only a guess then.
    """

    snapshots: list[FileSnapshot]
    token: Token | None = None
    full_output: str | None = None
    stored: bool = False


@dataclass(slots=True)
class PendingNotices:
    """Files that something else has changed, by handle, until a prompt says so."""

    changes: dict[int, FileChange] = field(default_factory=dict)
    _said: dict[int, FileChange] = field(default_factory=dict)
    """What the newest call has taken."""

    def add(self, ordinal: int, change: FileChange) -> None:
        """The file is to be announced; an earlier change of it need not be any more."""
        self.changes[ordinal] = change

    def withdraw(self, ordinal: int) -> None:
        """The model knows of the change by now, or made it."""
        self.changes.pop(ordinal, None)

    def moved(self) -> list[int]:
        """The files that have another name now, in the order of their handles."""
        return sorted(n for n, change in self.changes.items() if change == "moved")

    def take(self) -> dict[int, FileChange]:
        """All of them, in the order of their handles; none is pending then."""
        self._said, self.changes = dict(sorted(self.changes.items())), {}
        return self._said

    def restore(self) -> None:
        """Make pending again what was taken for the newest call, whose prompt was refused."""
        # A change that came meanwhile is the newer one.
        self.changes = {**self._said, **self.changes}
        self._said = {}

    def forget_said(self) -> None:
        """Forget what the call before has said: it was answered."""
        self._said = {}

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class StoredInbox:
    """What of the inbox the session's own document keeps, by handle: pending notices, and texts
    that are known. Both are empty where it has none."""

    untold: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Inbox:
    """What the next call has to take into account, and what the user is to read with it.

    Whoever notices something puts it here; the steps of a call take it out. `typed` alone stays
    while the session is open, and `withdrawal_announced` for as long as what it is about.
    """

    notices: PendingNotices = field(default_factory=PendingNotices)
    known_texts: dict[int, str] = field(default_factory=dict)
    """What the agent knows of files that something else has changed since, by handle: the hash of
    the text that it has read or made. A file that is not named here is known as the index has it.
    """
    stored: StoredInbox = StoredInbox()
    early_results: dict[str, EarlyResult] = field(default_factory=dict)
    """By call id: what a tool touched, observed before its result is in any message list."""
    stale: set[str] = field(default_factory=set)
    """Ids of files whose newest version is what a tool said of them: the disk may differ."""
    being_written: set[str] = field(default_factory=set)
    """Ids or paths of files that seem to be being written: to be read once more."""
    refused: list[int] = field(default_factory=list)
    """Ordinals of calls that the provider refused, and that no record says so of yet."""
    withdrawal_announced: bool = False
    """Whether the user has read that something leaves the head at the end of the turn."""
    user_messages: list[str] = field(default_factory=list)
    """What the user is to read with the next answer."""
    typed: list[str] = field(default_factory=list)
    """What the user has typed since the session was opened, as the host says."""
    notify: Callable[[str], None] = lambda _text: None
    """Says something to the user at once, and not with the next answer."""
    compaction: CompactionRequest | None = None
    """The compaction that the host has in mind, for as long as another may sum up."""

    @classmethod
    def of_document(cls, fields: Mapping[str, Any], notify: Callable[[str], None]) -> Inbox:
        """The inbox of a session that is opened. `fields`: those of its own document."""
        stored = StoredInbox(fields.get("untold") or {}, fields.get("behind") or {})
        # A newer version of foredeck may have stored a kind that this one does not know.
        known: dict[str, FileChange] = {change: change for change in get_args(FileChange)}
        changes = {int(n): known.get(change, "changed") for n, change in stored.untold.items()}
        texts = {int(n): text_hash for n, text_hash in stored.behind.items()}
        return cls(PendingNotices(changes), texts, stored, notify=notify)

    def keep_known(self, ordinal: int, text_hash: str | None) -> None:
        """Note what the agent knows of a file that has changed."""
        # Of several changes in a row the agent knows what was there before the first.
        if text_hash is not None:
            self.known_texts.setdefault(ordinal, text_hash)

    def to_store(self) -> StoredInbox:
        """As the session's document is to have it."""
        untold = {str(n): change for n, change in sorted(self.notices.changes.items())}
        return StoredInbox(untold, {str(n): known for n, known in sorted(self.known_texts.items())})

    def pop_stale(self) -> list[str]:
        """Files to be compared with the disk; none is stale then."""
        stale, self.stale = sorted(self.stale), set()
        return stale

    def pop_compaction(self) -> CompactionRequest | None:
        """The compaction whose summary has been written; none is pending then."""
        request, self.compaction = self.compaction, None
        return request

    def pop_user_messages(self) -> list[str]:
        """What the user is to read; nothing is pending then."""
        messages, self.user_messages = self.user_messages, []
        return messages
