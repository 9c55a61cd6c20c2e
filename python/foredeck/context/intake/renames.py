"""A renamed file is another object: what the session thinks of the old one goes to the new one."""

from __future__ import annotations

from foredeck.context.plan.plan import Plan
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.state.sets import Sets
from foredeck.model.records import MemberDocument, member_id
from foredeck.model.sources import path_of


def follow_renames(
    objects: Objects, inbox: Inbox, context: RenderContext, *, continued: bool
) -> None:
    """Let the new names of renamed files take their place in the branch, before it is decided
    what stays in view: in pool, active and pinned set, and as what the messages show.

    Sets belong to a branch and change with a call only, so a watcher leaves it to this.
    `continued`: the branch goes on from the call before, which has followed all older renames.
    """
    notices, targets = inbox.notices, set[int]()
    older = [] if continued else _gone_in_view(objects, context.sets)
    for ordinal in sorted({*notices.moved(), *older}):
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
            if index in context.retention.contents:
                context.retention.keep(index, new.ordinal)


def _gone_in_view(objects: Objects, sets: Sets) -> list[int]:
    """Files in view that have no text any more: on a branch that was left before a rename, or
    after a call that never went out, the model does not know yet."""
    entries = objects.index.entries
    return [
        ordinal
        for ordinal in sets.active | sets.pins
        if entries[ordinal].type == "file" and entries[ordinal].newest.text_hash is None
    ]


def _showing(objects: Objects, plan: Plan, old: Entry, text_hash: str | None) -> list[int]:
    """The messages that show what was moved, in whole or in part, and nothing older."""
    holders = plan.holders.get(old.ordinal, ())
    seen = objects.store.history(member_id(objects.info.id, old.ordinal))
    refs = [head.view(MemberDocument).pin for head in seen]
    versions = {ref.version for ref in refs if ref.text_hash == text_hash}
    if text_hash is None:  # not text, but lines of it may be in view: as it was before it went
        versions = {old.newest.version - 1}
    ops = plan.ops
    return [i for i in holders if ops[i].version in versions or ops[i].text_hash == text_hash]


def renamed(objects: Objects, old: Entry) -> Entry | None:
    """The entry of the file that this one has become, None where it has become none.

    A file that the session has not met joins its index; of several renames in a row it is the
    last name.
    """
    seen, entry = {old.object}, old
    while True:
        head = objects.workspace.head(entry.object)
        target = None if head is None else head.fields.get("moved_to")
        found = None if target is None or target in seen else objects.workspace.head(target)
        if found is None:
            return None if entry is old else entry
        seen.add(found.id)
        entry = objects.see_head(found, path_of(found.fields) or "")
