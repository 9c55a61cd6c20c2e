"""The first page: spending by week and project, and the sessions; settings and health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from foredeck.accounting.figure import CostFigure, recorded_figure, session_figure
from foredeck.cli.doctor_command import check_programs, check_state
from foredeck.cli.stored_checks import check_stored
from foredeck.config import Config
from foredeck.context.state.stored_chat import turns_of_session
from foredeck.lookup.sessions import (
    count_calls,
    newest_calls,
    project_folder,
    project_names,
    titles,
)
from foredeck.memory.trust import KEY_FILE
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, chat_id, progress_in
from foredeck.model.figures import amounts, counted, week_of
from foredeck.names import short_ids
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck_inspector.charts import weeks_chart
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Row, Table

PER_PAGE = 50
_MONEY = (
    Column("cost", "Cost", "money"),
    Column("plain", "Without foredeck", "money"),
    Column("saved", "Saved", "money"),
    Column("tokens", "Tokens, unpriced", "tokens"),
)
_SESSIONS = (
    Column("title", "Session", link="address", under="about", tags="tags"),
    Column("project", "Project"),
    Column("active_ms", "Last active", "time"),
    Column("calls", "Calls", "count"),
    *_MONEY,
    Column("model", "Model"),
)


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A stored session with its cost; `newest`: its newest call's record."""

    id: str
    head: Head
    project: str
    active_ms: int
    newest: CallRecord | None
    figure: CostFigure

    @property
    def agent(self) -> str:
        """Whose session it is."""
        return str(self.head.fields.get("harness") or "pi")

    def row(self, short: str) -> Row:
        """The session in a list."""
        fields, progress = self.head.fields, progress_in(self.head.fields)
        tags = [name for name in ("private",) if fields.get(name)]
        about = [short]
        if fields.get("parent_session"):
            about.append("a fork")
        if fields.get("started_by"):
            about.append("a subagent")
        if self.newest is None and progress is not None:
            about += [f"read from {self.agent}", counted(progress.messages, "message")]
        elif self.newest is not None:
            about.append(counted(self.newest.stats.objects, "object"))
        return {
            "session": self.id,
            "title": self.id[:13],
            "address": link("sessions", self.id),
            "about": ", ".join(about),
            "tags": tags,
            "project": PurePath(self.project).name or "(no folder)",
            "folder": self.project,
            "agent": self.agent,
            "active_ms": self.active_ms,
            "calls": self.newest.ordinal if self.newest else self.figure.calls or None,
            "model": self.newest.model.name.rpartition("/")[2] if self.newest else "",
            "private": bool(fields.get("private")),
            "ingested": progress is not None,
            "parent": fields.get("parent_session"),
            "started_by": fields.get("started_by"),
            "figure": self.figure.to_json(),
            **money_of(self.figure),
        }


def overview_page(asked: Asked) -> WebPage:
    """All sessions with their cost; `project` and `agent` choose."""
    store, values = asked.store, asked.values
    listed = list_sessions(store)
    project, agent = values.get("project", ""), values.get("agent", "")
    wanted = project_folder(project) if project else ""
    chosen = [
        each
        for each in listed
        if wanted in ("", each.project) and agent in ("", each.agent)
    ]  # fmt: skip
    seen = [each.figure for each in chosen if each.newest and each.figure.calls]
    # Tokens cannot be added to money.
    counts = [figure for figure in seen if figure.in_money] or seen
    weeks = _summed(chosen, lambda each: week_of(each.active_ms), "week")
    weeks.sort(key=lambda row: row["week"], reverse=True)
    projects = _summed(chosen, lambda each: each.project, "folder")
    names = project_names(row["folder"] for row in projects)
    for row in projects:
        row["project"] = names[row["folder"]]
        row["address"] = link("overview", project=row["folder"], agent=agent)
    projects.sort(key=lambda row: (row["cost"] or 0, row["tokens"] or 0), reverse=True)
    short = short_ids([each.id for each in listed])
    rows = [each.row(short.get(each.id, each.id)) for each in chosen]
    figure = sum(counts, CostFigure())
    data = {
        "total": len(listed),
        "figure": figure.to_json(),
        "seen": len(counts),
        "read_in": sum(each.newest is None for each in chosen),
        "waiting": _waiting(store, asked.reader.config),
        "project": wanted,
        "agent": agent,
        "agents": sorted({each.agent for each in listed}),
        "folders": [folder for folder, _ in Counter(each.project for each in listed).most_common()],
        "chart": weeks_chart([(row["week"], row["cost"], row["plain"]) for row in weeks]),
        "weeks": Table(
            "weeks",
            "By week",
            (Column("week", "Week of"), Column("sessions", "Sessions", "count"), *_MONEY),
            weeks,
            per_page=8,
        ).arranged(values),
        "projects": Table(
            "projects",
            "By project",
            (Column("project", "Project", link="address"), Column("sessions", "Sessions", "count"),
             *_MONEY),
            projects,
            per_page=8,
        ).arranged(values),
        "sessions": Table(
            "sessions",
            counted(len(rows), "session"),
            _SESSIONS,
            rows,
            PER_PAGE,
            lambda shown: _name(store, shown),
        ).arranged(values),
    }  # fmt: skip
    return WebPage("overview.html", "Overview", data, "overview")


def list_sessions(store: Store) -> list[ListedSession]:
    heads = store.query("session")
    chats = {head.id: head for head in store.query("chat")}
    newest = newest_calls(store, [_id(head) for head in heads])
    projects: dict[str, str] = {}
    found = []
    for head in heads:
        session, folder = _id(head), str(head.fields.get("cwd") or "")
        if folder not in projects:
            projects[folder] = project_folder(folder)
        chat, last = chats.get(chat_id(session)), newest[session]
        figure = session_figure(store, session, last)
        if last is None and chat is not None:
            figure = read_in_figure(store, session, str(chat.token))
        active = active_ms(head, 0 if chat is None else chat.time_ms)
        found.append(ListedSession(session, head, projects[folder], active, last, figure))
    return sorted(found, key=lambda each: each.active_ms, reverse=True)


def newest_session(store: Store) -> tuple[str, int] | None:
    """The session active last, and its number of calls."""
    chats = {head.id: head.time_ms for head in store.query("chat")}
    active = {
        _id(head): active_ms(head, chats.get(chat_id(_id(head)), 0))
        for head in store.query("session")
    }
    if not active:
        return None
    session = max(active, key=active.__getitem__)
    return session, count_calls(store, session)


def active_ms(head: Head, chat_ms: int) -> int:
    """When a session was last active; `chat_ms` is the time of its newest turn."""
    # A history was read in long after its session had ended.
    read_in = progress_in(head.fields)
    if read_in is not None and read_in.last_ms:
        return read_in.last_ms
    return max(head.time_ms, chat_ms)


_MOST_KNOWN = 5_000
_known: dict[tuple[str, str], CostFigure] = {}
"""Costs of read-in sessions, by their chats' newest tokens."""


def read_in_figure(store: Store, session: str, token: str) -> CostFigure:
    """Cost of a read-in session's prompts."""
    # Its chat gets a new token with each turn, so what was summed for an old one is never used.
    if (session, token) not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[session, token] = recorded_figure(turns_of_session(store, session))
    return _known[session, token]


def money_of(figure: CostFigure) -> Row:
    if not figure.calls:
        return dict.fromkeys(("cost", "plain", "saved", "tokens"))
    if not figure.in_money:
        return {"cost": None, "plain": None, "saved": None, "tokens": round(figure.ours)}
    words = amounts(figure.plain, figure.ours, in_money=True)
    shown = {"cost": words.ours, "plain": words.plain, "saved": words.saved}
    if figure.saved == 0:
        shown |= {"saved": "", "plain": ""}
    values = {"cost": figure.ours, "plain": figure.plain, "saved": figure.saved}
    return {**{k: round(v, 6) for k, v in values.items()}, "tokens": None, "shown": shown}


def _summed(
    listed: Iterable[ListedSession], key: Callable[[ListedSession], str], name: str
) -> list[Row]:
    groups: dict[str, list[ListedSession]] = {}
    for each in listed:
        groups.setdefault(key(each), []).append(each)
    rows = []
    for value, group in groups.items():
        figures = [each.figure for each in group if each.figure.calls]
        priced = sum((f for f in figures if f.in_money), CostFigure())
        others = sum((f for f in figures if not f.in_money), CostFigure())
        row = {name: value, "sessions": len(group), **money_of(priced)}
        rows.append({**row, "tokens": round(others.ours) if others.calls else None})
    return rows


def _name(store: Store, rows: list[Row]) -> None:
    named = titles(store, [row["session"] for row in rows])
    for row in rows:
        row["title"] = named.get(row["session"]) or row["title"]


def _id(head: Head) -> str:
    return head.view(SessionDocument).session_id


def _waiting(store: Store, config: Config) -> int:
    # Without the key there is no user whose memory it could be.
    if not (config.home / KEY_FILE).exists():
        return 0
    return len(store.query("memory", {"state": "proposed"}))


# Settings and health


_SETTINGS = (
    Column("key", "Setting", "code"),
    Column("value", "Value", "code"),
    Column("origin", "Set by"),
)
_CHECKS = (
    Column("status", "State"),
    Column("name", "What"),
    Column("text", "Is the case", under="advice"),
)


def settings_page(asked: Asked) -> WebPage:
    """Settings in force, and the state of machine and store."""
    resolved, values = asked.resolved, asked.values
    rows: list[Row] = [
        {"key": key, "value": text, "origin": str(resolved.origins[key])}
        for key, text in resolved.texts.items()
    ]
    findings = [*check_state(resolved.config), *check_programs()]
    findings += check_stored(resolved.config, forget_refusals=False)
    checks = [asdict(finding) for finding in findings]
    data: dict[str, Any] = {
        "settings": Table("settings", "Settings", _SETTINGS, rows).arranged(values),
        "checks": Table("checks", "Health", _CHECKS, checks).arranged(values),
        "to_do": sum(finding.status != "ok" for finding in findings),
        "left_out": list(resolved.left_out),
    }
    return WebPage("settings.html", "Settings and health", data, "settings")
