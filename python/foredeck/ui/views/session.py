"""One session: its prompts as a chart and a table, on a page or in a file that needs nothing else;
where foredeck saw none, what was said in it."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from foredeck.accounting.composition import Composition, Kind, compositions
from foredeck.accounting.report import SessionReport
from foredeck.accounting.shapes import blocks_of
from foredeck.accounting.trace import trace
from foredeck.context.arguments import args_display
from foredeck.errors import NotFound
from foredeck.lookup.branches import branches_of
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.canonical import decode_text
from foredeck.model.documents import SessionDocument
from foredeck.model.messages import unpack
from foredeck.observations.reading import Observation, Reflection, stored_notes
from foredeck.store.protocol import Head, Store
from foredeck.timeline.branches import records_of
from foredeck.ui.charts import bars, folded_handles, outline, tokens_of, why
from foredeck.ui.pages import STATIC, WebPage, environment, link
from foredeck.ui.views.sessions import described, found_session
from foredeck.ui.views.turns import TurnsListing, turns_of

PER_PAGE = 200
_CAME_IN_CHARS = 90
_FIELDS = (
    *("mode", "priority", "category", "first_turn", "last_turn", "files", "remark_count"),
    *("current_task", "suggestion", "observed_by", "model", "is_edited", "dropped"),
)


def session_page(store: Store, name: str, first: int | None) -> WebPage:
    """The session as a timeline of prompts, `PER_PAGE` calls from `first` on (default: the last).

    Raises `NotFound`.
    """
    session, head = found_session(store, name)
    heads = store.query("call", {"session": session})
    if not heads:
        asked = turns_of(store, session, TurnsListing(first))
        data = {**described(store, session, head), **asked}
        return WebPage("turns.html", str(data["title"]), data, "sessions")
    records = in_order(head.fields for head in heads)
    start = _start(len(records), first)
    shown = records[start - 1 : start - 1 + PER_PAGE]
    made = list(compositions(store, heads, {record.ordinal for record in shown}))
    data = {
        **described(store, session, head, records),
        "first": start,
        "last": start + len(shown) - 1,
        "per_page": PER_PAGE,
        "calls_shown": _call_rows(store, made),
        "kinds": [str(kind) for kind in Kind],
        "branches": _branch_rows(store, session, heads),
        "chart": bars(made, lambda call: link("sessions", session, "calls", call)),
        "outline": outline(
            records, start, PER_PAGE, lambda call: link("sessions", session, first=call)
        ),
    }
    return WebPage("session.html", str(data["title"]), data, "sessions")


def _start(calls: int, first: int | None) -> int:
    if first is None:
        first = ((calls - 1) // PER_PAGE) * PER_PAGE + 1 if calls else 1
    return max(1, min(first, max(1, calls)))


def snapshot(
    store: Store,
    report: SessionReport,
    redact: Callable[[Any], Any],
    *,
    diff_lines: int | None = None,
) -> str:
    """The page of a session that has made calls, with what `report` says of it, as HTML.

    `redact` gets every text that is shown, within lists and dicts; without `diff_lines`, the most
    lines of a difference, nothing is said to have been left out. Raises `Missing` or `Corrupt`
    where something stored is gone or altered.
    """
    session, head = found_session(store, report.session)
    heads = store.query("call", {"session": session})
    records = in_order(head.fields for head in heads)
    made = list(compositions(store, heads, {record.ordinal for record in records}))
    said = {
        **report.to_json(),
        **described(store, session, head, records),
        # Of a session that was replayed, the store has not how its provider counts.
        "figure": report.figure.to_json(),
        "branches": _branch_rows(store, session, heads),
    }
    said = redact(said)
    rows = redact(_call_rows(store, made))
    return _rendered(
        {
            **said,
            "files": [_file_difference(changed, diff_lines) for changed in said["files"]],
            "full": diff_lines is None,
            "kinds": [str(kind) for kind in Kind],
            "outline": outline(records, 0, PER_PAGE, lambda call: f"#part-{call}"),
            "parts": [
                _part(made[at : at + PER_PAGE], rows[at : at + PER_PAGE])
                for at in range(0, len(made), PER_PAGE)
            ],
        }
    )


def trace_page(store: Store, name: str, text: str) -> WebPage:
    """The calls of the newest branch, by whether the model could see `text`. Raises `NotFound`."""
    session, head = found_session(store, name)
    records = records_of(store, session)
    if not records:
        raise NotFound(_no_calls(session, head))
    data: dict[str, Any] = {**described(store, session, head, records), "text": text, "spans": []}
    if text:
        data |= trace(store, session, text, records[-1].id).to_json()
    return WebPage("trace.html", "Was it in view?", data, "sessions")


def observations_page(store: Store, name: str) -> WebPage:
    """Reflections and observations of a session, oldest first. Raises `NotFound`."""
    session, head = found_session(store, name)
    stored = stored_notes(store, [session])
    reflections = sorted(stored.reflections, key=lambda one: one.document.generation)
    data = {
        **described(store, session, head),
        "reflections": [_reflection(one) for one in reflections],
        "observations": [_observation(one) for one in stored.observations],
        "covered_tokens": sum(one.document.covered_tokens for one in stored.observations),
        "tokens": sum(one.tokens for one in stored.observations),
    }
    return WebPage("observations.html", "Observations", data, "sessions")


def _call_rows(store: Store, made: Sequence[Composition]) -> list[dict[str, Any]]:
    """What the table says of prompts."""
    # In one question to the store.
    blobs = store.blobs(address for one in made for address in one.record.addresses)
    return [{**_row(one), "came_in": _came_in(store, one.record, blobs)} for one in made]


def _row(one: Composition) -> dict[str, Any]:
    record, stats, cache = one.record, one.record.stats, one.record.cache
    decision = record.decision
    return {
        "call": record.ordinal,
        "time_ms": record.time_ms,
        "model": record.model.name,
        "kind": decision.kind,
        "reason": decision.reason,
        "why": why(decision),
        "weighed": decision.weighed,
        "tokens": {str(kind): tokens_of(record, count) for kind, count in one.chars.items()},
        "tokens_sent": tokens_of(record, one.total),
        "tokens_plain": tokens_of(record, stats.chars_host),
        "chars": {str(kind): count for kind, count in one.chars.items()},
        "chars_sent": stats.chars_sent,
        "chars_host": stats.chars_host,
        "folded": stats.folded,
        "folded_now": folded_handles(record),
        "read": cache.read,
        "written": cache.written,
        "fresh": cache.fresh,
    }


def _came_in(store: Store, record: CallRecord, blobs: dict[str, bytes]) -> dict[str, Any]:
    """What is new in a prompt: what its user asked, else the tools whose results came back."""
    messages = [json.loads(decode_text(blobs[a])) for a in record.addresses if a in blobs]
    asked = [message for message in messages if message.get("role") == "user"]
    ran = [call for message in messages for call in _calls(message)]
    failed = sum(1 for m in messages if m.get("role") == "toolResult" and m.get("isError"))
    said = "" if not asked else _said(unpack(asked[-1].get("content"), store.blob))
    tools = [_shortened(f"{tool} {shown}".strip()) for tool, shown in ran]
    return {"asked": _shortened(said), "tools": tools, "failed": failed}


def _calls(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for block in blocks_of(message) if message.get("role") == "assistant" else ():
        if block.get("type") == "toolCall":
            arguments = block.get("arguments")
            shown = args_display(arguments, "") if isinstance(arguments, dict) else ""
            yield str(block.get("name")), shown


def _said(content: Any) -> str:
    if isinstance(content, list):
        content = " ".join(str(b.get("text") or "") for b in content if isinstance(b, dict))
    return " ".join(str(content or "").split())


def _shortened(text: str) -> str:
    return text if len(text) <= _CAME_IN_CHARS else f"{text[:_CAME_IN_CHARS]}…"


def _branch_rows(store: Store, session: str, heads: Sequence[Head]) -> list[dict[str, Any]]:
    """The branches of a session that has made calls; none where it never left the first."""
    found = branches_of(store, session, heads)
    if len(found.all) < 2:
        return []
    return [{**asdict(b), "current": b is found.current} for b in found.all]


def _no_calls(session: str, head: Head) -> str:
    if not head.fields.get("ingested"):
        return f"session {session} has made no call yet."
    agent = head.view(SessionDocument).harness
    return (
        f"session {session} was read from a history of {agent}: foredeck did not "
        f"see its prompts. `foredeck cost`, `trace` and `show` replay its file in a terminal."
    )


def _observation(one: Observation) -> dict[str, Any]:
    return {
        **_common(one),
        "covered_tokens": one.document.covered_tokens,
        "unfounded": sorted({name for remark in one.document.remarks for name in remark.unfounded}),
    }


def _reflection(one: Reflection) -> dict[str, Any]:
    return {
        **_common(one),
        "level": one.document.level,
        "generation": one.document.generation,
        "observations": list(one.document.observations),
        "input_tokens": one.document.input_tokens,
    }


def _common(one: Observation | Reflection) -> dict[str, Any]:
    fields = {name: one.head.fields.get(name) for name in _FIELDS}
    text = None if one.is_deleted else one.text
    return {"object": one.id, "text": text, "tokens": one.tokens, **fields}


def _file_difference(changed: dict[str, Any], most: int | None) -> dict[str, Any]:
    # Masked as a whole before: a key may stand on several lines.
    lines = changed["diff"].split("\n")
    shown = lines[:most]
    return {**changed, "lines": shown, "more": len(lines) - len(shown)}


def _part(made: list[Composition], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "first": made[0].record.ordinal,
        "last": made[-1].record.ordinal,
        "calls": rows,
        "chart": bars(made, lambda call: f"#call-{call}"),
    }


def _rendered(data: dict[str, Any]) -> str:
    # Their hashes let these two run, and nothing that is shown.
    style, script = (
        Markup((STATIC / name).read_text(encoding="utf-8"))  # ours, and nothing stored in it
        for name in ("style.css", "snapshot.js")
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        environment()
        .get_template("snapshot.html")
        .render(policy=policy, style=style, script=script, page=data, **data)
    )


def _hash(text: str) -> str:
    """What a content policy allows a text by."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
