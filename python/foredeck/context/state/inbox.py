"""What has happened since the newest call and waits for the next one, on whichever branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

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


class PendingNotices:
    """Files that something else has changed, by handle, until a prompt says so."""

    def __init__(self, stored: Mapping[str, str] | None = None) -> None:
        """`stored`: as the session's own document has them."""
        self._stored = dict(stored or {})
        self._changes: dict[int, FileChange] = {
            int(ordinal): _known_change(change) for ordinal, change in self._stored.items()
        }
        self._said: dict[int, FileChange] = {}
        """What the newest call has taken."""

    def add(self, ordinal: int, change: FileChange) -> None:
        """The file is to be announced; an earlier change of it need not be any more."""
        self._changes[ordinal] = change

    def withdraw(self, ordinal: int) -> None:
        """The model knows of the change by now, or made it."""
        self._changes.pop(ordinal, None)

    def moved(self) -> list[int]:
        """The files that have another name now, in the order of their handles."""
        return sorted(n for n, change in self._changes.items() if change == "moved")

    def take(self) -> dict[int, FileChange]:
        """All of them, in the order of their handles; none is pending then."""
        taken, self._changes = dict(sorted(self._changes.items())), {}
        self._said = taken
        return taken

    def restore(self) -> None:
        """Make pending again what was taken for the newest call, whose prompt was refused."""
        # A change that came meanwhile is the newer one.
        self._changes = {**self._said, **self._changes}
        self._said = {}

    def forget_said(self) -> None:
        """Forget what the call before has said: it was answered."""
        self._said = {}

    def copy(self) -> PendingNotices:
        """A copy, to go back to where a transaction has to be given up."""
        copied = PendingNotices(self._stored)
        copied._changes = dict(self._changes)
        return copied

    def to_store(self) -> dict[str, str] | None:
        """As the session's document is to have them; None where it has them like that already."""
        wanted: dict[str, str] = {str(n): change for n, change in sorted(self._changes.items())}
        if wanted == self._stored:
            return None
        self._stored = dict(wanted)
        return wanted

    def __bool__(self) -> bool:
        return bool(self._changes)


class KnownTexts:
    """What the agent knows of files that something else has changed since, by handle: the hash of
    the text that it has read or made. A file that is not named here is known as the index has it.
    """

    def __init__(self, stored: Mapping[str, str] | None = None) -> None:
        """`stored`: as the session's own document has them."""
        self._stored = dict(stored or {})
        self._hashes = dict(self._stored)

    def keep(self, ordinal: int, text_hash: str | None) -> None:
        """Note what the agent knows of a file that has changed."""
        # Of several changes in a row the agent knows what was there before the first.
        if text_hash is not None:
            self._hashes.setdefault(str(ordinal), text_hash)

    def get(self, ordinal: int) -> str | None:
        """The hash of the text that is known; None where that is the newest version."""
        return self._hashes.get(str(ordinal))

    def catch_up(self, ordinal: int) -> None:
        """The agent knows the newest version by now."""
        self._hashes.pop(str(ordinal), None)

    def to_store(self) -> dict[str, str] | None:
        """As the session's document is to have them; None where it has them like that already."""
        if self._hashes == self._stored:
            return None
        self._stored = dict(sorted(self._hashes.items()))
        return dict(self._stored)


def _known_change(stored: str) -> FileChange:
    # A newer version of foredeck may have stored a kind that this one does not know.
    return next((change for change in get_args(FileChange) if change == stored), "changed")


@dataclass(slots=True)
class Inbox:
    """What the next call has to take into account, and what the user is to read with it.

    Whoever notices something puts it here; the steps of a call take it out. `typed` alone stays
    while the session is open, and `withdrawal_announced` for as long as what it is about.
    """

    early_results: dict[str, EarlyResult] = field(default_factory=dict)
    """By call id: what a tool touched, observed before its result is in any message list."""
    notices: PendingNotices = field(default_factory=PendingNotices)
    known_texts: KnownTexts = field(default_factory=KnownTexts)
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
