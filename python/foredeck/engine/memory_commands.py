"""The user's `/memory` commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import cast, get_args

from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import Choice, CommandResult, CommandView, ViewKey, ViewRow
from foredeck.memory.describing import (
    Describer,
    Proposal,
    crowded_out_text,
    inbox_text,
    proposal_lines,
    proposals_of,
)
from foredeck.memory.entry import MemoryEntry, MemoryRefused, caps_of
from foredeck.memory.keeping import Kept, NewMemory
from foredeck.memory.sections import day
from foredeck.memory.session import SEVERITIES, SessionMemory
from foredeck.memory.trust import user_of
from foredeck.memory.user_acts import UserActs, Wording
from foredeck.model.memory import Category
from foredeck.model.quoting import one_line
from foredeck.sources.projects import project_names

VERBS = "findings, show, add, accept, edit, refuse, scope, delete"
READING = frozenset({"findings", "show"})
"""Those that change nothing."""
_ON_ONE = frozenset({"show", "accept", "edit", "refuse", "scope", "delete"})
"""Those that take an entry."""

_LISTED = 40

_WAITING_KEYS: list[ViewKey] = [
    {"key": "i", "label": "keep instead", "run": "memory accept {row} instead"},
    {"key": "r", "label": "do not keep", "run": "memory refuse {rows}"},
]
_MEMORY_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "show", "run": "memory show {row}", "opens": True},
    {"key": "a", "label": "accept", "run": "memory accept {row}"},
    {"key": "e", "label": "edit", "run": "memory edit {row} {text}", "asks": "What should it say?"},
    {"key": "w", "label": "everywhere", "run": "memory scope {row} everywhere"},
    {"key": "h", "label": "in this project", "run": "memory scope {row} here"},
    {"key": "s", "label": "in this session", "run": "memory scope {row} session"},
    {"key": "d", "label": "delete", "run": "memory delete {rows}"},
    {"key": "n", "label": "new", "run": "memory add {text}", "asks": "What should be remembered?"},
]
_FINDING_KEYS = [key for key in _MEMORY_KEYS if key["key"] in ("enter", "w", "h", "d")]
_PLACES = {"session": "in this session", "findings": "finding"}


class MemoryCommands:
    def __init__(self, opened: OpenedSession, memory: UserActs) -> None:
        self._opened = opened
        self._objects = opened.session.objects
        self._memory = memory

    def run(self, arguments: str) -> str:
        """Runs what the user typed."""
        verb, _, rest = arguments.partition(" ")
        verbs: Mapping[str, Callable[[str], str]] = {
            "findings": self._findings,
            "show": self._show,
            "add": self._add,
            "accept": self._accept,
            "edit": self._edit,
            "refuse": self._refuse,
            "scope": self._scope,
            "delete": self._delete,
        }
        if verb not in verbs:
            raise MemoryRefused(f"There is no /memory {verb}: it is {VERBS}.")
        if verb not in READING and self._objects.is_an_agents():
            raise MemoryRefused(
                "An agent has started this session, and memory changes by your own acts: type it "
                "in a session of yours."
            )
        return verbs[verb](rest.strip())

    def entries(self) -> tuple[list[Proposal], list[MemoryEntry]]:
        memory, session = self._memory, self._objects.info.id
        entries = [
            *memory.of_user(self._project()),
            *memory.of_session(session, "session"),
            *memory.of_session(session, "findings"),
        ]
        return proposals_of(memory), entries

    def name(self, entry: MemoryEntry) -> str:
        return self._memory.name(entry.id)

    def notes(self) -> list[str]:
        """Further notices on the user's memory."""
        return [*filter(None, [crowded_out_text(self._memory)])]

    def listed(self) -> str:
        """What waits and what is remembered, as text."""
        memory, session = self._memory, self._objects.info.id
        parts = [
            ("About you and your projects", memory.of_user(self._project())),
            ("This session", memory.of_session(session, "session")),
            ("Findings", memory.of_session(session, "findings")),
        ]
        lines: list[str] = []
        for title, entries in parts:
            if entries:
                lines += [f"{title}:", *(self._line(entry) for entry in entries[:_LISTED])]
                lines += [f"  and {len(entries) - _LISTED} more"] * (len(entries) > _LISTED)
        lines += self.notes()
        if waiting := proposals_of(memory):
            wait = "1 waits" if len(waiting) == 1 else f"{len(waiting)} wait"
            lines[:0] = [f"{wait} for your word:", inbox_text(waiting)]
        return "\n".join(lines) or "Nothing is remembered yet. /memory add TEXT keeps something."

    def findings(self, tag: str) -> list[MemoryEntry]:
        """The session's findings, perhaps by tag."""
        return _tagged(self._memory.of_session(self._objects.info.id, "findings"), tag)

    def _findings(self, rest: str) -> str:
        if rest in ("on", "off"):
            return self._choose_findings(wanted=rest == "on")
        lines = [self._line(entry) for entry in self.findings(rest)]
        tagged = f" tagged {rest}" if rest else ""
        return "\n".join(lines) or f"This session has no findings{tagged}."

    def _choose_findings(self, *, wanted: bool) -> str:
        if (switches := self._opened.switches) is None:
            raise MemoryRefused("This session's project is not known here.")
        try:
            switches.choose("findings", wanted=wanted)
        except OSError as error:
            raise MemoryRefused(f"That cannot be kept: {error.strerror or error}.") from error
        has = "has" if wanted else "does not have"
        return f"From the next session on, the model {has} promote-finding in this project."

    def _line(self, entry: MemoryEntry) -> str:
        return f"  {self._describer().line(entry)}"

    def _describer(self) -> Describer:
        memory = self._opened.facilities.part(SessionMemory)
        ground = None if memory is None else memory.ground
        names = partial(project_names, self._objects.store, self._opened.config)
        return Describer(self._memory, ground, self._memory.now_ms(), names)

    def _show(self, rest: str) -> str:
        entry = self._memory.find(rest)
        waiting = [each for each in proposals_of(self._memory) if each.entry.id == entry.id]
        return (
            "\n".join(proposal_lines(waiting[0])) if waiting else self._describer().details(entry)
        )

    def _add(self, rest: str) -> str:
        category, text = _category_first(rest)
        project = self._project() if category == "decision" else None
        outcome = self._memory.add(
            NewMemory(category=category, fact=text, session=self._objects.info.id, project=project)
        )
        name = self._memory.name(outcome.entry.id)
        return (
            f"{name} says so already." if outcome.was_there else self._said("Kept as {}.", outcome)
        )

    def _said(self, text: str, kept: Kept) -> str:
        lines = [text.format(self._memory.name(kept.entry.id))]
        lines += [f"Removed to make room: {self._line(entry)}" for entry in kept.gone]
        return "\n".join(lines)

    def _accept(self, rest: str) -> str:
        entry, other = self._named(rest)
        word, _, other = other.partition(" ")
        if word == "instead":
            return self._accept_instead(entry, other)
        if word:
            raise MemoryRefused(
                "It is /memory accept NAME [instead [OTHER]]; /memory edit NAME TEXT rewords it."
            )
        if entry.document.state == "kept" and entry.document.grounds:
            return self._confirm(entry)
        return self._said("Kept as {}.", self._memory.accept(entry.id))

    def _accept_instead(self, entry: MemoryEntry, other: str) -> str:
        if not other:
            waiting = {each.entry.id: each.against for each in proposals_of(self._memory)}
            other = waiting.get(entry.id) or ""
        if not other:
            raise MemoryRefused("It contradicts no other entry: /memory accept NAME keeps it.")
        old = self._memory.find(other)
        self._memory.accept_instead(entry.id, of=old.id)
        name = self._memory.name
        return f"Kept as {name(entry.id)}, in place of {name(old.id)}."

    def _edit(self, rest: str) -> str:
        entry, text = self._named(rest)
        if not text:
            raise MemoryRefused("Say what it shall say: /memory edit NAME TEXT.")
        if entry.document.state == "proposed":
            return self._said("Kept as {}.", self._memory.accept(entry.id, Wording(fact=text)))
        self._memory.edit(entry.id, Wording(fact=text))
        return f"{self._memory.name(entry.id)} says so now."

    def _refuse(self, rest: str) -> str:
        entries = [self._memory.find(name) for name in rest.split() or [""]]
        for entry in entries:
            self._memory.refuse(entry.id)
        are = "It is" if len(entries) == 1 else "They are"
        return f"Not kept. {are} not asked about again."

    def _scope(self, rest: str) -> str:
        entry, where = self._named(rest)
        if where not in ("everywhere", "here", "session"):
            raise MemoryRefused(
                "Say where it holds: /memory scope NAME everywhere, here, or session."
            )
        if where == "session":
            outcome = self._memory.demote(entry.id, self._objects.info.id)
            return self._said("{} is a matter of this session alone now.", outcome)
        if entry.document.place != "global":
            category: Category = "decision" if where == "here" else "preference"
            outcome = self._memory.pin(entry.id, category, self._project())
            return self._said("Kept beyond this session as {}.", outcome)
        outcome = self._memory.set_scope(entry.id, self._project() if where == "here" else None)
        place = "in this project alone" if where == "here" else "everywhere"
        return self._said(f"{{}} holds {place} now.", outcome)

    def _confirm(self, entry: MemoryEntry) -> str:
        memory = self._opened.facilities.part(SessionMemory)
        if memory is None:
            raise MemoryRefused("What it rests on cannot be read here.")
        self._memory.confirm(entry.id, memory.ground.again(entry.document.grounds))
        name = self._memory.name(entry.id)
        return f"{name} holds as the code is now. It is back when the prompt is next rewritten."

    def _delete(self, rest: str) -> str:
        entries = [self._memory.find(name) for name in rest.split() or [""]]
        gone = [each.id for entry in entries for each in self._memory.delete(entry.id)]
        names = ", ".join(map(self._memory.name, dict.fromkeys(gone)))
        return f"Taken out: {names}. Earlier versions stay until they are purged."

    def _named(self, rest: str) -> tuple[MemoryEntry, str]:
        name, _, text = rest.partition(" ")
        return self._memory.find(name), text.strip()

    def _project(self) -> str:
        return self._opened.session_folder.project.id


def memory_command(opened: OpenedSession, arguments: str) -> CommandResult | str:
    """`/memory`: a view, or what a verb came to. Raises `ToolError` with a text for the user."""
    memory = memory_commands(opened)
    verb, _, rest = arguments.partition(" ")
    tag = rest.strip()
    if not arguments:
        return memory_view(memory)
    if verb == "findings" and tag not in ("on", "off"):
        return findings_view(memory, tag)
    try:
        return memory.run(arguments)
    except MemoryRefused as refused:
        raise ToolError(str(refused)) from refused  # which leaves the session open


def memory_choices(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    if verb not in _ON_ONE:
        return
    memory = memory_commands(opened)
    waiting, entries = memory.entries()
    yield from ((each.name, each.entry.document.fact) for each in waiting)
    if verb != "refuse":
        yield from ((memory.name(entry), entry.document.fact) for entry in entries)


def memory_commands(opened: OpenedSession) -> MemoryCommands:
    """Raises `ToolError` without a user."""
    user = user_of(opened.config)
    if user is None:
        raise ToolError("Your key in the state folder cannot be read: `foredeck doctor` says why.")
    objects = opened.session.objects
    deciding = UserActs(objects.store, user, caps_of(opened.config), by=objects.info.id)
    return MemoryCommands(opened, deciding)


def memory_view(memory: MemoryCommands) -> CommandResult:
    """`/memory`: proposals first, then entries."""
    waiting, entries = memory.entries()
    wait = "1 waits" if len(waiting) == 1 else f"{len(waiting)} wait"
    title = f"Memory: {len(entries)} kept" + (f", {wait} for your word." if waiting else ".")
    rows = [
        *(
            _memory_row(each.name, each.entry, "waits") | {"about": proposal_lines(each)}
            for each in waiting
        ),
        *(_memory_row(memory.name(entry), entry, "kept") for entry in entries),
    ]
    view: CommandView = {
        "title": title,
        "notes": memory.notes(),
        "bar": [],
        "heads": ["", "state", "category", "whose word", "holds", "learned", "entry"],
        "rows": rows,
        "keys": [*_MEMORY_KEYS[:1], *(_WAITING_KEYS if waiting else []), *_MEMORY_KEYS[1:]],
        "empty": "Nothing is remembered yet: n keeps something.",
    }
    return {"text": memory.listed(), "view": view}


def findings_view(memory: MemoryCommands, tag: str) -> CommandResult:
    """`/memory findings`: newest first, with severity."""
    findings, text = memory.findings(tag), memory.run(f"findings {tag}")
    title = f"Findings of this session{f' tagged {tag}' if tag else ''}: {len(findings)}."
    view: CommandView = {
        "title": title,
        "notes": [],
        "bar": [],
        "heads": ["", "severity", "learned", "finding"],
        "rows": [_finding_row(memory.name(entry), entry) for entry in findings],
        "keys": _FINDING_KEYS,
        "empty": text,
    }
    return {"text": text, "view": view}


def _finding_row(name: str, entry: MemoryEntry) -> ViewRow:
    tags = entry.document.tags
    severity = next((tag for tag in tags if tag in SEVERITIES), "")
    others = (f"#{one_line(tag)}" for tag in tags if tag != severity)
    text = " ".join([one_line(entry.document.fact), *others])
    return {"name": name, "cells": [name, severity, day(entry.document.learned_ms), text]}


def _memory_row(name: str, entry: MemoryEntry, state: str) -> ViewRow:
    document = entry.document
    whose = {"user-stated": "yours"}.get(entry.trust, "a model's")
    if document.tool_originated:
        whose = "a tool's"
    here = "in this project" if document.scope == "project" else "everywhere"
    fact = one_line(document.fact)
    holds = _PLACES.get(document.place, here)
    text = " ".join([fact, *(f"#{one_line(tag)}" for tag in document.tags)])
    cells = [name, state, document.category, whose, holds, day(document.learned_ms), text]
    return {"name": name, "cells": cells, "fill": fact}


def _tagged(entries: Iterable[MemoryEntry], tag: str) -> list[MemoryEntry]:
    name = tag.removeprefix("#")
    return [entry for entry in entries if not name or name in entry.document.tags]


def _category_first(text: str) -> tuple[Category, str]:
    """`decision We ship on Fridays`; without a category a preference."""
    first, _, rest = text.partition(" ")
    if first in get_args(Category) and first != "finding" and rest.strip():
        return cast("Category", first), rest.strip()
    return "preference", text
