# Paths are strings here: not always UTF-8.
"""Versions of the files that commands change, whether or not a tool has read them.

`keeping.py` finds the files and stores their bytes; of these, file objects get a version from
before the command and one from after it, so that their lines have an author.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from foredeck.context.state.chat import Chat
from foredeck.errors import Conflict
from foredeck.model.documents import FileDocument, chat_id
from foredeck.model.records import FileChangeDocument, PathChange, PathState
from foredeck.model.sources import path_of
from foredeck.sources.filesystem import FilesystemMap, Location, is_within
from foredeck.sources.looking import decode
from foredeck.sources.projects import checkout_of
from foredeck.sources.snapshots import (
    Known,
    file_version,
    is_captured,
    is_unread,
    link_move,
    lookup,
)
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch
from foredeck.timeline.repositories import ignored

MAX_BYTES = 2 * 1024 * 1024
"""Of one file, before and after."""
MOST_FILES = 1000
"""Of one command."""
IGNORED_S = 0.5
"""How long git may take to say what it ignores."""
PORTION = 20
"""Files between two looks at the clock."""

_MAY_HOLD_KEYS = re.compile(
    r"(?:^|/)(?:\.(?:ssh|aws|gnupg|kube)/.*|\.(?:netrc|npmrc|pypirc|pgpass|htpasswd)"
    r"|\.env(?!\.(?:example|sample|template|dist)$)(?:\..*)?|credentials(?:\..*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|gpg))$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Ids of the files that get versions, and how many others get none, by the reason."""

    files: list[str] = field(default_factory=list)
    unversioned: Counter[str] = field(default_factory=Counter)

    def note(self, document: FileChangeDocument) -> None:
        """Add it to a change, which is not sealed yet."""
        document.files = [*(document.files or ()), *self.files] or None
        left = Counter(document.unversioned or {}) + self.unversioned
        document.unversioned = dict(sorted(left.items())) or None


class _Due(NamedTuple):
    """A file that is still to get its versions. `ended_ms`: when the command had ended."""

    tool_call: str
    change: PathChange
    ended_ms: int


class CommandVersions:
    """Gives versions to the files that the commands of one session change."""

    def __init__(self, chat: Chat, filesystems: FilesystemMap) -> None:
        self._chat = chat
        self._filesystems = filesystems
        self._due: deque[_Due] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether some files are still to get versions."""
        return bool(self._due)

    def choose(
        self, tool_call: str, changes: Sequence[PathChange], blobs: Mapping[str, bytes]
    ) -> Chosen:
        """Which of the files that a command has changed get versions: with the next `store`.
        `blobs`: bytes of theirs that are not stored yet."""
        if self._chat.private or not changes:
            return Chosen()
        left: Counter[str] = Counter()
        data = {**self._chat.store.blobs(_digests(changes) - blobs.keys()), **blobs}
        wanted: dict[str, PathChange] = {}
        for change in changes:
            why = _why_not(change, data)
            if why is None:
                wanted[change.path] = change
            elif why:
                left[why] += 1
        places = self._inside(wanted)
        self._leave_out_secrets(places, left)
        self._leave_out_ignored(places, left)
        for path in list(places)[MOST_FILES:]:
            del places[path]
            left[f"of more than {MOST_FILES:,} at once"] += 1
        ended_ms = now_ms()
        self._due += [_Due(tool_call, wanted[path], ended_ms) for path in places]
        return Chosen(list(places.values()), left)

    def _inside(self, paths: Iterable[str]) -> dict[str, str]:
        """Those in the project, with the ids of their objects."""
        cwd = self._filesystems.real(self._filesystems.absolute(self._chat.info.cwd))
        top = checkout_of(cwd, self._filesystems) or cwd
        found = (path for path in paths if is_within(path, top))
        return {path: self._filesystems.locate_local(path).object_id for path in found}

    def _leave_out_secrets(self, places: dict[str, str], left: Counter[str]) -> None:
        # What a tool has shown to a model is known to it already.
        secret = {p: id for p, id in places.items() if _MAY_HOLD_KEYS.search(p)}
        heads = self._chat.store.heads(secret.values())
        for path, id in secret.items():
            head = heads.get(id)
            if head is None or head.fields.get("text_hash") is None or is_captured(head.fields):
                del places[path]
                left["that may hold keys"] += 1

    def _leave_out_ignored(self, places: dict[str, str], left: Counter[str]) -> None:
        found = ignored(self._chat.info.cwd, places, time.monotonic() + IGNORED_S) if places else ()
        for path in list(places) if found is None else found:
            del places[path]
            left["of which git did not say" if found is None else "ignored by git"] += 1

    def store(self, until: float) -> bool:
        """Store versions until a time (by `time.monotonic`); whether some are left."""
        while self._due:
            call = self._due[0].tool_call
            portion = [due for due in islice(self._due, PORTION) if due.tool_call == call]
            with suppress(Conflict):  # another engine has stored versions of these
                self._put(portion)
            for _ in portion:
                self._due.popleft()
            if time.monotonic() > until:
                break
        return bool(self._due)

    def _put(self, portion: Sequence[_Due]) -> None:
        """First what the files were, where that is not known; then what the command has made."""
        places = {d.change.path: self._filesystems.locate_local(d.change.path) for d in portion}
        # What is stored here joins no session's index, and so no prompt.
        known = self._known(places)
        portion = [due for due in portion if not _is_newer(known[due.change.path], due)]
        changes = [due.change for due in portion]
        blobs = self._chat.store.blobs(_digests(changes))
        self._commit(_versions(places, known, [(c, c.before) for c in changes], blobs), known)
        # In two transactions: one holds a single version of each object.
        known = self._known(places)
        made = _versions(places, known, [(c, c.after) for c in changes], blobs)
        _link_moves(made, changes)
        if portion and self._is_own(portion[0].tool_call):
            named = {"tool_call": portion[0].tool_call}
            for document in made:
                document.provenance = document.provenance.model_copy(update=named)
        self._commit(made, known)

    def _is_own(self, tool_call: str) -> bool:
        """Whether no call of another session has this id: some providers give out one again."""
        head = self._chat.store.head(tool_call)
        return head is None or head.fields.get("chat_ref") == chat_id(self._chat.info.id)

    def _known(self, places: Mapping[str, Location]) -> dict[str, Known]:
        ids = [place.object_id for place in places.values()]
        known = lookup(self._chat.store, ids)
        return {path: known[place.object_id] for path, place in places.items()}

    def _commit(self, made: Sequence[FileDocument], known: Mapping[str, Known]) -> None:
        heads = [each.head for each in known.values() if each.head is not None]
        tokens = {head.id: head.token for head in heads}
        if made:
            expect = {document.id: tokens.get(document.id) for document in made}
            self._chat.store.commit(Batch([document.seal() for document in made], {}, expect))


def _why_not(change: PathChange, blobs: Mapping[str, bytes]) -> str | None:
    """Why a file gets no version; "" for what is no file of text at all before and after, or has
    not been read yet; None where it gets one."""
    states = (change.before, change.after)
    if any(state.kind == "large" or (state.size or 0) > MAX_BYTES for state in states):
        return f"larger than {MAX_BYTES // 1024**2} MiB"
    if any(state.kind not in ("file", "missing") for state in states):
        return ""
    if change.before.digest == change.after.digest:
        return ""  # permissions
    data = [blobs.get(state.digest or "", b"") for state in states]
    return "that are no text" if any(decode(each) is None for each in data) else None


def _is_newer(known: Known, due: _Due) -> bool:
    """Whether what is in the file was stored later."""
    is_later = known.head is not None and known.head.time_ms > due.ended_ms
    return is_later and known.state != "listed"


def _is_unknown(known: Known, change: PathChange, state: PathState) -> bool:
    """Whether a state is to be stored: neither it nor the one after it is what is known."""
    if state.kind == "missing":
        return state is change.after and known.exists and known.state != "deleted"
    digest = known.fields.get("source_hash")
    return not known.exists or digest not in (state.digest, change.after.digest)


def _versions(
    places: Mapping[str, Location],
    known: Mapping[str, Known],
    states: Iterable[tuple[PathChange, PathState]],
    blobs: Mapping[str, bytes],
) -> list[FileDocument]:
    """Versions of those states, from before or after a command, that are not known."""
    made = []
    for change, state in states:
        last = known[change.path]
        if not _is_unknown(last, change, state):
            continue
        data = None if state.kind == "missing" else blobs[state.digest or ""]
        document = file_version(
            places[change.path],
            last.fields,
            state="deleted" if data is None else "text",
            content=None if data is None else decode(data),
            source_hash=state.digest,
            size=state.size,
            by=("bash", "tool") if state is change.after else ("disk", "system"),
            captured=not last.exists or is_unread(last.fields),
        )
        made.append(document)
    return made


def _digests(changes: Iterable[PathChange]) -> set[str]:
    return {s.digest for c in changes for s in (c.before, c.after) if s.digest}


def _link_moves(files: Sequence[FileDocument], changes: Sequence[PathChange]) -> None:
    """Tie files that a command has removed to those that have their bytes now."""
    was = {change.path: change.before.digest for change in changes}
    arrived = {file.source_hash: file for file in files if file.state == "text" and file.content}
    for gone in files:
        path = path_of(gone.model_dump(include={"source"})) if gone.state == "deleted" else None
        if path is not None and (into := arrived.pop(was.get(path), None)) is not None:
            link_move(gone, into)
