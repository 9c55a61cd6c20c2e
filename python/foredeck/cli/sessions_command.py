"""`foredeck sessions`: which sessions are stored."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag
from foredeck.cli.output import counted, print_json, table, when
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store

if TYPE_CHECKING:
    from foredeck.store.protocol import Head, Store


def _run(args: Namespace) -> int:
    with opened_store(args) as store:
        sessions = [_session(store, head) for head in store.query("session")]
    sessions.sort(key=lambda session: (session["last_ms"], session["first_ms"]), reverse=True)
    if args.json:
        print_json({"sessions": sessions})
    else:
        _print_text(sessions)
    return 0


def _session(store: Store, head: Head) -> dict[str, Any]:
    from foredeck.model.records import call_id

    fields = head.fields
    id = fields["session_id"]
    calls = len(store.query("call", {"session": id}))
    records = store.heads([call_id(id, 1), call_id(id, calls)])
    times = [record.fields["time_ms"] for record in records.values()] or [head.time_ms]
    return {
        "session": id,
        "cwd": fields.get("cwd") or "",
        "calls": calls,
        "objects": len(store.query("member", {"session": id})),
        "first_ms": min(times),
        "last_ms": max(times),
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "host_file": fields.get("host_file"),
    }


def _print_text(sessions: list[dict[str, Any]]) -> None:
    if not sessions:
        print("No session is stored yet.")
        return
    head = ("session", "first call", "last call", "calls", "objects", "folder")
    print(table([head, *map(_row, sessions)]))
    print(f"\n{counted(len(sessions), 'session')}; `foredeck show SESSION` shows the last prompt.")


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    parent = f" (from {session['parent']})" if session["parent"] else ""
    if session["started_by"]:
        parent += f" (started by {session['started_by']})"
    return (
        session["session"],
        when(session["first_ms"]),
        when(session["last_ms"]),
        str(session["calls"]),
        str(session["objects"]),
        session["cwd"] + parent,
    )


def _configure(parser: ArgumentParser) -> None:
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "List the stored sessions, newest first: id, times of the first and the last model call,\n"
        "number of calls and of objects in the session's index, the folder it worked in, and the\n"
        "session it was forked from or whose agent started it. Times are local; with --json in\n"
        "milliseconds since 1970."
    ),
    example="foredeck sessions",
    configure=_configure,
    run=_run,
)
