"""Notices to the model, once each, that a file it sees was changed by something else."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.context.intake.renames import renamed
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.chat import Branch
from foredeck.context.state.inbox import FileChange, Inbox
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.wording import (
    changed_on_disk,
    deleted_on_disk,
    moved_on_disk,
    overwritten_on_disk,
)
from foredeck.sources.snapshots import FileSnapshot


def attach_notices(objects: Objects, inbox: Inbox, context: RenderContext) -> None:
    """Put the pending notices on the newest message, which must be new in this call."""
    index, pending, branch = len(context.plan) - 1, inbox.notices, context.branch
    pending.forget_said()
    if not pending or not context.takes_lines(index):
        return
    changes = pending.take()
    lines = [line for n, change in changes.items() if (line := _line(objects, branch, n, change))]
    store_notices(objects, inbox)
    _release_textless(objects, branch, [n for n, change in changes.items() if change != "moved"])
    if lines:
        context.attach(index, "\n".join(lines))


def _release_textless(objects: Objects, branch: Branch, ordinals: Iterable[int]) -> None:
    """What has no text any more is not active: the old copy may leave at the next rebase."""
    for ordinal in ordinals:
        entry = objects.index.entries.get(ordinal)
        if entry is not None and entry.newest.text_hash is None:
            branch.release_object(ordinal)


def _line(objects: Objects, branch: Branch, ordinal: int, change: FileChange) -> str | None:
    """The notice about one file, None where the model sees no outdated copy of it."""
    plan = branch.plan
    entry = objects.index.entries.get(ordinal)
    if change == "moved" and entry is not None:
        return _moved_line(objects, branch, entry)
    if change == "overwritten" and entry is not None and (entry.newest.version or 0) > 1:
        before = (entry.newest.version or 0) - 1
        return overwritten_on_disk(ordinal, objects.name_of(entry), before)
    if entry is None:
        return None
    shown = plan.newest_holder(ordinal)
    if shown is not None:
        version = plan.ops[shown].version
    else:
        version = parts_in_view(objects, branch).get(entry.object)
    if version in (None, entry.newest.version):
        return None
    if change == "deleted":
        return deleted_on_disk(ordinal, objects.name_of(entry))
    return changed_on_disk(ordinal, objects.name_of(entry))


def parts_in_view(objects: Objects, branch: Branch) -> dict[str, int | None]:
    """The files without content of which a read is in view, and the version that it has read:
    what it shows has its own handle."""
    plan, entries = branch.plan, objects.index.entries
    found: dict[str, int | None] = {}
    for ordinal, holders in plan.holders.items():
        if entries[ordinal].type != "toolcall" or plan.items[holders[-1]].tool != "read":
            continue
        head = objects.workspace.head(entries[ordinal].object)
        if head is not None and (pin := head.fields.get("file_pin")) is not None:
            found[pin["object"]] = max(pin.get("version") or 0, found.get(pin["object"]) or 0)
    return found


def _moved_line(objects: Objects, branch: Branch, old: Entry) -> str | None:
    """The notice about a renamed file; what the model sees of it belongs to the new name by now,
    unless it is older (`follow_renames`)."""
    new = renamed(objects, old)
    if new is None:
        return None
    holders = branch.plan.newest_holder
    if holders(new.ordinal) is not None:
        return moved_on_disk(old.ordinal, new.ordinal, objects.name_of(new))
    if holders(old.ordinal) is None:
        return None
    return moved_on_disk(old.ordinal, new.ordinal, objects.name_of(new), outdated=True)


def store_notices(objects: Objects, inbox: Inbox) -> bool:
    """Put the pending notices, and what the agent knows of changed files, into the transaction, so
    that a restart does not lose them.

    Returns whether there was anything to put.
    """
    notices, behind = inbox.notices.to_store(), inbox.behind.to_store()
    if notices is None and behind is None:
        return False
    document = objects.document()
    if document is not None:
        if notices is not None:
            document.untold = notices or None
        if behind is not None:
            document.behind = behind or None
        objects.workspace.put(document.seal())
    return True


def change_of(snapshot: FileSnapshot) -> FileChange:
    """What has happened to a file, for a notice."""
    if snapshot.state != "deleted":
        return "changed"
    if snapshot.document is not None:
        target = snapshot.document.moved_to
    else:
        target = snapshot.head.fields.get("moved_to") if snapshot.head else None
    return "deleted" if target is None else "moved"
