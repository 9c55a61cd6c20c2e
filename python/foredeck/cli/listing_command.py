"""`foredeck sessions` and `objects`: what is stored."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.cli.output import answer, coloured, fitted_table, screen_width, table, typed
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused
from foredeck.lookup.objects import FIELDS, find_objects, listed, listed_in_full
from foredeck.lookup.sessions import SessionSummary, latest_sessions, newest_calls
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, lasted, short_bytes, short_count, shortened, when
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.quoting import printable
from foredeck.names import find_session, name_of, short_ids
from foredeck.store.erasing import size_of
from foredeck.store.protocol import Head
from foredeck.store.store import Store

WIDEST = 100
_PROJECT = 18
_TITLE = 24
"""Where a title has less room, columns are left out."""


def run(args: Namespace) -> int:
    """`foredeck sessions`."""
    with opened_store(args) as store:
        sessions = latest_sessions(store)
        sizes = [size_of(store, session.id) for session in sessions] if args.size else []
        newest = newest_calls(store, [s.id for s in sessions])
        figures = {s.id: session_figure(store, s.id, newest[s.id]) for s in sessions}
        rows = [_as_json(store, s, figures[s.id]) for s in sessions] if args.json else []
    for row, size in zip(rows, sizes, strict=False):
        row["size_bytes"] = size
    return answer(args, {"sessions": rows}, _lines(sessions, sizes, figures))


def _as_json(store: Store, session: SessionSummary, figure: CostFigure) -> dict[str, Any]:
    value = asdict(session)
    del value["short_id"]
    marks = {name: value.pop(f"is_{name}") for name in ("private", "ingested", "gone")}
    objects = len(store.query("member", {"session": session.id}))
    more = {"objects": objects, "figure": figure.to_json()}
    return {"session": value.pop("id"), "cwd": value.pop("folder"), **value, **marks, **more}


def _lines(
    sessions: list[SessionSummary], sizes: list[int], figures: Mapping[str, CostFigure]
) -> Iterator[str]:
    if not sessions:
        yield typed(
            "No session is stored yet. `foredeck ingest` reads those that agents have kept."
        )
        return
    projects = len({session.project for session in sessions})
    of = f" of {counted(projects, 'project')}" if projects > 1 else ""
    sources = {session.harness if session.is_ingested else "" for session in sessions}
    read_in = f", read from {next(iter(sources))}" if len(sources) == 1 and any(sources) else ""
    yield f"{counted(len(sessions), 'session')}{of}{read_in}, the latest first.\n"
    columns = {
        "session": [session.short_id for session in sessions],
        "last used": [when(session.last_ms)[:16] for session in sessions],
        "took": [lasted(session.duration_ms) for session in sessions],
        "msgs": [str(session.messages) for session in sessions],
        "tools": [str(session.tool_calls) for session in sessions],
    }
    if seen := [figure for figure in figures.values() if figure.calls]:
        # Negative where a session has cost more than plain Pi. Tokens stand nowhere beside dollars.
        in_money = any(figure.in_money for figure in seen)
        listed = (figures[session.id] for session in sessions)
        columns["saved"] = [
            each.amounts.saved if each.calls and each.in_money == in_money else ""
            for each in listed
        ]
    if sizes:
        columns["text"] = [short_bytes(size) for size in sizes]
    # As wide as its longest name, but for very long ones.
    columns["project"] = [shortened(session.project_name, _PROJECT) for session in sessions]
    lines, room = _fitted(columns)
    titles = ["title", *(_title(session, shows_source=not read_in) for session in sessions)]
    for number, (line, title) in enumerate(zip(lines, titles, strict=True)):
        text = f"{line}{shortened(title, max(room, 12))}".rstrip()
        yield text if number else coloured(text, "bold")
    yield typed(f"\n`foredeck cost {sessions[0].short_id}` says what a session has cost.")
    if any(session.is_gone for session in sessions):
        yield typed(
            "(gone): Pi's own file was deleted; `foredeck forget SESSION` deletes the rest."
        )


def _fitted(columns: dict[str, list[str]]) -> tuple[list[str], int]:
    """The lines before the titles, and the room that is left for these."""
    for dispensable in ("", "took", "tools", "msgs", "project"):
        columns.pop(dispensable, None)
        rows = zip(*columns.values(), strict=True)
        lines = table([(*columns, ""), *((*row, "") for row in rows)]).split("\n")
        room = min(WIDEST, screen_width()) - len(lines[0])
        if room >= _TITLE:
            break
    return lines, room


def _title(session: SessionSummary, *, shows_source: bool) -> str:
    shows_agent = shows_source if session.is_ingested else session.harness != "pi"
    marks = [
        *(["private"] if session.is_private else []),
        *(["gone"] if session.is_gone else []),
        *([f"from {session.parent[:8]}"] if session.parent else []),
        *(["subagent"] if session.started_by else []),
        *([session.harness] if shows_agent else []),
    ]
    title = printable(session.title) or "(nothing was asked)"
    return f"({', '.join(marks)}) {title}" if marks else title


# Objects


_IN_SESSION = " in session "
"""Follows the path of a file that only a history has."""
_SHORT_HASH = 12


def run_objects(args: Namespace) -> int:
    """`foredeck objects`."""
    if unknown := [type for type in args.type if type not in OBJECT_TYPES]:
        raise CommandRefused(f"there is no {unknown[0]!r}; there are {', '.join(OBJECT_TYPES)}.")
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
    return answer(
        args, {"objects": rows, "total": len(heads)}, _object_lines(shown, ids, len(heads))
    )


def _short_ids(store: Store, heads: Sequence[Head]) -> dict[str, str]:
    sessions = short_ids(head.view(SessionDocument).session_id for head in store.query("session"))
    types = {head.type for head in heads} - {"file"}
    short = short_ids(head.id for type in types for head in store.query(type))
    for head in heads:
        kind, _, session = head.id.partition(":")
        if session in sessions:
            short[head.id] = f"{kind}:{sessions[session]}"
        elif head.type == "file" and _IN_SESSION in name_of(head):
            short[head.id] = head.id[:_SHORT_HASH]
    return short


def _object_lines(shown: Sequence[Head], ids: Mapping[str, str], total: int) -> Iterator[str]:
    if not shown:
        yield "No such object is stored."
        return
    more = "" if len(shown) == total else f" of {total:,}; --limit shows more"
    yield f"{counted(len(shown), 'object')}, the newest first{more}.\n"
    head = ("type", "time", "status", "chars", "id", "object")
    rows = [head, *(_object_row(each, ids) for each in shown)]
    if not any(row[4] for row in rows[1:]):
        rows = [(*row[:4], row[5]) for row in rows]
    yield fitted_table(rows)
    yield typed("\n`foredeck cat OBJECT` prints one, `foredeck history OBJECT` lists its versions.")


def _object_row(head: Head, ids: Mapping[str, str]) -> tuple[str, ...]:
    row = listed(head)
    has_text = row["chars"] is not None and row["status"] != "listed"
    chars = short_count(row["chars"]) if has_text else ""
    # What has no other name goes by its id, a file by its path; what was run or said has a name
    # that others may have, too.
    id, name = ids.get(head.id, ""), row["name"]
    if head.type == "file" and id:
        name = name.partition(_IN_SESSION)[0]
    id, said = ("", id) if name == head.id and id else (id, printable(name))
    return head.type, when(row["time_ms"])[:16], row["status"] or "", chars, id, said
