"""`foredeck name`: an object's nickname, summaries and view."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from foredeck.cli.history_command import find_asked
from foredeck.cli.output import answer
from foredeck.cli.person import given_text
from foredeck.cli.stored import opened_store
from foredeck.context.state.descriptions import (
    Description,
    describe_object,
    give_nickname,
    nicknames,
    view_of,
)
from foredeck.model.documents import SUMMARIES, summary_hash_name
from foredeck.names import Found
from foredeck.store.protocol import Head


def run(args: Namespace) -> int:
    """`foredeck name`."""
    short, long = (text and given_text(text) for text in (args.short, args.long))
    description = Description(short, long, None if args.view is None else args.view.split(","))
    with opened_store(args) as store:
        object = find_asked(store, args)
        new = args.nickname is not None and give_nickname(store, object.head, args.nickname)
        if description != Description():
            new |= describe_object(store, store.head(object.id) or object.head, description)
        head = store.head(object.id) or object.head
        nickname = nicknames(store).get(object.id)
    if args.nickname is not None and description == Description():
        lines = [f"{object.name} is called {args.nickname}{'' if new else ' already'}."]
    else:
        lines = _name_lines(object, head, nickname)
    return answer(args, _named(object, head, new=new) | {"nickname": nickname}, lines)


def _named(found: Found, head: Head, *, new: bool) -> dict[str, Any]:
    fields = head.fields
    return {
        "object": head.id,
        "path": found.path,
        "type": head.type,
        "view": view_of(head.type, fields),
        "of_type": fields.get("view") is None,
        "metadata_view_hash": fields.get("metadata_view_hash"),
        **{name: fields.get(name) for name in SUMMARIES},
        **{summary_hash_name(n): fields.get(summary_hash_name(n)) for n in SUMMARIES},
        "new": new,
    }


def _name_lines(found: Found, head: Head, nickname: str | None) -> list[str]:
    fields = head.fields
    whose = " (as every " + head.type + ")" if fields.get("view") is None else ""
    called = [f"nickname: {nickname}"] if nickname else []
    lines = [found.name, *called, f"view: {', '.join(view_of(head.type, fields))}{whose}"]
    for field in SUMMARIES:
        if fields.get(field):
            lines.append(f"{field.replace('_', ' ')}: {fields[field]}")
    return lines
