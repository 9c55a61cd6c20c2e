from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from foredeck.context.plan.plan import Plan
from foredeck.context.rendering import RenderContext
from foredeck.context.state.chat import Branch
from foredeck.context.state.index import Entry, SeenVersion, Sets
from foredeck.context.state.objects import Objects, store_versions
from foredeck.context.state.request import EarlyResult, FileChange, Inbox, StoredInbox
from foredeck.context.wording import (
    changed_on_disk,
    deleted_on_disk,
    moved_on_disk,
    outside_project,
    overwritten_on_disk,
)
from foredeck.errors import Conflict, ToolError
from foredeck.model.records import MemberDocument, member_id
from foredeck.model.sources import path_of
from foredeck.sources.recorded import is_object_id
from foredeck.sources.renames import unclear_rename
from foredeck.sources.snapshots import CHANGING, OUTSIDE, FileSnapshot, is_unmet
from foredeck.store.protocol import Head, Token

PATIENCE_S = 0.25
"""Longest wait of a prompt, in seconds."""

_PAUSE_S = 0.02

MAX_ATTEMPTS = 5
"""Reads of a file while other engines store versions of it."""


def look_again(
    objects: Objects, inbox: Inbox, targets: Iterable[str], patience_s: float = 0.0
) -> None:
    """Compares files with the disk; `targets` are object ids or paths.

    What does not settle joins `being_written`.
    """
    # What is half written is no version.
    end = time.monotonic() + patience_s
    unsettled = list(targets)
    while unsettled:
        # The last look begins when the time is up: one look may take all of it on a busy machine,
        # and what it finds unsettled has settled meanwhile.
        is_last = time.monotonic() >= end
        inbox.being_written.difference_update(unsettled)
        unsettled = _look(objects, inbox, unsettled)
        inbox.being_written.update(unsettled)
        if is_last:
            return
        if unsettled:
            time.sleep(max(0.0, min(_PAUSE_S, end - time.monotonic())))


def read_listed(objects: Objects, path: str) -> None:
    """Takes in a file no tool has read; raises `ToolError` outside the project."""
    if not objects.workspace.empty:
        objects.workspace.commit()
    for _ in range(MAX_ATTEMPTS):
        snapshot = objects.source.sight(path, "read", unasked=True)
        if snapshot.state == OUTSIDE:
            raise ToolError(outside_project(snapshot.path))
        try:
            token = store_versions(objects.store, [snapshot])
        except Conflict:
            continue  # another engine has read it
        if snapshot.document is not None:
            objects.see(SeenVersion.of(snapshot.document, snapshot.path, token))
        elif snapshot.head is not None:
            objects.see_head(snapshot.head, snapshot.path)
        return


def look_now(objects: Objects, inbox: Inbox, path: str) -> FileSnapshot:
    if not objects.workspace.empty:
        objects.workspace.commit()
    for _ in range(MAX_ATTEMPTS - 1):
        snapshot = objects.source.sight(path, "read", unasked=True)
        try:
            token = store_versions(objects.store, [snapshot])
        except Conflict:
            continue  # another engine has stored one
        _take_in(objects, inbox, [snapshot], token)
        return snapshot
    return objects.source.sight(path, "read", unasked=True)


def look_now_at(objects: Objects, inbox: Inbox, targets: Sequence[str]) -> None:
    """Like `look_now`, for object ids or paths of this machine."""
    snapshots = objects.source.reconcile(targets)
    try:
        token = store_versions(objects.store, snapshots)
    except Conflict:
        return  # another engine has taken them in; the next look finds it
    _take_in(objects, inbox, snapshots, token)


def take_in_unmet(objects: Objects, paths: Sequence[str]) -> None:
    """Stores unknown files without adding them to the index."""
    snapshots = [objects.source.sight(path, "read", unasked=True) for path in paths]
    with suppress(Conflict):  # another engine takes them in
        store_versions(objects.store, snapshots)


def attach_notices(context: RenderContext, inbox: Inbox) -> None:
    """Puts pending notices on the newest message, which must be new."""
    objects, branch = context.objects, context.branch
    index, pending = len(context.plan) - 1, inbox.notices
    pending.said = {}
    if not pending.changes or not context.takes_lines(index):
        return
    changes = pending.take()
    lines = [line for n, change in changes.items() if (line := _line(objects, branch, n, change))]
    store_notices(objects, inbox)
    # What has no text any more is not active: the old copy may leave at the next rebase.
    for ordinal, change in changes.items():
        entry = objects.index.entries.get(ordinal)
        if change != "moved" and entry is not None and entry.newest.text_hash is None:
            branch.release_object(ordinal)
    if lines:
        context.attach(index, "\n".join(lines))


def parts_in_view(objects: Objects, branch: Branch) -> dict[str, int | None]:
    """Files of which only a read in part is in view, with its version."""
    # What such a read shows goes by the handle of the call, and not by the file's.
    plan, entries = branch.plan, objects.index.entries
    versions: dict[str, int | None] = {}
    for ordinal, holders in plan.holders.items():
        if entries[ordinal].type != "toolcall" or plan.items[holders[-1]].tool != "read":
            continue
        head = objects.workspace.head(entries[ordinal].object)
        if head is not None and (version_ref := head.fields.get("file_version_ref")) is not None:
            versions[version_ref["object"]] = max(
                version_ref.get("version") or 0, versions.get(version_ref["object"]) or 0
            )
    return versions


def store_notices(objects: Objects, inbox: Inbox) -> bool:
    untold = {str(n): change for n, change in sorted(inbox.notices.changes.items())}
    behind = {str(n): text_hash for n, text_hash in sorted(inbox.known_texts.items())}
    if StoredInbox(untold, behind) == inbox.stored:
        return False
    inbox.stored, document = StoredInbox(untold, behind), objects.document()
    if document is not None:
        document.untold, document.behind = dict(untold) or None, behind or None
        objects.workspace.put(document.seal())
    return True


def change_of(snapshot: FileSnapshot) -> FileChange:
    if snapshot.state != "deleted":
        return "changed"
    if snapshot.document is not None:
        target = snapshot.document.moved_to
    else:
        target = snapshot.head.fields.get("moved_to") if snapshot.head else None
    return "deleted" if target is None else "moved"


def follow_renames(context: RenderContext, inbox: Inbox, *, continued: bool) -> None:
    """Gives renamed files the old ones' places; `continued`: older renames are done."""
    # Sets belong to a branch and change with a call only, so a watcher leaves it to this.
    objects = context.objects
    notices, targets = inbox.notices, set[int]()
    older = [] if continued else _gone_in_view(objects, context.sets)
    news = [ordinal for ordinal, change in notices.changes.items() if change == "moved"]
    for ordinal in sorted({*news, *older}):
        old = objects.index.entries.get(ordinal)
        new = None if old is None else renamed(objects, old)
        if old is None or new is None:
            continue
        if new.ordinal in targets:
            notices.withdraw(ordinal)  # a name in between, which the model never heard of
        else:
            notices.add(ordinal, "moved")
        targets.add(new.ordinal)
        context.sets.move(old.ordinal, new.ordinal)
        for index in _showing(objects, context.plan, old, new.newest.text_hash):
            context.plan.attribute(index, new.ordinal, new.newest.version)
            if index in context.branch.kept:
                context.branch.keep(index, new.ordinal)


def renamed(objects: Objects, old: Entry) -> Entry | None:
    """The entry that this file was renamed to, or None."""
    visited, entry = {old.object}, old
    while True:
        head = objects.workspace.head(entry.object)
        target = None if head is None else head.fields.get("moved_to")
        target_head = (
            None if target is None or target in visited else objects.workspace.head(target)
        )
        if target_head is None:
            return None if entry is old else entry
        visited.add(target_head.id)
        entry = objects.see_head(target_head, path_of(target_head.fields) or "")


def _line(objects: Objects, branch: Branch, ordinal: int, change: FileChange) -> str | None:
    """The notice about a file; None if the model sees no outdated copy."""
    plan = branch.plan
    entry = objects.index.entries.get(ordinal)
    if change == "moved" and entry is not None:
        return _moved_line(objects, branch, entry)
    if change == "overwritten" and entry is not None and (entry.newest.version or 0) > 1:
        before = (entry.newest.version or 0) - 1
        return overwritten_on_disk(ordinal, objects.name_of(entry), before)
    if entry is None:
        return None
    holder = plan.newest_holder(ordinal)
    if holder is not None:
        version = plan.ops[holder].version
    else:
        version = parts_in_view(objects, branch).get(entry.object)
    if version in (None, entry.newest.version):
        return None
    if change == "deleted":
        return deleted_on_disk(ordinal, objects.name_of(entry))
    return changed_on_disk(ordinal, objects.name_of(entry))


def _moved_line(objects: Objects, branch: Branch, old: Entry) -> str | None:
    """The view belongs to the new name already, unless it is older."""
    new = renamed(objects, old)
    if new is None:
        return None
    holders = branch.plan.newest_holder
    if holders(new.ordinal) is not None:
        return moved_on_disk(old.ordinal, new.ordinal, objects.name_of(new))
    if holders(old.ordinal) is None:
        return None
    return moved_on_disk(old.ordinal, new.ordinal, objects.name_of(new), outdated=True)


def _gone_in_view(objects: Objects, sets: Sets) -> list[int]:
    # On a branch that was left before a rename, or after a call that never went out, the model
    # does not know of it yet.
    entries = objects.index.entries
    return [
        ordinal
        for ordinal in sets.active | sets.pins
        if entries[ordinal].type == "file" and entries[ordinal].newest.text_hash is None
    ]


def _showing(objects: Objects, plan: Plan, old: Entry, text_hash: str | None) -> list[int]:
    holders = plan.holders.get(old.ordinal, ())
    history = objects.store.history(member_id(objects.info.id, old.ordinal))
    refs = [head.view(MemberDocument).version_ref for head in history]
    versions = {ref.version for ref in refs if ref.text_hash == text_hash}
    if text_hash is None:  # not text, but lines of it may be in view: as it was before it went
        versions = {old.newest.version - 1}
    ops = plan.ops
    return [i for i in holders if ops[i].version in versions or ops[i].text_hash == text_hash]


def _look(objects: Objects, inbox: Inbox, targets: Sequence[str]) -> list[str]:
    snapshots = objects.source.reconcile(targets, cautious=True)
    try:
        token = store_versions(objects.store, snapshots)
    except Conflict:
        return list(targets)
    _take_in(objects, inbox, snapshots, token)
    changing = [s.object_id for s in snapshots if s.state == CHANGING]
    # A path that names no known file may be where one of the unsettled ones has moved to.
    return changing + [t for t in targets if not is_object_id(t)] if changing else changing


def _take_in(
    objects: Objects, inbox: Inbox, snapshots: Sequence[FileSnapshot], token: Token
) -> None:
    # A watcher never changes what is in view, which only model and user decide: what the index
    # knows gets a new version, and nothing joins it but the new name of a renamed file.
    notices, is_changed = inbox.notices, False
    for snapshot in snapshots:
        ordinal = objects.index.by_object.get(snapshot.object_id)
        if ordinal is None or is_unmet(snapshot):
            continue
        if snapshot.candidates:
            inbox.notify(unclear_rename(snapshot.path, snapshot.candidates))
        if snapshot.document is not None:
            inbox.keep_known(ordinal, objects.index.entries[ordinal].newest.text_hash)
            entry = objects.see(SeenVersion.of(snapshot.document, snapshot.path, token))
            notices.add(ordinal, change_of(snapshot))
            renamed(objects, entry)  # so that it is followed under its new name from now on
            is_changed = True
        elif _is_news(objects, inbox, ordinal, snapshot.head):
            notices.add(ordinal, change_of(snapshot))
    if store_notices(objects, inbox) or is_changed:
        objects.workspace.commit()


def _is_news(objects: Objects, inbox: Inbox, ordinal: int, head: Head | None) -> bool:
    """Whether another session has stored a content new to this one."""
    entry = objects.index.entries[ordinal]
    if head is None or head.fields.get("text_hash") == entry.newest.text_hash:
        return False
    if any(_shows(observed, head) for observed in inbox.early_results.values()):
        return False
    inbox.keep_known(ordinal, entry.newest.text_hash)
    objects.see_head(head, entry.label)
    return True


def _shows(observed: EarlyResult, head: Head) -> bool:
    """Whether a result that no list has yet tells of this version."""
    tokens = [s.head.token for s in observed.snapshots if s.head and s.role in ("read", "written")]
    return head.token in (observed.token, *tokens)
