"""`foredeck history` and `cat`: the versions of one object, and what changed between them."""

from __future__ import annotations

import difflib
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from foredeck.cli.arguments import parse_moment
from foredeck.cli.output import answer, coloured, print_content, print_json, table
from foredeck.cli.session_sets import SetsAtCall, call_by_then, sets_at_call
from foredeck.cli.stored import NoContent, opened_store
from foredeck.cli.versions import (
    find_asked,
    find_asked_part,
    find_version,
    has_hash,
    session_versions,
)
from foredeck.context.state.descriptions import nicknames
from foredeck.lookup.branches import Branches, branches_of
from foredeck.lookup.chat import chat_fields
from foredeck.lookup.sessions import count_calls
from foredeck.lookup.versions import WHOLE, Stretch, Version, stretches, version_text
from foredeck.model.documents import SessionDocument, session_of
from foredeck.model.figures import counted, when
from foredeck.model.places import AskedPart
from foredeck.model.quoting import name
from foredeck.model.sources import path_of
from foredeck.names import Found
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Origin, Store, order_of


def run(args: Namespace) -> int:
    """`foredeck history`."""
    if args.diff or args.old:
        return _diff(args)

    with opened_store(args) as store:
        found = find_asked(store, args)
        branches = branches_of(store, found.session) if found.session else None
        kept = _asked_for(store, found, args.at)
        versions = [
            described
            for stretch in stretches(store, found)
            for described in _stretch(store, stretch, branches, kept)
        ]
        name = nicknames(store).get(found.id)
    value = {**_identity(found), "nickname": name, "versions": versions}
    return answer(args, value, _history(found, versions))


def _asked_for(store: Store, found: Found, at: str | None) -> Callable[[Head], bool]:
    """Which versions `--at` is about, under whichever name: up to a time, or with a hash."""
    if at is None:
        return lambda _: True
    last = find_version(store, found, at).head
    if has_hash(last, at):
        return lambda head: has_hash(head, at)
    end = order_of(Origin(last.token, version_ms(last)))
    return lambda head: order_of(Origin(head.token, version_ms(head))) <= end


def _stretch(
    store: Store, stretch: Stretch, branches: Branches | None, kept: Callable[[Head], bool]
) -> Iterator[dict[str, Any]]:
    named = session_versions(store, stretch.found)
    for version in stretch.versions:
        if kept(version.head):
            yield {
                "object": stretch.found.id,
                "path": stretch.found.path,
                "name": stretch.found.name,
                **_described(store, version, named.get(version.head.token), branches),
            }


def _described(
    store: Store, version: Version, seen: int | None, branches: Branches | None
) -> dict[str, Any]:
    head, fields = version.head, version.head.fields
    known = branches if branches and branches.times and seen is not None else None
    hashes = ("content_hash", "text_hash", "source_hash", "metadata_view_hash")
    return {
        "version": version.number,
        "session_version": None if seen is None else f"v{seen}",
        "branch": known.at(head.time_ms).number if known else None,
        "token": head.token,
        "time_ms": version_ms(head),
        "note": _note(store, head),
        "locked": fields.get("locked"),
        "provenance": fields.get("provenance"),
        **{name: fields.get(name) for name in hashes},
    }


def _note(store: Store, head: Head) -> str:
    """A short description of a version."""
    fields = head.fields
    match head.type:
        case "file":
            if fields.get("moved_to"):
                target = store.head(fields["moved_to"])
                path = path_of(target.fields) if target else None
                return f"moved to {path or fields['moved_to'][:12]}"
            size = counted(fields.get("char_count") or 0, "character")
            return size if fields.get("state") == "text" else str(fields.get("state"))
        case "toolcall":
            args = fields.get("args_display") or ""
            return f"{fields.get('tool')} {args} ({fields.get('status')})"
        case "user":
            return str(fields.get("first_line") or "")
        case "chat":
            return counted(fields.get("turn_count") or 0, "turn")
        case "compaction":
            return str(fields.get("short") or "")
        case "system_prompt":
            return counted(len(fields.get("tools") or ()), "tool")
    return head.type


def _identity(found: Found) -> dict[str, Any]:
    fields = found.head.fields
    handle = None if found.ordinal is None else f"@{found.ordinal}"
    return {
        "object": found.id,
        "type": found.head.type,
        "source": fields.get("source"),
        "session": found.session,
        "handle": handle,
    }


def _history(found: Found, versions: list[dict[str, Any]]) -> Iterator[str]:
    yield coloured(name(found.name), "bold")
    if found.name != f"{found.head.type} {found.id}":
        yield f"{found.head.type} {found.id}"
    if found.session is not None and found.ordinal is not None:
        yield f"@{found.ordinal} in session {found.session}"
    several = len({v["branch"] for v in versions if v["branch"]}) > 1
    head = ("version", "session", *(["branch"] if several else []), "stored", "from", "token", "")
    for called, own in groupby(versions, lambda version: version["name"]):
        yield ""
        if called != found.name:
            yield coloured(name(called), "bold")
        yield table([head, *(_row(version, several) for version in own)])


def _row(version: dict[str, Any], with_branch: bool) -> tuple[str, ...]:
    return (
        str(version["version"]),
        version["session_version"] or "-",
        *([str(version["branch"] or "-")] if with_branch else []),
        when(version["time_ms"]),
        str((version["provenance"] or {}).get("origin") or "-"),
        version["token"],
        version["note"],
    )


def run_cat(args: Namespace) -> int:
    """`foredeck cat`."""
    with opened_store(args) as store:
        found, part = find_asked_part(store, args)
        version = find_version(store, found, args.at or part.hash)
        sets = _sets(store, version, args.at) if found.head.type == "session" else None
        more = _images(store, version, part) if args.json else {}
        if sets:
            text, more = sets.to_text(), sets.to_json()
        elif more and version.head.fields.get("text_hash") is None:
            text = ""
        else:
            text = _content(store, found, version, part)
            more |= _chat(store, version) if args.json and found.head.type == "chat" else {}
    if args.json:
        print_json({**_identity(found), **_place(version), "content": text, **more})
        return 0
    if sets:
        print(text, end="")
    else:
        print_content(text)
    return 0


def _diff(args: Namespace) -> int:
    with opened_store(args) as store:
        found = find_asked(store, args)
        new = find_version(store, found, args.new)
        old = find_version(store, found, args.old or args.at or str(max(1, new.number - 1)))
        texts = [_content(store, found, version) for version in (old, new)]
    lines = _unified(found.name, old, new, texts)
    if args.json:
        places = {"old": _place(old), "new": _place(new)}
        print_json({**_identity(found), **places, "diff": "\n".join(lines)})
    elif lines:
        print_content("\n".join(map(_coloured_line, lines)) + "\n")
    elif old.number == new.number:
        same = f"Version {new.number} of {found.name} is compared with itself; `foredeck history`"
        print(f"{same} lists the others, if there are any.", file=sys.stderr)
    else:
        print(f"Versions {old.number} and {new.number} have the same text.", file=sys.stderr)
    return 0


def _unified(path: str, old: Version, new: Version, texts: list[str]) -> list[str]:
    before, after = (text.split("\n") for text in texts)
    labels = [f"{name(path)} (version {version.number})" for version in (old, new)]

    times = [when(version_ms(version.head)) for version in (old, new)]
    return list(
        difflib.unified_diff(
            before,
            after,
            fromfile=labels[0],
            tofile=labels[1],
            fromfiledate=times[0],
            tofiledate=times[1],
            lineterm="",
        )
    )


def _coloured_line(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return coloured(line, "bold")
    if line.startswith("+"):
        return coloured(line, "green")
    return coloured(line, "red") if line.startswith("-") else line


def _place(version: Version) -> dict[str, Any]:
    head = version.head
    return {"version": version.number, "token": head.token, "time_ms": version_ms(head)}


def _chat(store: Store, version: Version) -> dict[str, Any]:
    """The turns of a chat, and what they refer to."""
    fields = version.head.fields
    return chat_fields(store, session_of(fields["session_ref"]), fields["turn_count"])


def _sets(store: Store, version: Version, at: str | None) -> SetsAtCall:
    """Index, pool, active and pinned set of a session after its last call, or the last by then."""
    session = version.head.view(SessionDocument).session_id
    if at is None:
        return sets_at_call(store, session, count_calls(store, session))
    moment = parse_moment(at)
    time_ms = version.head.time_ms if moment is None else moment
    return sets_at_call(store, session, call_by_then(store, session, time_ms))


def _content(store: Store, found: Found, version: Version, part: AskedPart | None = None) -> str:
    """The text of a version, or of a part of it. Raises `NoContent`."""
    text, why = version_text(store, version.head, part or WHOLE)
    if text is not None:
        return text
    if version.head.fields.get("moved_to"):
        why = f"it {_note(store, version.head)}"
    elif version.head.fields.get("images"):
        why += ", which --json prints in base64"
    raise NoContent(f"{found.name} has no content at version {version.number}: {why}.")


def _images(store: Store, version: Version, part: AskedPart) -> dict[str, Any]:
    """The images of a tool's result, where all of it is asked for."""
    addresses = (version.head.fields.get("images") or ()) if part == WHOLE else ()
    images = [b64encode(store.blob(address)).decode() for address in addresses]
    return {"images": images} if images else {}
