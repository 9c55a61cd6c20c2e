"""Versions of what commands change, so that lines have authors."""

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
from foredeck.timeline.repositories import MAX_BYTES, ignored

MOST_FILES = 1000
"""Of one command."""
IGNORED_S = 0.5
"""Seconds for git to list what it ignores."""
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
    """Files that get versions, and counts of others by reason."""

    files: list[str] = field(default_factory=list)
    unversioned: Counter[str] = field(default_factory=Counter)

    def note(self, document: FileChangeDocument) -> None:
        """Adds this to an unsealed change."""
        document.files = [*(document.files or ()), *self.files] or None
        counts = Counter(document.unversioned or {}) + self.unversioned
        document.unversioned = dict(sorted(counts.items())) or None


class _Due(NamedTuple):
    tool_call: str
    change: PathChange
    ended_ms: int


class CommandVersions:
    """Versions of files that one session's commands change."""

    def __init__(self, chat: Chat, filesystems: FilesystemMap) -> None:
        self._chat = chat
        self._filesystems = filesystems
        self._due: deque[_Due] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether files await versions."""
        return bool(self._due)

    def choose(
        self, tool_call: str, changes: Sequence[PathChange], blobs: Mapping[str, bytes]
    ) -> Chosen:
        """Chooses which changed files to version at the next `store`."""
        if self._chat.private or not changes:
            return Chosen()
        skipped: Counter[str] = Counter()
        data = {**self._chat.store.blobs(_digests(changes) - blobs.keys()), **blobs}
        by_path: dict[str, PathChange] = {}
        for change in changes:
            why = _why_not(change, data)
            if why is None:
                by_path[change.path] = change
            elif why:
                skipped[why] += 1
        places = self._inside(by_path)
        self._leave_out_secrets(places, skipped)
        self._leave_out_ignored(places, skipped)
        for path in list(places)[MOST_FILES:]:
            del places[path]
            skipped[f"of more than {MOST_FILES:,} at once"] += 1
        ended_ms = now_ms()
        self._due += [_Due(tool_call, by_path[path], ended_ms) for path in places]
        return Chosen(list(places.values()), skipped)

    def _inside(self, paths: Iterable[str]) -> dict[str, str]:
        cwd = self._filesystems.real(self._filesystems.absolute(self._chat.info.cwd))
        top = checkout_of(cwd, self._filesystems) or cwd
        inside = (path for path in paths if is_within(path, top))
        return {path: self._filesystems.locate_local(path).object_id for path in inside}

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
        ignored_paths = (
            ignored(self._chat.info.cwd, places, time.monotonic() + IGNORED_S) if places else ()
        )
        for path in list(places) if ignored_paths is None else ignored_paths:
            del places[path]
            left["of which git did not say" if ignored_paths is None else "ignored by git"] += 1

    def store(self, until: float) -> bool:
        """Stores versions until a time (`time.monotonic`); returns whether some remain."""
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
        places = {d.change.path: self._filesystems.locate_local(d.change.path) for d in portion}
        # What is stored here joins no session's index, and so no prompt.
        stored = self._known(places)
        portion = [due for due in portion if not _is_newer(stored[due.change.path], due)]
        changes = [due.change for due in portion]
        blobs = self._chat.store.blobs(_digests(changes))
        self._commit(_versions(places, stored, [(c, c.before) for c in changes], blobs), stored)
        # In two transactions: one holds a single version of each object.
        stored = self._known(places)
        documents = _versions(places, stored, [(c, c.after) for c in changes], blobs)
        _link_moves(documents, changes)
        if portion and self._is_own(portion[0].tool_call):
            attribution = {"tool_call": portion[0].tool_call}
            for document in documents:
                document.provenance = document.provenance.model_copy(update=attribution)
        self._commit(documents, stored)

    def _is_own(self, tool_call: str) -> bool:
        """Whether the call is not another session's: providers repeat ids."""
        head = self._chat.store.head(tool_call)
        return head is None or head.fields.get("chat_ref") == chat_id(self._chat.info.id)

    def _known(self, places: Mapping[str, Location]) -> dict[str, Known]:
        ids = [place.object_id for place in places.values()]
        states = lookup(self._chat.store, ids)
        return {path: states[place.object_id] for path, place in places.items()}

    def _commit(self, made: Sequence[FileDocument], known: Mapping[str, Known]) -> None:
        heads = [each.head for each in known.values() if each.head is not None]
        tokens = {head.id: head.token for head in heads}
        if made:
            expect = {document.id: tokens.get(document.id) for document in made}
            self._chat.store.commit(Batch([document.seal() for document in made], {}, expect))


def _why_not(change: PathChange, blobs: Mapping[str, bytes]) -> str | None:
    """Why a file gets no version; None if it gets one."""
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
    is_later = known.head is not None and known.head.time_ms > due.ended_ms
    return is_later and known.state != "listed"


def _is_unknown(known: Known, change: PathChange, state: PathState) -> bool:
    """Whether neither this state nor the next matches the stored version."""
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
    documents = []
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
        documents.append(document)
    return documents


def _digests(changes: Iterable[PathChange]) -> set[str]:
    return {s.digest for c in changes for s in (c.before, c.after) if s.digest}


def _link_moves(files: Sequence[FileDocument], changes: Sequence[PathChange]) -> None:
    was = {change.path: change.before.digest for change in changes}
    arrived = {file.source_hash: file for file in files if file.state == "text" and file.content}
    for gone in files:
        path = path_of(gone.model_dump(include={"source"})) if gone.state == "deleted" else None
        if path is not None and (into := arrived.pop(was.get(path), None)) is not None:
            link_move(gone, into)
