"""One session: calls, turns, notes; and two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.errors import ForedeckError, NotFound
from foredeck.lookup.sessions import newest_call, titles
from foredeck.model.documents import SessionDocument, chat_id, progress_in, session_object_id
from foredeck.model.figures import counted, lasted, money, short_count, some_of, when
from foredeck.names import find_session
from foredeck.observations.reading import Observation, Reflection, stored_notes
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck_agents.histories.recordings import NO_MODEL
from foredeck_inspector.book import Book, BookedAnswer, BookedCall
from foredeck_inspector.charts import Scale, bars, outline
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Row, Table
from foredeck_inspector.views.overview import read_in_figure
from foredeck_inspector.views.turns import turns_of
from foredeck_inspector.work import LongJob, Work

CALLS_PER_PAGE = 200
_CALLS = (
    Column("call", "Call", "count", link="address"),
    Column("time_ms", "Time", "time"),
    Column("did", "What it did", under="asked", tags="tags"),
    Column("sent", "Sent", "tokens"),
    Column("plain", "Plain Pi", "tokens"),
    Column("cached", "Cached", "share"),
    Column("cost", "Cost", "money"),
    Column("cost_tokens", "Cost, tokens", "tokens"),
    Column("model_ms", "Model", "took"),
    Column("tools_ms", "Tools", "took"),
    Column("happened", "Folded, and why", under="lost"),
)
_OF_CALL = (
    *("time_ms", "model", "kind", "sent", "plain", "cached", "cost"),
    *("folded", "folded_now", "why"),
)
_FIELDS = (
    *("mode", "priority", "category", "first_turn", "last_turn", "files", "remark_count"),
    *("current_task", "suggestion", "observed_by", "model", "is_edited", "dropped"),
    *("level", "generation", "observations", "input_tokens", "covered_tokens"),
)


def found_session(store: Store, name: str) -> tuple[str, Head]:
    """The id and the document of a session. Raises `NotFound`."""
    session = find_session(store, name)
    head = store.head(session_object_id(session))
    if head is None:
        raise NotFound(f"no session {session!r} is stored.")
    return session, head


def title_of(store: Store, session: str) -> str:
    return titles(store, [session]).get(session) or f"Session {session[:13]}"


def session_page(asked: Asked) -> WebPage:
    """A session, in the view that is asked for. Raises `NotFound`."""
    store, work, values = asked.store, asked.work, asked.values
    session, head = found_session(store, asked.part("session"))
    book, reading = work.book(session)
    described = _described(store, session, head, book)
    view = values.get("view") or ("calls" if book.calls else "turns")
    data: dict[str, Any] = {**described, "view": view, "jobs": []}
    if reading is None:
        data |= _view(store, work, book, view, values, data)
    else:
        data["jobs"].append(reading.to_json())
    renews = 1 if data["jobs"] else 0
    return WebPage("session.html", str(data["title"]), data, "overview", renews=renews)


def _view(
    store: Store, work: Work, book: Book, view: str, asked: Mapping[str, str], data: dict[str, Any]
) -> dict[str, Any]:
    match view:
        case "calls":
            return _calls(work, book, asked, data)
        case "noted":
            return noted(store, book.session)
        case "turns":
            return turns_of(store, book, asked)
    raise NotFound(f"there is no view {view!r} of a session: calls, turns or noted.")


def _described(store: Store, session: str, head: Head, book: Book) -> dict[str, Any]:
    fields, progress = head.fields, progress_in(head.fields)
    last = newest_call(store, session)
    figure = _figure(store, session)
    begun, ended = _times(book)
    answers = [answer for answer in book.answers if answer.is_answer]
    paid = sum(answer.usage["money"] or 0 for answer in answers)
    models = dict.fromkeys([c.model for c in book.calls] + [a.model for a in answers])
    children = store.query("session", {"parent_session": session})
    started = store.query("session", {"started_by": session})
    return {
        "session": session,
        "title": title_of(store, session),
        "folder": str(fields.get("cwd") or ""),
        "agent": str(fields.get("harness") or "pi"),
        "private": bool(fields.get("private")),
        "ingested": progress is not None,
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "forks": [child.view(SessionDocument).session_id for child in children],
        "subagents": [_subagent(store, child) for child in started],
        "calls": len(book.calls),
        "answers": len(answers),
        "tool_calls": sum(len(answer.tools) for answer in answers),
        "failed": sum(tool.failed for answer in answers for tool in answer.tools),
        "models": [model for model in models if model not in ("", NO_MODEL)],
        "first_ms": begun,
        "last_ms": ended,
        "model_ms": sum(answer.model_ms or 0 for answer in answers),
        "tools_ms": sum(answer.tools_ms or 0 for answer in answers),
        "figure": figure.to_json(),
        "cost": _cost_words(figure, is_plain=not book.calls),
        "paid": paid or None,
        "largest": max([0, *(call.sent for call in book.calls), *map(_prompt, answers)]),
        "lost": last.lost_so_far.text if last else "",
        "sets": last.stats._asdict() if last else None,
    }


def _prompt(answer: BookedAnswer) -> int:
    return sum(answer.usage[name] for name in ("input", "read", "written"))


def _figure(store: Store, session: str) -> CostFigure:
    last, chat = newest_call(store, session), store.head(chat_id(session))
    if last is None and chat is not None:
        return read_in_figure(store, session, str(chat.token))
    return session_figure(store, session, last)


def _cost_words(figure: CostFigure, *, is_plain: bool) -> str:
    """What the prompts have cost; beside plain Pi if foredeck made them."""
    if not figure.calls:
        return ""
    return f"{figure.amounts.ours} for the prompts" if is_plain else figure.sentence


def _times(book: Book) -> tuple[int | None, int | None]:
    times = [call.time_ms for call in (*book.calls[:1], *book.calls[-1:])]
    for answer in (*book.answers[:1], *book.answers[-1:]):
        times += [time for time in (answer.begun_ms, answer.ended_ms) if time]
    return (min(times), max(times)) if times else (None, None)


def _subagent(store: Store, head: Head) -> dict[str, Any]:
    session = head.view(SessionDocument).session_id
    newest = newest_call(store, session)
    figure = session_figure(store, session, newest).to_json()
    return {"session": session, "title": title_of(store, session), "figure": figure}


# Its calls


def _calls(
    work: Work, book: Book, asked: Mapping[str, str], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Calls as chart and table; a history's answers as a table."""
    rows = call_rows(book)
    tools = sorted({tool for row in rows for tool in row["tools"]})
    chosen = [row for row in rows if _is_asked(row, asked)]
    sought = {name: asked.get(name, "") for name in ("tool", "failed", "cost", "took", "text")}
    table = Table(
        "calls",
        f"{counted(len(chosen), 'call')}" + (f" of {len(rows):,}" if chosen != rows else ""),
        _CALLS,
        chosen,
        CALLS_PER_PAGE,
        starts_at_end=chosen == rows,
    ).arranged(asked)
    shown = sorted(row["call"] for row in table.shown)
    jobs: list[LongJob] = []
    traced: Any = None
    if book.calls and (text := asked.get("text", "")):
        jobs.append(work.trace(book.session, text, len(book.calls)))
        traced = jobs[-1].result
    if book.calls and (job := work.kinds(book)) is not None:
        jobs.append(job)
    first = shown[0] if shown and chosen == rows and not table.sort else 0
    return {
        "listed": table,
        "tools": tools,
        "sought": sought,
        "dearest": _dearest(rows),
        "chart": bars([book.calls[n - 1] for n in shown], _call_address(book))
        if book.calls
        else "",
        "outline": outline(
            [call.sent for call in book.calls],
            first,
            CALLS_PER_PAGE,
            lambda call: link(
                "sessions", book.session, **{"calls.page": (call - 1) // CALLS_PER_PAGE + 1}
            ),
            [] if traced is None else traced["spans"],
        ),
        "trace": traced,
        "branches": [
            {**asdict(branch), "current": len(book.calls) in branch.calls}
            for branch in book.branches
        ],
        "jobs": [*data["jobs"], *(job.to_json() for job in jobs if not job.ended.is_set())],
    }


def _call_address(book: Book) -> Any:
    return lambda call: link("sessions", book.session, "calls", call)


def call_rows(book: Book) -> list[Row]:
    """A row per call, or per answer without foredeck."""
    if not book.rows:
        answers = [answer for answer in book.answers if answer.is_answer]
        book.rows = (
            [_call_row(book, call) for call in book.calls]
            if book.calls
            else [_answer_row(book, number, each) for number, each in enumerate(answers, 1)]
        )
    return book.rows


def _call_row(book: Book, call: BookedCall) -> Row:
    folded = some_of(call.folded_now, 6, " ")
    row = {
        "call": call.ordinal,
        "address": link("sessions", book.session, "calls", call.ordinal),
        **{name: getattr(call, name) for name in _OF_CALL},
        "cost_tokens": round(call.cost_tokens) if call.cost is None else None,
        "happened": "; ".join(filter(None, (folded, call.why))),
        "lost": f"lost: {call.lost}" if call.lost else "",
        "kinds": {str(kind): size for kind, size in call.kinds.items()},
    }
    return {**row, **_did(call.answer, is_unsent=call.is_unsent)}


def _answer_row(book: Book, number: int, answer: BookedAnswer) -> Row:
    usage, prompt = answer.usage, _prompt(answer)
    return {
        "call": number,
        "address": turn_address(book.session, answer.number),
        "time_ms": answer.spoken_ms or answer.begun_ms,
        "model": answer.model,
        "sent": prompt or None,
        "plain": None,
        "cached": usage["read"] / prompt if prompt else None,
        "cost": usage["prompt"],
        "cost_tokens": None,
        "happened": "",
        **_did(answer),
    }


def _did(answer: BookedAnswer | None, *, is_unsent: bool = False) -> Row:
    tools = [] if answer is None else answer.tools
    failed = sum(tool.failed for tool in tools)
    did = [f"{tool.name} {tool.shown}".strip()[:80] for tool in tools]
    tags = ["failed"] if failed else []
    tags += ["not sent"] if is_unsent else []
    return {
        "did": some_of(did, 2, "; ") or ("" if answer is None else "an answer"),
        "asked": f"“{answer.asked}”" if answer is not None and answer.asked else "",
        "tools": list(dict.fromkeys(tool.name for tool in tools)),
        "failed": failed,
        "tags": tags,
        "model_ms": None if answer is None else answer.model_ms,
        "tools_ms": None if answer is None else answer.tools_ms,
        "took_ms": None if answer is None else answer.took_ms,
    }


def turn_address(session: str, number: int, **asked: object) -> str:
    """An answer in the tree of turns, opened."""
    return link("sessions", session, view="turns", message=number, **asked) + f"#t{number}"


def _is_asked(row: Row, asked: Mapping[str, str]) -> bool:
    if asked.get("tool") and asked["tool"] not in row["tools"]:
        return False
    if asked.get("failed") and not row["failed"]:
        return False
    return all(
        (value := row[name]) is not None and value >= least * scale
        for key, name, scale in (("cost", "cost", 1), ("took", "took_ms", 1000))
        if (least := _number(asked.get(key, ""))) is not None
    )


def _number(text: str) -> float | None:
    try:
        return float(text) if text and len(text) < 20 else None
    except ValueError:
        return None


def _dearest(rows: Sequence[Row]) -> Row | None:
    priced = [row for row in rows if row["cost"]]
    if not priced:
        return None
    row = max(priced, key=lambda each: each["cost"])
    return {"call": row["call"], "address": row["address"], "words": money(row["cost"])}


# What was noted of it


def noted(store: Store, session: str) -> dict[str, Any]:
    stored = stored_notes(store, [session])
    reflections = sorted(stored.reflections, key=lambda one: one.document.generation)
    return {
        "reflections": [_note(one) for one in reflections],
        "observations": [_note(one) for one in stored.observations],
        "covered_tokens": sum(one.document.covered_tokens for one in stored.observations),
        "tokens": sum(one.tokens for one in stored.observations),
    }


def _note(one: Observation | Reflection) -> dict[str, Any]:
    remarks = () if one.is_condensed else one.document.remarks
    return {
        "object": one.id,
        "text": None if one.is_deleted else one.text,
        "tokens": one.tokens,
        **{name: one.head.fields.get(name) for name in _FIELDS},
        "unfounded": sorted({name for remark in remarks for name in remark.unfounded}),
    }


# Two side by side


_SIDES = (Column("what", "Measure"), Column("left", "Left"), Column("right", "Right"))


def compare_page(asked: Asked) -> WebPage:
    store, work = asked.store, asked.work
    names = {side: asked.values.get(side, "").strip() for side in ("left", "right")}
    data: dict[str, Any] = {**names, "sides": [], "jobs": [], "listed": None, "wrong": ""}
    books: list[Book] = []
    for name in filter(None, names.values()):
        try:
            session, head = found_session(store, name)
        except ForedeckError as error:
            data["wrong"] = str(error)
            continue
        book, reading = work.book(session)
        books.append(book)
        data["sides"].append(_described(store, session, head, book))
        for job in (reading, work.kinds(book) if reading is None else None):
            if job is not None and not job.ended.is_set():
                data["jobs"].append(job.to_json())
    if len(books) == 2:
        scale = Scale.of_prompts([call for book in books for call in book.calls])
        for side, book in zip(data["sides"], books, strict=True):
            side["chart"] = bars(book.calls[-CALLS_PER_PAGE:], _call_address(book), scale)
        rows = _compared(*data["sides"])
        data["listed"] = Table("both", "Both", _SIDES, rows).arranged(asked.values)
    renews = 1 if data["jobs"] else 0
    return WebPage("compare.html", "Two sessions", data, "overview", renews=renews)


def _compared(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Row]:
    measures: list[tuple[str, Any]] = [
        ("agent", lambda of: of["agent"]),
        ("folder", lambda of: of["folder"]),
        ("model", lambda of: ", ".join(of["models"])),
        ("begun", lambda of: when(of["first_ms"]) if of["first_ms"] else ""),
        ("took", lambda of: _span(of)),
        ("the model's part of it", lambda of: lasted(of["model_ms"]) if of["model_ms"] else ""),
        ("the tools' part of it", lambda of: lasted(of["tools_ms"]) if of["tools_ms"] else ""),
        ("calls", lambda of: f"{of['calls'] or of['answers']:,}"),
        ("tool calls", lambda of: f"{of['tool_calls']:,}"),
        ("of these failed", lambda of: f"{of['failed']:,}"),
        ("cost", lambda of: of["cost"]),
        ("paid, answers included", lambda of: money(of["paid"]) if of["paid"] else ""),
        ("largest prompt", lambda of: f"{short_count(of['largest'])} tokens"),
        ("objects", lambda of: f"{of['sets']['objects']:,}" if of["sets"] else ""),
        ("folded at the end", lambda of: f"{of['sets']['folded']:,}" if of["sets"] else ""),
    ]
    rows = [{"what": name, "left": of(left), "right": of(right)} for name, of in measures]
    return [row for row in rows if row["left"] or row["right"]]


def _span(of: Mapping[str, Any]) -> str:
    return lasted(of["last_ms"] - of["first_ms"]) if of["first_ms"] and of["last_ms"] else ""
