"""`foredeck sessions`: which sessions are stored."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store
from foredeck.lookup.texts import counted, short_count, when

if TYPE_CHECKING:
    from foredeck.store.protocol import Head, Store


def _run(args: Namespace) -> int:
    with opened_store(args) as store, Progress("looking at session") as progress:
        sessions = []
        for head in store.query("session"):
            sessions.append(_session(store, head, sized=args.size))
            progress.advance()
    sessions.sort(key=lambda session: (session["last_ms"], session["first_ms"]), reverse=True)
    if args.json:
        print_json({"sessions": sessions})
    else:
        _print_text(sessions)
    return 0


def _session(store: Store, head: Head, *, sized: bool) -> dict[str, Any]:
    from foredeck.histories.standing import progress_in
    from foredeck.model.calls import CallRecord
    from foredeck.model.records import call_id
    from foredeck.store.forgetting import size_of

    fields = head.fields
    id, file = fields["session_id"], fields.get("host_file")
    calls = len(store.query("call", {"session": id}))
    records = store.heads([call_id(id, 1), call_id(id, calls)])
    times = [CallRecord(head.fields).time_ms for head in records.values()]
    read_in = progress_in(fields)
    if read_in is not None:
        times += filter(None, (read_in.first_ms, read_in.last_ms))
    times = times or [head.time_ms]
    size = {"size_bytes": size_of(store, id)} if sized else {}
    return size | {
        "session": id,
        "cwd": fields.get("cwd") or "",
        "calls": calls,
        "objects": len(store.query("member", {"session": id})),
        "first_ms": min(times),
        "last_ms": max(times),
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "harness": fields.get("harness") or "pi",
        "ingested": read_in is not None,
        "host_file": file,
        "gone": file is not None and read_in is None and not Path(file).exists(),
    }


def _print_text(sessions: list[dict[str, Any]]) -> None:
    if not sessions:
        print("No session is stored yet.")
        return
    sized = "size_bytes" in sessions[0]
    head = ("session", "first call", "last call", "calls", "objects", "folder")
    rows = [(*_row(s), *([f"{short_count(s['size_bytes'])}B"] if sized else [])) for s in sessions]
    print(table([(*head, *(["text"] if sized else [])), *rows]))
    print(f"\n{counted(len(sessions), 'session')}; `foredeck show SESSION` shows the last prompt.")
    if any(session["gone"] for session in sessions):
        print(
            "Pi's file of those marked as gone was deleted; `foredeck forget SESSION` erases them."
        )


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    parent = f" (from {session['parent']})" if session["parent"] else ""
    if session["started_by"]:
        parent += f" (started by {session['started_by']})"
    if session["ingested"]:
        parent += f" (read from {session['harness']})"
    if session["gone"]:
        parent += " (gone)"
    return (
        session["session"],
        when(session["first_ms"]),
        when(session["last_ms"]),
        str(session["calls"]),
        str(session["objects"]),
        session["cwd"] + parent,
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--size",
        action="store_true",
        help="tell how much text each session refers to, with what it shares with others",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "List the stored sessions, newest first: id, times of the first and the last model call,\n"
        "number of calls and of objects in the session's index, the folder it worked in, and the\n"
        "session it was forked from or whose agent started it. Times are local; with --json in\n"
        "milliseconds since 1970. `(gone)`: Pi's own file of the session was deleted. `(read from\n"
        "...)`: it was read from an agent's history, and its times are those of its messages."
    ),
    example="foredeck sessions",
    configure=_configure,
    run=_run,
)
