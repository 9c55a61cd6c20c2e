"""A session in words, for its user: which objects there are, and in which state."""

from __future__ import annotations

from foredeck.context.rendering.render_context import described
from foredeck.context.state.descriptions import Description, describe_object
from foredeck.context.state.handles import resolve
from foredeck.context.state.index import Entry
from foredeck.context.state.nicknames import give_nickname, nicknames
from foredeck.context.state.session import Session
from foredeck.context.wording import object_line
from foredeck.errors import ToolError
from foredeck.model.documents import Fields

SHOWN = 60


def describe_session(session: Session) -> str:
    """One line per object, newest first, with totals above."""
    entries = [e for n, e in sorted(session.index.entries.items(), reverse=True) if _listed(e)]
    sets = session.branch.sets
    waiting = f" ({len(sets.waiting)} out of view)" if sets.waiting else ""
    head = (
        f"{len(session.index)} objects, {len(sets.active)} active, "
        f"{len(sets.pins)} pinned{waiting}, {session.branch.conversation.folded_count} folded, "
        f"{session.log.newest} calls"
    )
    if chars := session.branch.edits.head_chars:
        head += f", {chars:,} characters before the chat"
    names = nicknames(session.store)
    lines = [_line(session, entry, names.get(entry.object)) for entry in entries[:SHOWN]]
    if len(entries) > SHOWN:
        lines.append(f"... and {len(entries) - SHOWN} more")
    return "\n".join([head, *lines])


def _listed(entry: Entry) -> bool:
    return entry.type in ("file", "toolcall", "user", "pointer")


def _line(session: Session, entry: Entry, name: str | None) -> str:
    head = session.workspace.head(entry.object)
    fields = {} if head is None else head.fields
    what = _what(entry, fields)
    nickname = f" ({name})" if name else ""
    place = session.branch.sets.innermost(entry.ordinal)
    return f"@{entry.ordinal:<4} {place:<9} {what}{nickname}{_gone(fields)}"


def object_name(session: Session, ordinal: int) -> str:
    """What a user would call an object of the session's index."""
    entry = session.index.entries[ordinal]
    head = session.workspace.head(entry.object)
    return _what(entry, {} if head is None else head.fields)


def _what(entry: Entry, fields: Fields) -> str:
    if entry.type in ("file", "pointer"):
        return entry.label
    if entry.type == "user":
        return f"you: {fields.get('first_line')}"
    return f"{fields.get('tool')} {fields.get('args_display')}"


def _gone(fields: Fields) -> str:
    """What to say of a file that is not there any more."""
    if fields.get("moved_to"):
        return ", moved"
    return ", deleted" if fields.get("state") == "deleted" else ""


def describe_entry(session: Session, arguments: str) -> str:
    """Give an object a short summary, `@12 What it is`, or show the line that stands for it, `@12`.

    Raises `ToolError` where there is no such object, or where it can have none.
    """
    name, _, summary = arguments.partition(" ")
    if not name:
        raise ToolError("Usage: /foredeck describe @12 [what it is, in one line]")
    entry = resolve(session, name).entry
    head = session.store.head(entry.object)
    if head is None:
        raise ToolError(f"@{entry.ordinal} is not stored.")
    if summary.strip():
        describe_object(session.store, head, Description(short_summary=summary))
    return object_line(entry.ordinal, described(session, entry.ordinal))


def name_object(session: Session, arguments: str) -> str:
    """Give an object a nickname: `@12 spec`. Raises `ToolError` where the name is taken."""
    words = arguments.split()
    if len(words) != 2 or words[1].startswith("@"):
        raise ToolError("Usage: /foredeck name @12 NICKNAME")
    entry, name = resolve(session, words[0]).entry, words[1]
    head = session.store.head(entry.object)
    if head is None:
        raise ToolError(f"@{entry.ordinal} is not stored.")
    new = give_nickname(session.store, head, name)
    return f"@{entry.ordinal} is called {name}{'' if new else ' already'}."
