"""`foredeck history` and `cat`: one object and its versions."""

from __future__ import annotations

import difflib
import re
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from foredeck.cli.arguments import EXAMPLES, parse_moment, resolve_config
from foredeck.cli.output import answer, coloured, fitted_table, print_content, print_json
from foredeck.cli.session_sets import SetsAtCall, call_by_then, sets_at_call
from foredeck.cli.stored import opened_store
from foredeck.context.state.descriptions import nicknames
from foredeck.context.state.index import verify, versions_seen
from foredeck.context.state.stored_chat import chat_fields
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.objects import (
    ORPHANED,
    WHOLE,
    Stretch,
    TrackingState,
    Version,
    number_of,
    numbered,
    stretches,
    tracking,
    version_text,
)
from foredeck.lookup.sessions import Branches, branches_of, count_calls
from foredeck.model.documents import SessionDocument, session_of
from foredeck.model.figures import counted, shortened, when
from foredeck.model.names import AskedPart
from foredeck.model.quoting import name
from foredeck.names import Found, find_object, find_part, find_session
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Origin, Token, order_of
from foredeck.store.store import Store


def run(args: Namespace) -> int:
    """`foredeck history`."""
    if args.diff or args.old:
        return _diff(args)

    with opened_store(args) as store:
        object = find_asked(store, args)
        branches = branches_of(store, object.session) if object.session else None
        selects = _asked_for(store, object, args.at)
        versions = [
            described
            for stretch in stretches(store, object)
            for described in _stretch(store, stretch, branches, selects)
        ]
        name = nicknames(store).get(object.id)
        head = store.head(object.id)
        now = tracking(resolve_config(args).config, store)
        state = None if head is None else now.state(head)
    value = {**_identity(object), "nickname": name, "tracking": state, "versions": versions}
    return answer(args, value, _history(object, versions, state))


def _asked_for(store: Store, found: Found, at: str | None) -> Callable[[Head], bool]:
    """Which versions `--at` is about."""
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
    numbers = session_versions(store, stretch.found)
    for version in stretch.versions:
        if kept(version.head):
            yield {
                "object": stretch.found.id,
                "path": stretch.found.path,
                "name": stretch.found.name,
                **_described(store, version, numbers.get(version.head.token), branches),
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
    fields = head.fields
    match head.type:
        case "file":
            if fields.get("moved_to"):
                target = store.head(fields["moved_to"])
                path = Found(target).path if target else None
                return f"moved to {path or fields['moved_to'][:12]}"
            state = str(fields.get("state"))
            if state == "text":
                return counted(fields.get("char_count") or 0, "character")
            return "listed, not read" if state == "listed" else state
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


def _history(
    found: Found, versions: list[dict[str, Any]], state: TrackingState | None
) -> Iterator[str]:
    yield coloured(name(found.name), "bold")
    if found.name != f"{found.head.type} {found.id}":
        yield f"{found.head.type} {found.id}"
    if found.session is not None and found.ordinal is not None:
        yield f"@{found.ordinal} in session {found.session}"
    if state == "orphaned":
        yield ORPHANED
    several = len({v["branch"] for v in versions if v["branch"]}) > 1
    head = (
        "version",
        "session",
        *(["branch"] if several else []),
        "stored",
        "token",
        "content",
        "from",
    )
    for called, own in groupby(versions, lambda version: version["name"]):
        yield ""
        if called != found.name:
            yield coloured(name(called), "bold")
        rows = [head, *(_row(version, several) for version in own)]
        yield fitted_table(rows, goes_on=True)


_CONTENT = 28
"""Columns of what a version is."""


def _row(version: dict[str, Any], with_branch: bool) -> tuple[str, ...]:
    return (
        str(version["version"]),
        version["session_version"] or "-",
        *([str(version["branch"] or "-")] if with_branch else []),
        when(version["time_ms"]),
        version["token"],
        shortened(version["note"], _CONTENT),
        str((version["provenance"] or {}).get("origin") or "-"),
    )


def run_cat(args: Namespace) -> int:
    """`foredeck cat`."""
    with opened_store(args) as store:
        object, part = find_asked_part(store, args)
        version = find_version(store, object, args.at or part.hash)
        sets = _sets(store, version, args.at) if object.head.type == "session" else None
        more = _images(store, version, part) if args.json else {}
        if sets:
            text, more = sets.to_text(), sets.to_json()
        elif more and version.head.fields.get("text_hash") is None:
            text = ""
        else:
            text = _content(store, object, version, part)
            more |= _chat(store, version) if args.json and object.head.type == "chat" else {}
    if args.json:
        print_json({**_identity(object), **_place(version), "content": text, **more})
        return 0
    if sets:
        print(text, end="")
    else:
        print_content(text)
    return 0


def _diff(args: Namespace) -> int:
    with opened_store(args) as store:
        object = find_asked(store, args)
        new = find_version(store, object, args.new)
        old = find_version(store, object, args.old or args.at or str(max(1, new.number - 1)))
        texts = [_content(store, object, version) for version in (old, new)]
    lines = _unified(object.name, old, new, texts)
    if args.json:
        places = {"old": _place(old), "new": _place(new)}
        print_json({**_identity(object), **places, "diff": "\n".join(lines)})
    elif lines:
        print_content("\n".join(map(_coloured_line, lines)) + "\n")
    elif old.number == new.number:
        same = f"Version {new.number} of {object.name} is compared with itself; `foredeck history`"
        print(f"{same} lists the others, if there are any.", file=sys.stderr)
    else:
        print(f"Versions {old.number} and {new.number} have the same text.", file=sys.stderr)
    return 0


def _unified(path: str, old: Version, new: Version, texts: list[str]) -> list[str]:
    before, after = (text.split("\n") for text in texts)
    labels = f"{name(path)} (version {old.number})", f"{name(path)} (version {new.number})"
    first, last = (when(version_ms(version.head)) for version in (old, new))
    return list(difflib.unified_diff(before, after, *labels, first, last, lineterm=""))


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
    fields = version.head.fields
    return chat_fields(store, session_of(fields["session_ref"]), fields["turn_count"])


def _sets(store: Store, version: Version, at: str | None) -> SetsAtCall:
    """Index, pool, active and pinned set of a session after a call."""
    session = version.head.view(SessionDocument).session_id
    if at is None:
        return sets_at_call(store, session, count_calls(store, session))
    moment = parse_moment(at)
    time_ms = version.head.time_ms if moment is None else moment
    return sets_at_call(store, session, call_by_then(store, session, time_ms))


def _content(store: Store, found: Found, version: Version, part: AskedPart | None = None) -> str:
    """The text of a version, or of a part of it. Raises `ForedeckError`."""
    text, why = version_text(store, version.head, part or WHOLE)
    if text is not None:
        return text
    if version.head.fields.get("moved_to"):
        why = f"it {_note(store, version.head)}"
    elif version.head.fields.get("images"):
        why += ", which --json prints in base64"
    raise ForedeckError(f"{found.name} has no content at version {version.number}: {why}.")


def _images(store: Store, version: Version, part: AskedPart) -> dict[str, Any]:
    """The images of a tool's result, if all of it is asked for."""
    addresses = (version.head.fields.get("images") or ()) if part == WHOLE else ()
    images = [b64encode(store.blob(address)).decode() for address in addresses]
    return {"images": images} if images else {}


# From what a user types to an object, and to one version of it


SHOWN = 6
_HASHES = ("content_hash", "text_hash", "source_hash")
_HASH = re.compile(r"[0-9a-f]{8,64}")


def find_asked(store: Store, args: Namespace) -> Found:
    """The object that the arguments name. Raises `NotFound`."""
    session = None if args.session is None else find_session(store, args.session)
    return find_object(store, args.object, session)


def find_asked_part(store: Store, args: Namespace) -> tuple[Found, AskedPart]:
    """The object, and the part of it that its name asks for. Raises `NotFound`."""
    session = None if args.session is None else find_session(store, args.session)
    return find_part(store, " ".join(args.object), session)


def find_version(store: Store, found: Found, text: str | None) -> Version:
    """The version that `text` names; None is the newest.

    Raises `NotFound`, and `Corrupt` if the version that a session saw differs from what is stored.
    """
    history = store.history(found.id)
    if text is None:
        return Version(len(history), history[-1])
    # Eight digits may be a number, or the start of a hash without a letter.
    if text.isascii() and text.isdecimal() and not _with_hash(history, text):
        return Version(int(text), numbered(found, history, int(text)))
    if re.fullmatch(r"v\d+", text):
        return _session_version(store, found, history, int(text[1:]))
    if store.transactions([Token(text)]):
        return _as_of(store, found, history, Token(text))
    same = _with_hash(history, text)
    return same[-1] if same else _by_time(found, history, text)


def has_hash(head: Head, text: str) -> bool:
    """Whether a hash of the version begins with `text`, of at least 8 digits."""
    if not _HASH.fullmatch(text):
        return False
    return any(str(head.fields.get(name) or "").startswith(text) for name in _HASHES)


def session_versions(store: Store, found: Found) -> dict[Token, int]:
    """The session's numbers of the object's versions, by token."""
    if found.session is None or found.ordinal is None:
        return {}
    numbers: dict[Token, int] = {}
    for ref in versions_seen(store, found.session, found.ordinal):
        head = store.head(found.id, Token(ref.token))
        if head is not None:
            numbers.setdefault(head.token, ref.version)
    return numbers


def _with_hash(history: Sequence[Head], text: str) -> list[Version]:
    numbered = enumerate(history, start=1)
    return [Version(number, head) for number, head in numbered if has_hash(head, text)]


def _by_time(found: Found, history: Sequence[Head], text: str) -> Version:
    time_ms = parse_moment(text)
    if time_ms is None:
        raise NotFound(_no_version(found, history, text))
    number = sum(1 for head in history if version_ms(head) <= time_ms)
    if number == 0:
        raise NotFound(
            f"{found.name} had no version yet at {when(time_ms)}. It has {_listed(history)}."
        )
    return Version(number, history[number - 1])


def _no_version(found: Found, history: Sequence[Head], text: str) -> str:
    if _HASH.fullmatch(text):
        return (
            f"no version of {found.name} has a hash that begins {text}: it has {_listed(history)}."
        )
    return (
        f"{text!r} is no version: give a number from 1 to {len(history)}, a session's version such "
        f"as v2, a token, the start of a hash, or a time ({EXAMPLES}). {found.name} has "
        f"{_listed(history)}."
    )


def _listed(history: Sequence[Head]) -> str:
    numbered = list(enumerate(history, start=1))
    versions = ", ".join(
        f"{number} ({when(version_ms(head))}, {head.fields['content_hash'][:8]})"
        for number, head in numbered[-SHOWN:]
    )
    more = len(numbered) - SHOWN
    return f"version{'s' * (len(numbered) > 1)} {versions}" + (f" and {more} older" * (more > 0))


def _session_version(store: Store, found: Found, history: Sequence[Head], wanted: int) -> Version:
    if found.session is None or found.ordinal is None:
        raise NotFound(
            f"v{wanted} is a version as a session counts them: give --session, or "
            f"a number from 1 to {len(history)} of the object's own history."
        )
    seen = []
    for ref in versions_seen(store, found.session, found.ordinal):
        seen.append(ref.version)
        if ref.version == wanted:
            version = _as_of(store, found, history, Token(ref.token))
            fields = version.head.fields
            verify(ref, fields["content_hash"], fields["text_hash"])
            return version
    raise NotFound(
        f"@{found.ordinal} has no v{wanted}: session {found.session} has seen "
        + ", ".join(f"v{number}" for number in sorted(seen))
        + "."
    )


def _as_of(store: Store, found: Found, history: Sequence[Head], token: Token) -> Version:
    head = store.head(found.id, token)
    if head is None:
        raise NotFound(f"{found.name} did not exist yet at {token}.")
    return Version(number_of(history, head), head)
