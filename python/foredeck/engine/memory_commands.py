"""What the user types after `/memory`: each of these is an act of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import cast, get_args

from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandResult, CommandView, MemoryQuestion, ViewKey, ViewRow
from foredeck.memory.describing import Describer, Proposal, inbox_text, proposal_lines, proposals_of
from foredeck.memory.entry import MemoryEntry, MemoryRefused, caps_of
from foredeck.memory.keeping import Kept, NewMemory
from foredeck.memory.sections import day
from foredeck.memory.trust import user_of
from foredeck.memory.user_acts import UserActs, Wording
from foredeck.model.memory import Category
from foredeck.model.quoting import one_line
from foredeck.sources.projects import project_names

VERBS = "list, findings, show, add, accept, replace, edit, refuse, pin, scope, confirm, delete"
READING = frozenset({"", "list", "findings", "show"})
"""Those that change nothing."""

_LISTED = 40

_WAITING_KEYS: list[ViewKey] = [
    {"key": "a", "label": "keep", "run": "memory accept {row}"},
    {"key": "i", "label": "keep instead", "run": "memory replace {row}"},
    {"key": "r", "label": "do not keep", "run": "memory refuse {row}"},
]
_MEMORY_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "show", "run": "memory show {row}", "opens": True},
    {"key": "e", "label": "edit", "run": "memory edit {row} {text}", "asks": "What should it say?"},
    {"key": "d", "label": "delete", "run": "memory delete {row}"},
    {"key": "n", "label": "new", "run": "memory add {text}", "asks": "What should be remembered?"},
]
_PLACES = {"session": "in this session", "findings": "finding"}


class MemoryCommands:
    """`/memory` for one session. Every method answers with a text for the user, or raises
    `MemoryRefused`."""

    def __init__(self, opened: OpenedSession, memory: UserActs) -> None:
        self._opened = opened
        self._objects = opened.session.objects
        self._memory = memory

    def run(self, arguments: str) -> str:
        """Do what the user has typed."""
        verb, _, rest = arguments.partition(" ")
        verbs: Mapping[str, Callable[[str], str]] = {
            "": self._list,
            "list": self._list,
            "findings": self._findings,
            "show": self._show,
            "add": self._add,
            "accept": self._accept,
            "replace": self._replace,
            "edit": self._edit,
            "refuse": self._refuse,
            "pin": self._pin,
            "scope": self._scope,
            "confirm": self._confirm,
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
        """What waits for the user's word; what is kept of the user and in this session."""
        memory, session = self._memory, self._objects.info.id
        kept = [
            *memory.of_user(self._project()),
            *memory.of_session(session, "session"),
            *memory.of_session(session, "findings"),
        ]
        return proposals_of(memory), kept

    def name(self, entry: MemoryEntry) -> str:
        """What an entry is called."""
        return self._memory.name(entry.id)

    def questions(self, entry: str) -> list[MemoryQuestion]:
        """The question about this entry, for the host to ask; empty where it does not wait."""
        waiting = proposals_of(self._memory)
        return [
            {"name": each.name, "lines": proposal_lines(each)}
            for each in waiting
            if each.entry.id == entry
        ]

    def _list(self, rest: str) -> str:
        """`rest`: only those with this tag."""
        memory, session = self._memory, self._objects.info.id
        parts = [
            ("About you and your projects", memory.of_user(self._project())),
            ("This session", memory.of_session(session, "session")),
            ("Findings", memory.of_session(session, "findings")),
        ]
        lines: list[str] = []
        for title, found in parts:
            if entries := _tagged(found, rest):
                lines += [f"{title}:", *(self._line(entry) for entry in entries[:_LISTED])]
                lines += [f"  and {len(entries) - _LISTED} more"] * (len(entries) > _LISTED)
        if rest:
            return "\n".join(lines) or f"Nothing with the tag {rest} is remembered."
        if waiting := proposals_of(memory):
            wait = "1 waits" if len(waiting) == 1 else f"{len(waiting)} wait"
            lines[:0] = [f"{wait} for your word:", inbox_text(waiting)]
        return "\n".join(lines) or "Nothing is remembered yet. /memory add TEXT keeps something."

    def _findings(self, rest: str) -> str:
        """Of this session; `rest`: only those with this tag, or `on` and `off` for the tool."""
        if rest in ("on", "off"):
            return self._choose_findings(wanted=rest == "on")
        found = self._memory.of_session(self._objects.info.id, "findings")
        lines = [self._line(entry) for entry in _tagged(found, rest)]
        tagged = f" tagged {rest}" if rest else ""
        return "\n".join(lines) or f"This session has no findings{tagged}."

    def _choose_findings(self, *, wanted: bool) -> str:
        if (switches := self._opened.switches) is None:
            raise MemoryRefused("This session's project is not known here.")
        try:
            switches.choose_findings(wanted)
        except OSError as error:
            raise MemoryRefused(f"That cannot be kept: {error.strerror or error}.") from error
        has = "has" if wanted else "does not have"
        return f"From the next session on, the model {has} promote-finding in this project."

    def _line(self, entry: MemoryEntry) -> str:
        return f"  {self._describer().line(entry)}"

    def _describer(self) -> Describer:
        known = self._opened.facilities.memory
        ground = None if known is None else known.ground
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
        kept = self._memory.add(
            NewMemory(category=category, fact=text, session=self._objects.info.id, project=project)
        )
        name = self._memory.name(kept.entry.id)
        return f"{name} says so already." if kept.was_there else self._said("Kept as {}.", kept)

    def _said(self, text: str, kept: Kept) -> str:
        """An answer about an entry, with what has left to make room for it."""
        lines = [text.format(self._memory.name(kept.entry.id))]
        lines += [f"Removed to make room: {self._line(entry)}" for entry in kept.gone]
        return "\n".join(lines)

    def _accept(self, rest: str) -> str:
        entry, text = self._named(rest)
        kept = self._memory.accept(entry.id, Wording(fact=text) if text else None)
        return self._said("Kept as {}.", kept)

    def _replace(self, rest: str) -> str:
        entry, other = self._named(rest)
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
            return self._accept(rest)
        self._memory.edit(entry.id, Wording(fact=text))
        return f"{self._memory.name(entry.id)} says so now."

    def _refuse(self, rest: str) -> str:
        entry = self._memory.find(rest)
        self._memory.refuse(entry.id)
        return "Not kept. It is not asked about again."

    def _pin(self, rest: str) -> str:
        entry, category = self._named(rest)
        wanted = category or "decision"
        if wanted not in ("preference", "decision"):
            raise MemoryRefused("Say as what: /memory pin NAME preference, or decision.")
        kept = self._memory.pin(entry.id, cast("Category", wanted), self._project())
        return self._said("Kept beyond this session as {}.", kept)

    def _scope(self, rest: str) -> str:
        entry, where = self._named(rest)
        if where not in ("everywhere", "here", "session"):
            raise MemoryRefused(
                "Say where it holds: /memory scope NAME everywhere, here, or session."
            )
        if where == "session":
            kept = self._memory.demote(entry.id, self._objects.info.id)
            return self._said("{} is a matter of this session alone now.", kept)
        kept = self._memory.set_scope(entry.id, self._project() if where == "here" else None)
        place = "in this project alone" if where == "here" else "everywhere"
        return self._said(f"{{}} holds {place} now.", kept)

    def _confirm(self, rest: str) -> str:
        entry, known = self._memory.find(rest), self._opened.facilities.memory
        if known is None or not entry.document.grounds:
            raise MemoryRefused("That entry names no file and no commit that it rests on.")
        self._memory.confirm(entry.id, known.ground.again(entry.document.grounds))
        name = self._memory.name(entry.id)
        return f"{name} holds as the code is now. It is back when the prompt is next rewritten."

    def _delete(self, rest: str) -> str:
        gone = self._memory.delete(self._memory.find(rest).id)
        names = ", ".join(self._memory.name(entry.id) for entry in gone)
        return f"Taken out: {names}. Earlier versions stay until they are purged."

    def _named(self, rest: str) -> tuple[MemoryEntry, str]:
        name, _, text = rest.partition(" ")
        return self._memory.find(name), text.strip()

    def _project(self) -> str:
        return self._opened.session_folder.project.id


def memory_commands(opened: OpenedSession) -> MemoryCommands:
    """`/memory` of an opened session. Raises `ToolError` where there is no user to act for."""
    user = user_of(opened.config)
    if user is None:
        raise ToolError("Your key in the state folder cannot be read: `foredeck doctor` says why.")
    objects = opened.session.objects
    deciding = UserActs(objects.store, user, caps_of(opened.config), by=objects.info.id)
    return MemoryCommands(opened, deciding)


def memory_view(memory: MemoryCommands) -> CommandResult:
    """`/memory`: what waits for the user's word first, then what is kept."""
    waiting, kept = memory.entries()
    wait = "1 waits" if len(waiting) == 1 else f"{len(waiting)} wait"
    title = f"Memory: {len(kept)} kept" + (f", {wait} for your word." if waiting else ".")
    rows = [
        *(
            _memory_row(each.name, each.entry, "waits") | {"about": proposal_lines(each)}
            for each in waiting
        ),
        *(_memory_row(memory.name(entry), entry, "kept") for entry in kept),
    ]
    view: CommandView = {
        "title": title,
        "notes": [],
        "bar": [],
        "heads": ["", "state", "whose word", "holds", "learned", "entry"],
        "rows": rows,
        "keys": [*_MEMORY_KEYS[:1], *(_WAITING_KEYS if waiting else []), *_MEMORY_KEYS[1:]],
        "empty": "Nothing is remembered yet: n keeps something.",
    }
    hint = "/memory list shows what waits and what is kept."
    return {"text": f"{title}\n{hint}" if rows else view["empty"], "view": view}


def _memory_row(name: str, entry: MemoryEntry, state: str) -> ViewRow:
    document = entry.document
    whose = {"user-stated": "yours"}.get(entry.trust, "a model's")
    if document.tool_originated:
        whose = "a tool's"
    here = "in this project" if document.scope == "project" else "everywhere"
    fact = one_line(document.fact)
    holds = _PLACES.get(document.place, here)
    cells = [name, state, whose, holds, day(document.learned_ms), fact]
    return {"name": name, "cells": cells, "fill": fact}


def _tagged(entries: Iterable[MemoryEntry], tag: str) -> list[MemoryEntry]:
    wanted = tag.removeprefix("#")
    return [entry for entry in entries if not wanted or wanted in entry.document.tags]


def _category_first(text: str) -> tuple[Category, str]:
    """`decision We ship on Fridays`; without a category it is a preference."""
    first, _, rest = text.partition(" ")
    if first in get_args(Category) and first != "finding" and rest.strip():
        return cast("Category", first), rest.strip()
    return "preference", text
