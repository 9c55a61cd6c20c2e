"""Changes of files that came from outside a tool call, taken into the store and the session."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from foredeck.context.intake.notices import change_of, store_notices
from foredeck.context.intake.renames import renamed
from foredeck.context.state.descriptions import moved_claims
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.index import SeenVersion
from foredeck.context.state.objects import PENDING, Objects
from foredeck.context.wording import outside_project
from foredeck.errors import Conflict, ToolError
from foredeck.sources.recorded import is_object_id
from foredeck.sources.renames import unclear_rename
from foredeck.sources.snapshots import CHANGING, OUTSIDE, FileSnapshot, is_unmet
from foredeck.store.protocol import Batch, Head, Store, Token

PATIENCE_S = 0.25
"""How long a prompt waits, at most, for files that are being written at this moment."""
_PAUSE_S = 0.02
MAX_ATTEMPTS = 5
"""How often files are read, if another engine stores a version of one first each time."""


def look_again(
    objects: Objects, inbox: Inbox, targets: Iterable[str], patience_s: float = 0.0
) -> None:
    """Compare files with the disk. `targets`: object ids, or paths of this machine.

    Files that seem to be being written become `being_written`, unless they settle within
    `patience_s` seconds: what is half written is no version.
    """
    end = time.monotonic() + patience_s
    left = list(targets)
    while left:
        # The last look begins when the time is up: one look may take all of it on a busy machine,
        # and what it finds unsettled has settled meanwhile.
        is_last = time.monotonic() >= end
        inbox.being_written.difference_update(left)
        left = _look(objects, inbox, left)
        inbox.being_written.update(left)
        if is_last:
            return
        if left:
            time.sleep(max(0.0, min(_PAUSE_S, end - time.monotonic())))


def read_listed(objects: Objects, path: str) -> None:
    """Read a file that no tool has read, and take in what is found, whatever that is.

    `path`: as the host's tools have it. Raises `ToolError` for one outside the project.
    """
    if not objects.workspace.empty:
        objects.workspace.commit()
    for _ in range(MAX_ATTEMPTS):
        snapshot = objects.source.sight(path, "read", unasked=True)
        if snapshot.state == OUTSIDE:
            raise ToolError(outside_project(snapshot.path))
        try:
            token = _store(objects.store, [snapshot])
        except Conflict:
            continue  # another engine has read it
        if snapshot.document is not None:
            objects.see(SeenVersion.of(snapshot.document, snapshot.path, token))
        elif snapshot.head is not None:
            objects.see_head(snapshot.head, snapshot.path)
        return


def look_now(objects: Objects, inbox: Inbox, path: str) -> FileSnapshot:
    """What a file holds at this moment, half written or not, stored where it is a new version.

    `path`: as the host's tools have it. What the session knows already gets the version, and the
    model reads of it; what it does not know does not join its index.
    """
    if not objects.workspace.empty:
        objects.workspace.commit()
    for _ in range(MAX_ATTEMPTS - 1):
        snapshot = objects.source.sight(path, "read", unasked=True)
        try:
            token = _store(objects.store, [snapshot])
        except Conflict:
            continue  # another engine has stored one
        _take_in(objects, inbox, [snapshot], token)
        return snapshot
    return objects.source.sight(path, "read", unasked=True)


def look_now_at(objects: Objects, inbox: Inbox, targets: Sequence[str]) -> None:
    """As `look_now`, for known files. `targets`: object ids, or paths of this machine."""
    snapshots = objects.source.reconcile(targets)
    try:
        token = _store(objects.store, snapshots)
    except Conflict:
        return  # another engine has taken them in; the next look finds it
    _take_in(objects, inbox, snapshots, token)


def take_in_unmet(objects: Objects, paths: Sequence[str]) -> None:
    """Store what is in files that the store does not know. None joins the session's index.

    `paths`: as the host's tools have them.
    """
    snapshots = [objects.source.sight(path, "read", unasked=True) for path in paths]
    with suppress(Conflict):  # another engine takes them in
        _store(objects.store, snapshots)


def _look(objects: Objects, inbox: Inbox, targets: Sequence[str]) -> list[str]:
    """Take in what has changed; returns what must be read again."""
    snapshots = objects.source.reconcile(targets, cautious=True)
    try:
        token = _store(objects.store, snapshots)
    except Conflict:
        return list(targets)
    _take_in(objects, inbox, snapshots, token)
    left = [s.object_id for s in snapshots if s.state == CHANGING]
    # A path that names no known file may be where one of the unsettled ones has moved to.
    return left + [t for t in targets if not is_object_id(t)] if left else left


def _store(store: Store, snapshots: Sequence[FileSnapshot]) -> Token:
    """Commit new versions, each on top of the one that it was compared with, or nothing.

    Raises `Conflict` where another engine was faster: the same bytes would become two versions.
    """
    batch = Batch()
    for snapshot in snapshots:
        if snapshot.document is not None:
            batch.puts.append(snapshot.document)
            batch.expect[snapshot.object_id] = snapshot.head.token if snapshot.head else None
    for claim, before in moved_claims(store, snapshots):
        batch.puts.append(claim)
        batch.expect[claim.id] = before.token
    return store.commit(batch) if batch.puts else PENDING


def _take_in(
    objects: Objects, inbox: Inbox, snapshots: Sequence[FileSnapshot], token: Token
) -> None:
    """Note which visible files have changed under the model. `token`: of their new versions.

    Only the model and the user decide what is in view, so a watcher never changes a session's
    sets: what the index knows already gets a new version, and nothing joins it but the new name of
    a renamed file.
    """
    notices, seen = inbox.notices, False
    for snapshot in snapshots:
        ordinal = objects.index.by_object.get(snapshot.object_id)
        if ordinal is None or is_unmet(snapshot):
            continue
        if snapshot.candidates:
            inbox.notify(unclear_rename(snapshot.path, snapshot.candidates))
        if snapshot.document is not None:
            inbox.behind.keep(ordinal, objects.index.entries[ordinal].newest.text_hash)
            entry = objects.see(SeenVersion.of(snapshot.document, snapshot.path, token))
            notices.add(ordinal, change_of(snapshot))
            renamed(objects, entry)  # so that it is followed under its new name from now on
            seen = True
        elif _is_news(objects, inbox, ordinal, snapshot.head):
            notices.add(ordinal, change_of(snapshot))
    if store_notices(objects, inbox) or seen:
        objects.workspace.commit()


def _is_news(objects: Objects, inbox: Inbox, ordinal: int, head: Head | None) -> bool:
    """Whether another session has stored a content that the session did not know; it does now."""
    entry = objects.index.entries[ordinal]
    if head is None or head.fields.get("text_hash") == entry.newest.text_hash:
        return False
    if any(head.token == observed.token for observed in inbox.early_results.values()):
        return False
    inbox.behind.keep(ordinal, entry.newest.text_hash)
    objects.see_head(head, entry.label)
    return True
