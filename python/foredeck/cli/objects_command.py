"""`foredeck objects`: which objects are stored."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from foredeck.cli.output import answer, fitted_table, typed
from foredeck.cli.stored import opened_store
from foredeck.lookup.objects import FIELDS, find_objects, listed, listed_in_full
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, short_count, when
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.quoting import printable
from foredeck.names import find_session, short_ids
from foredeck.store.protocol import Head, Store


def run(args: Namespace) -> int:
    """`foredeck objects`."""
    with opened_store(args) as store:
        heads = find_objects(
            store,
            args.type or OBJECT_TYPES,
            contains=args.path or "",
            status=args.status,
            session=find_session(store, args.session) if args.session else None,
            fields={name: getattr(args, name) for name in FIELDS},
        )
        shown = heads[: args.limit]
        rows = listed_in_full(store, shown) if args.json else []
        ids = {} if args.json else _short_ids(store, shown)
    return answer(args, {"objects": rows, "total": len(heads)}, _lines(shown, ids, len(heads)))


def _short_ids(store: Store, heads: Sequence[Head]) -> dict[str, str]:
    sessions = short_ids(head.view(SessionDocument).session_id for head in store.query("session"))
    types = {head.type for head in heads} - {"file"}
    short = short_ids(head.id for type in types for head in store.query(type))
    for head in heads:
        kind, _, session = head.id.partition(":")
        if session in sessions:
            short[head.id] = f"{kind}:{sessions[session]}"
    return short


def _lines(shown: Sequence[Head], ids: Mapping[str, str], total: int) -> Iterator[str]:
    if not shown:
        yield "No such object is stored."
        return
    more = "" if len(shown) == total else f" of {total:,}; --limit shows more"
    yield f"{counted(len(shown), 'object')}, the newest first{more}.\n"
    head = ("type", "stored", "status", "chars", "id", "object")
    rows = [head, *(_row(each, ids) for each in shown)]
    if not any(row[4] for row in rows[1:]):
        rows = [(*row[:4], row[5]) for row in rows]
    yield fitted_table(rows)
    yield typed("\n`foredeck cat OBJECT` prints one, `foredeck history OBJECT` lists its versions.")


def _row(head: Head, ids: Mapping[str, str]) -> tuple[str, ...]:
    row = listed(head)
    has_text = row["chars"] is not None and row["status"] != "listed"
    chars = short_count(row["chars"]) if has_text else ""
    # What has no other name goes by its id, a file by its path; what was run or said has a name
    # that others may have, too.
    id, name = ids.get(head.id, ""), row["name"]
    id, said = ("", id) if name == head.id and id else (id, printable(name))
    return head.type, when(row["time_ms"])[:16], row["status"] or "", chars, id, said
