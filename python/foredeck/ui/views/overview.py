"""The first page: what was spent on which day and project, what failed, what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import PurePath
from typing import Any

from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.config import Config
from foredeck.context.rebase import Prices
from foredeck.context.state.stored_chat import turns_of_session
from foredeck.lookup.sessions import newest_calls, project_folder, titles
from foredeck.memory.trust import KEY_FILE
from foredeck.model.documents import SessionDocument, ToolcallDocument, chat_id, session_of
from foredeck.replay.options import load_prices
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, LocalStore, Store
from foredeck.store.sessions import private_sessions
from foredeck.ui.charts import days
from foredeck.ui.pages import WebPage, link
from foredeck.ui.views.sessions import active_ms
from foredeck.ui.views.turns import used

DAYS = 30
MOST_SESSIONS = 300
"""The last active of the period."""
MOST_TOOL_CALLS = 1_000
SHOWN = 8
_FILE_TOOLS = frozenset(("read", "edit", "write", "multiedit"))


@dataclass(frozen=True, slots=True)
class _Spent:
    """What a session has cost in tokens of uncached input, and in money where prices are known."""

    day: date
    project: str
    cost: float
    plain: float
    money: float
    folded: int
    figure: CostFigure | None = None
    """Of a session whose prompts foredeck saw."""


def overview_page(store: LocalStore, config: Config) -> WebPage:
    """The newest `DAYS` days on which anything was done."""
    active = _active(store)
    newest = max(active.values(), default=0)
    since = newest - DAYS * 86_400_000
    heads = {head.view(SessionDocument).session_id: head for head in store.query("session")}
    chosen = sorted((s for s, ms in active.items() if ms >= since), key=active.__getitem__)
    # Reading what each has cost takes its time.
    chosen = chosen[::-1][:MOST_SESSIONS]
    spent = list(_spent(store, [heads[s] for s in chosen], active))
    figures = [each.figure for each in spent if each.figure and each.figure.calls]
    # Tokens cannot be added to money.
    seen = [figure for figure in figures if figure.in_money] or figures
    # What private sessions have done is counted, and not named.
    calls = store.query("toolcall")[-MOST_TOOL_CALLS:]
    hidden = set(private_sessions(store))
    shown = [
        head for head in calls if session_of(head.view(ToolcallDocument).chat_ref) not in hidden
    ]
    until = datetime.fromtimestamp(newest / 1000).date() if newest else date.today()
    by_day = _by_day(spent, until)
    named = titles(store, chosen[:SHOWN])
    data = {
        "sessions": len(heads),
        "recent": [
            {"session": s, "title": named.get(s, ""), "active_ms": active[s]}
            for s in chosen[:SHOWN]
        ],
        "of": len(chosen),
        "until_ms": newest,
        "days": by_day,
        "days_shown": DAYS,
        "chart": days([(each["day"], each["cost"], each["plain"]) for each in by_day]),
        "projects": _by_project(spent),
        "seen": len(seen),
        "figure": sum(seen, CostFigure()).to_json(),
        "folded": sum(each.folded for each in spent),
        "failures": _failures(shown),
        "files": _files(shown),
        "waiting": _waiting(store, config),
        "tool_calls": len(calls),
    }
    return WebPage("overview.html", "Overview", data, "overview")


def follow_page(store: Store) -> WebPage:
    """The session that was active last, and how many calls it has made: what a browser that
    follows it asks again and again."""
    active = _active(store)
    session = max(active, key=active.__getitem__, default=None)
    newest = None if session is None else newest_calls(store, [session])[session]
    data = {
        "session": session,
        "calls": newest.ordinal if newest else 0,
        "address": None if session is None else link("sessions", session, follow=1),
    }
    return WebPage("follow.html", "Follow", data, "sessions")


def _active(store: Store) -> dict[str, int]:
    """When each session was active last."""
    chats = {head.id: head.time_ms for head in store.query("chat")}
    return {h.view(SessionDocument).session_id: active_ms(h, chats) for h in store.query("session")}


def _spent(store: Store, heads: Sequence[Head], active: dict[str, int]) -> Iterator[_Spent]:
    newest = newest_calls(store, [head.view(SessionDocument).session_id for head in heads])
    chats = store.heads(chat_id(session) for session in newest)
    for head in heads:
        session = head.view(SessionDocument).session_id
        day = datetime.fromtimestamp(active[session] / 1000).date()
        project = project_folder(str(head.fields.get("cwd") or ""))
        last = newest[session]
        if last is not None:
            figure, rows = session_figure(store, session, last), last.spent
            ours, plain = sum(row.ours for row in rows), sum(row.plain for row in rows)
            money = figure.ours if figure.in_money else 0.0
            yield _Spent(day, project, ours, plain, money, last.stats.folded, figure)
        elif chat := chats.get(chat_id(session)):
            tokens, money = _read_in(store, session, chat.token)
            yield _Spent(day, project, tokens, tokens, money, 0)


_MOST_KNOWN = 5_000
_known: dict[tuple[str, str], tuple[float, float]] = {}
"""What sessions that were read in have cost, by the newest token of their chat."""


def _read_in(store: Store, session: str, token: str) -> tuple[float, float]:
    """What a session that was read from a history has cost: in tokens of uncached input, as its
    provider counted, and in money, where the agent wrote that down."""
    # Its chat gets a new token with each turn, so what was summed for an old one is never used.
    if (session, token) not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[session, token] = _sum(store, session, load_prices("anthropic"))
    return _known[session, token]


def _sum(store: Store, session: str, prices: Prices) -> tuple[float, float]:
    tokens, money = 0.0, 0.0
    for head in turns_of_session(store, session):
        usage = used(head.fields.get("assistant_meta") or {})
        tokens += usage["input"] + prices.read * usage["read"] + prices.write * usage["written"]
        money += usage["money"] or 0
    return tokens, money


def _by_day(spent: Sequence[_Spent], until: date) -> list[dict[str, Any]]:
    rows = []
    for ago in range(DAYS - 1, -1, -1):
        day = until - timedelta(days=ago)
        of = [each for each in spent if each.day == day]
        rows.append({"day": day.isoformat(), "sessions": len(of), **_summed(of)})
    return rows


def _by_project(spent: Sequence[_Spent]) -> list[dict[str, Any]]:
    projects = dict.fromkeys(each.project for each in spent)
    rows = []
    for project in projects:
        of = [each for each in spent if each.project == project]
        name = PurePath(project).name or project
        rows.append({"folder": project, "project": name, "sessions": len(of), **_summed(of)})
    return sorted(rows, key=lambda row: row["cost"], reverse=True)[:SHOWN]


def _summed(of: Sequence[_Spent]) -> dict[str, Any]:
    money = sum(each.money for each in of)
    return {
        "cost": round(sum(each.cost for each in of)),
        "plain": round(sum(each.plain for each in of)),
        "money": round(money, 4) or None,
    }


def _failures(calls: Sequence[Head]) -> dict[str, Any]:
    failed = [head for head in calls if head.fields.get("status") == "fail"]
    newest = sorted(failed, key=version_ms, reverse=True)[:SHOWN]
    tools = Counter(str(head.fields.get("tool") or "?") for head in failed)
    return {
        "total": len(failed),
        "tools": [{"tool": tool, "count": count} for tool, count in tools.most_common(5)],
        "newest": [
            {
                "tool": str(head.fields.get("tool") or "?"),
                "shown": str(head.fields.get("args_display") or ""),
                "time_ms": version_ms(head),
                "address": _address(head),
            }
            for head in newest
        ],
    }


def _address(call: Head) -> str:
    """The answer that asked for a tool call, opened."""
    session, _, number = str(call.fields.get("turn_ref")).removeprefix("turn:").rpartition(":")
    if not session or not number.isdecimal():
        return link("objects", call.id)
    return link("sessions", session, "turns", message=number) + f"#t{number}"


def _files(calls: Sequence[Head]) -> list[dict[str, Any]]:
    """Those that were read and changed most often."""
    reads: Counter[str] = Counter()
    edits: Counter[str] = Counter()
    objects: dict[str, str] = {}
    for head in calls:
        tool = str(head.fields.get("tool") or "").lower()
        if tool not in _FILE_TOOLS:
            continue
        given = head.fields.get("args") or {}
        path = given.get("path") or given.get("file_path")
        if isinstance(path, str):
            (reads if tool == "read" else edits)[path] += 1
            for id in head.fields.get("file_refs") or ():
                objects[path] = id
    return [
        {
            "path": path,
            "name": PurePath(path).name,
            "reads": reads[path],
            "edits": edits[path],
            "address": link("objects", objects[path])
            if path in objects
            else link("search", q=PurePath(path).name, type="toolcall"),
        }
        for path, _ in (reads + edits).most_common(SHOWN)
    ]


def _waiting(store: Store, config: Config) -> int:
    """Entries of memory that their user has not decided on."""
    # Without the key there is no user whose memory it could be.
    if not (config.home / KEY_FILE).exists():
        return 0
    return len(store.query("memory", {"state": "proposed"}))
