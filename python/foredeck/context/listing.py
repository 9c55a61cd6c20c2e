"""A session in words, for its user: which objects there are, in which state, and why."""

from __future__ import annotations

from foredeck.context.handles import resolve
from foredeck.context.index import Entry
from foredeck.context.session import Session
from foredeck.errors import ToolError
from foredeck.model.kinds import kind_of
from foredeck.model.records import NicknameDocument, nickname_id
from foredeck.store.protocol import Batch

SHOWN = 60


def describe_session(session: Session) -> str:
    """One line per object, newest first, with totals above."""
    entries = [e for n, e in sorted(session.index.entries.items(), reverse=True) if _listed(e)]
    sets = session.sets
    head = (
        f"{len(session.index)} objects, {len(sets.active)} active, {len(sets.pinned)} pinned, "
        f"{session.conversation.folded} folded, {session.log.newest} calls"
    )
    lines = [_line(session, entry) for entry in entries[:SHOWN]]
    if len(entries) > SHOWN:
        lines.append(f"... and {len(entries) - SHOWN} more")
    return "\n".join([head, *lines])


def _listed(entry: Entry) -> bool:
    return entry.type in ("file", "toolcall")


def _line(session: Session, entry: Entry) -> str:
    head = session.workspace.head(entry.object)
    fields = {} if head is None else head.fields
    what = (
        entry.label
        if entry.type == "file"
        else f"{fields.get('tool')} {fields.get('args_display')}"
    )
    nickname = f" ({fields['nickname']})" if fields.get("nickname") else ""
    return f"@{entry.ordinal:<4} {state_of(session, entry.ordinal):<9} {what}{nickname}"


def state_of(session: Session, ordinal: int) -> str:
    """pinned, active, inactive or indexed (SSOT 3.2)."""
    sets = session.sets
    if ordinal in sets.pinned:
        return "pinned"
    if ordinal in sets.active:
        return "active"
    return "inactive" if ordinal in sets.pool else "indexed"


def name_object(session: Session, arguments: str) -> str:
    """Give an object a nickname: `@12 spec`. Raises `ToolError` where the name is taken."""
    words = arguments.split()
    if len(words) != 2 or words[1].startswith("@"):
        raise ToolError("Usage: name @12 NICKNAME")
    entry, name = resolve(session, words[0]).entry, words[1]
    claim = session.store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    if owner == entry.object:
        return f"@{entry.ordinal} is called {name} already."
    if owner is not None:
        raise ToolError(f"The name {name!r} belongs to another object.")
    document = session.store.get(entry.object, kind_of(entry.type))
    if document is None:
        raise ToolError(f"@{entry.ordinal} is not stored.")
    batch = Batch(expect={nickname_id(name): None if claim is None else claim.token})
    if document.nickname:
        batch.puts.append(_claim(document.nickname, None))
    document.nickname = name
    batch.puts += [_claim(name, entry.object), document.seal()]
    session.store.commit(batch)
    return f"@{entry.ordinal} is called {name}."


def _claim(name: str, owner: str | None) -> NicknameDocument:
    return NicknameDocument(id=nickname_id(name), object=owner).seal()


def why(session: Session, arguments: str) -> str:
    """Where an object's content stands, and the last decision about the prompt."""
    conversation = session.conversation
    lines: list[str] = []
    if arguments:
        entry = resolve(session, arguments).entry
        state = state_of(session, entry.ordinal)
        holder = conversation.newest_holder(entry.ordinal)
        place = "its content is not in the prompt"
        if holder is not None:
            place = f"its content stands in message {holder + 1} of {len(conversation)}"
        lines.append(f"@{entry.ordinal} is {state}; {place}.")
    record = session.log.records.get(session.current or "")
    if record is not None:
        decision = record["decision"]
        reason = decision.get("reason")
        told = f" because of {reason}" if reason else ""
        lines.append(f"Call {record['ordinal']}: {decision['kind']}{told}.")
    return "\n".join(lines) or "No call has been made yet."
