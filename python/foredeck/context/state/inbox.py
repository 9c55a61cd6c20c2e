"""What waits for the next call, on any branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from foredeck.context.state.request import CompactionRequest
from foredeck.sources.snapshots import FileSnapshot
from foredeck.store.protocol import Token

FileChange = Literal["changed", "deleted", "moved", "overwritten"]


@dataclass(slots=True)
class EarlyResult:
    """The files a tool touched, and the transaction with them.

    `stored`: the call's object was written, its turn a guess.
    """

    snapshots: list[FileSnapshot]
    token: Token | None = None
    full_output: str | None = None
    stored: bool = False


@dataclass(slots=True)
class PendingNotices:
    """Files changed from outside, until a prompt announces them."""

    changes: dict[int, FileChange] = field(default_factory=dict)
    _said: dict[int, FileChange] = field(default_factory=dict)
    """Notices that the newest call announced."""

    def add(self, ordinal: int, change: FileChange) -> None:
        """Announces a change in place of an earlier one of the same file."""
        self.changes[ordinal] = change

    def withdraw(self, ordinal: int) -> None:
        """The model knows of the change, or made it."""
        self.changes.pop(ordinal, None)

    def moved(self) -> list[int]:
        """Handles of renamed files, sorted."""
        return sorted(n for n, change in self.changes.items() if change == "moved")

    def take(self) -> dict[int, FileChange]:
        """Takes all pending notices, by handle."""
        self._said, self.changes = dict(sorted(self.changes.items())), {}
        return self._said

    def restore(self) -> None:
        """The newest call's notices are pending again: its prompt was refused."""
        # A change that came meanwhile is the newer one.
        self.changes = {**self._said, **self.changes}
        self._said = {}

    def forget_said(self) -> None:
        self._said = {}

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class StoredInbox:
    """What the session document keeps of the inbox, by handle."""

    untold: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Inbox:
    """What the next call takes into account: whoever notices something adds it, the call's steps
    remove it."""

    notices: PendingNotices = field(default_factory=PendingNotices)
    known_texts: dict[int, str] = field(default_factory=dict)
    """By handle, the hash of the text that the agent read or made of a file changed outside; for
    others the index holds."""
    stored: StoredInbox = StoredInbox()
    early_results: dict[str, EarlyResult] = field(default_factory=dict)
    """By call id, before a message list has the result."""
    stale: set[str] = field(default_factory=set)
    """Files whose newest version is from a tool's output; the disk may differ."""
    being_written: set[str] = field(default_factory=set)
    """Files to read again: a write may be under way."""
    refused: list[int] = field(default_factory=list)
    """Ordinals of refused calls without a record."""
    withdrawal_announced: bool = False
    """The user was told that something leaves the head after the turn."""
    user_messages: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    """Since the session opened."""
    notify: Callable[[str], None] = lambda _text: None
    """Tells the user something at once."""
    compaction: CompactionRequest | None = None
    """The host's plan, while another may write the summary."""

    @classmethod
    def of_document(cls, fields: Mapping[str, Any], notify: Callable[[str], None]) -> Inbox:
        stored = StoredInbox(fields.get("untold") or {}, fields.get("behind") or {})
        # A newer version of foredeck may have stored a kind that this one does not know.
        kinds: dict[str, FileChange] = {change: change for change in get_args(FileChange)}
        changes = {int(n): kinds.get(change, "changed") for n, change in stored.untold.items()}
        texts = {int(n): text_hash for n, text_hash in stored.behind.items()}
        return cls(PendingNotices(changes), texts, stored, notify=notify)

    def keep_known(self, ordinal: int, text_hash: str | None) -> None:
        # Of several changes in a row the agent knows what was there before the first.
        if text_hash is not None:
            self.known_texts.setdefault(ordinal, text_hash)

    def to_store(self) -> StoredInbox:
        untold = {str(n): change for n, change in sorted(self.notices.changes.items())}
        return StoredInbox(
            untold, {str(n): text_hash for n, text_hash in sorted(self.known_texts.items())}
        )

    def pop_stale(self) -> list[str]:
        stale, self.stale = sorted(self.stale), set()
        return stale

    def pop_compaction(self) -> CompactionRequest | None:
        request, self.compaction = self.compaction, None
        return request

    def pop_user_messages(self) -> list[str]:
        """Takes the messages to the user."""
        messages, self.user_messages = self.user_messages, []
        return messages
