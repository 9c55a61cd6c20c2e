"""`foredeck renames`: files that were renamed unnoticed, and count as deleted."""

from __future__ import annotations

from argparse import Namespace

from foredeck.cli.index_command import Indexed, commit_snapshots
from foredeck.cli.output import print_json, typed
from foredeck.cli.stored import opened_store
from foredeck.errors import ToolError
from foredeck.model.quoting import name
from foredeck.names.finding import find_object, name_of
from foredeck.sources.renames import lost_renames, tied
from foredeck.store.protocol import Head, LocalStore


def run(args: Namespace) -> int:
    """`foredeck renames`."""
    with opened_store(args) as store:
        if args.old is not None:
            if args.new is None:
                raise ToolError("Give both names: `foredeck renames OLD NEW`.")
            old, new = (find_object(store, text, None).head for text in (args.old, args.new))
            _tie(store, old, new)
            found = [(old, [new], True)]
        else:
            found = []
            for lost in list(lost_renames(store)):
                is_clear = len(lost.found) == 1
                if args.repair and is_clear:
                    _tie(store, lost.gone, lost.found[0])
                found.append((lost.gone, list(lost.found), args.repair and is_clear))
    if args.json:
        print_json(
            {
                "renames": [
                    {"from": name_of(old), "to": [name_of(new) for new in to], "tied": is_tied}
                    for old, to, is_tied in found
                ]
            }
        )
        return 0
    for old, to, is_tied in found:
        print(_line(old, to, tied=is_tied))
    if not found:
        print("No unnoticed renames.")
    elif not all(is_tied for _, _, is_tied in found):
        print(
            typed("--repair records those with one new name, `foredeck renames OLD NEW` any two.")
        )
    return 0


def _tie(store: LocalStore, old: Head, new: Head) -> None:
    """Store that a file has become another one. Raises `ToolError` where it has not."""
    if old.fields.get("state") != "deleted":
        raise ToolError(f"{name(name_of(old))} still exists, so it was not renamed.")
    if new.type != "file" or new.id == old.id or new.fields.get("state") == "deleted":
        raise ToolError(f"{name(name_of(new))} is not an existing file.")
    commit_snapshots(store, lambda: tied(store, old, new), Indexed(), lambda _path: None)


def _line(old: Head, to: list[Head], *, tied: bool) -> str:
    names = ", ".join(name(name_of(new)) for new in to)
    if tied:
        return f"{name(name_of(old))} was renamed to {names}."
    may = "may have been renamed to" if len(to) == 1 else "may have been renamed to one of"
    return f"{name(name_of(old))} {may} {names}"
