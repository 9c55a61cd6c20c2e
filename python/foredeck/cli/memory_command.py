"""`foredeck memory` and `working`: what is remembered, and the page of a project or session."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foredeck.cli.arguments import asked_folder, check_project, resolve_config
from foredeck.cli.output import answer, print_content, print_json
from foredeck.cli.person import agent_above, asked, can_ask, check_person, confirm, given_text
from foredeck.cli.stored import made_store, opened_store
from foredeck.errors import CommandRefused, NotFound
from foredeck.memory.describing import (
    MemoryDesk,
    audit_steps,
    audit_text,
    crowded_out_text,
    memory_desk,
    proposal_lines,
    proposals_of,
)
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.memory.keeping import Kept, NewMemory
from foredeck.memory.session import has_data
from foredeck.memory.user_acts import Wording
from foredeck.model.documents import Provenance
from foredeck.model.figures import counted
from foredeck.model.memory import Category
from foredeck.names import find_session
from foredeck.sources.projects import project_at
from foredeck.store.store import Store
from foredeck.working import WorkingMemory, open_page


@contextmanager
def _desk(args: Namespace) -> Iterator[MemoryDesk]:
    """The project's memory; only its user changes something."""
    config = resolve_config(args).config
    if args.action not in _READING:
        check_person(config.home, "Changing memory")
    if args.action == "add":
        check_project(args)
    with (made_store if args.action == "add" else opened_store)(args) as store:
        yield memory_desk(store, config, str(asked_folder(args)))


def run(args: Namespace) -> int:
    """`foredeck memory`."""
    with _desk(args) as desk:
        _ACTIONS[args.action](args, desk)
    return 0


# Reading


def _list(args: Namespace, desk: MemoryDesk) -> None:
    entries = [e for e in _wanted(args, desk) if args.tag in (None, *e.document.tags)]
    more = []
    if not entries:
        with_tag = f" with the tag {args.tag}" if args.tag else ""
        more.append(f"Nothing is remembered here{with_tag}.")
    if crowded := crowded_out_text(desk.acts):
        more.append(crowded)
    if waiting := len(desk.acts.proposals()):
        more.append(f"{counted(waiting, 'proposal')} for you to accept or refuse.")
    _print_entries(args, desk, entries, more)


def _wanted(args: Namespace, desk: MemoryDesk) -> list[MemoryEntry]:
    memory = desk.acts
    if args.all:
        return [*memory.all(), *memory.of_others()]
    if args.proposed:
        return memory.proposals()
    if args.session is not None:
        id = find_session(desk.store, args.session)
        return [*memory.of_session(id, "session"), *memory.of_session(id, "findings")]
    findings = memory.all("findings", "kept") if args.tag else []
    return [*memory.of_user(desk.project), *memory.proposals(), *findings]


def _show(args: Namespace, desk: MemoryDesk) -> None:
    entry = desk.acts.find(args.entry)
    _print(args, desk, entry)
    if entry.document.state == "proposed" and not args.json:
        # The prompt that a proposal came from, and the kept entries like it.
        for proposal in proposals_of(desk.acts):
            if proposal.entry.id == entry.id:
                print("\n".join(proposal_lines(proposal)[1:]))


def _print(args: Namespace, desk: MemoryDesk, entry: MemoryEntry) -> None:
    answer(args, desk.describe.json(entry), lambda: desk.describe.details(entry))


def _audit(args: Namespace, desk: MemoryDesk) -> None:
    steps = audit_steps(desk.acts, desk.acts.find(args.entry))
    answer(args, {"steps": steps}, lambda: audit_text(steps))


# Changing


def _add(args: Namespace, desk: MemoryDesk) -> None:
    session = find_session(desk.store, args.session) if args.session else None
    if session is not None and args.category == "finding":
        _check_data(args, desk.store, session)
    new = NewMemory(
        category=args.category,
        fact=args.text,
        native=args.native or "",
        session=session,
        project=None if args.everywhere else desk.project,
        grounds=tuple(desk.ground.take(args.ground)),
    )
    _done(args, desk, desk.acts.add(new))


def _check_data(args: Namespace, store: Store, session: str) -> None:
    """Raises `MemoryRefused` if no data tool has run in the session."""
    tools = resolve_config(args).config.memory.data_tools
    if not has_data(store, session, tools):
        raise MemoryRefused(
            "A finding is what was found in data, and no data was loaded in that session "
            f"(memory.data_tools: {', '.join(tools) or 'none'}). Add it with --category fact."
        )


def _edit(args: Namespace, desk: MemoryDesk) -> None:
    entry = desk.acts.find(args.entry)
    wording = Wording(args.text, args.native, args.category)
    scoped = args.everywhere or args.here
    if wording == Wording() and not scoped:
        raise CommandRefused("nothing to change: give TEXT, --native, --category or --everywhere")
    kept = None
    if wording != Wording():
        kept = desk.acts.edit(entry.id, wording)
    if scoped:
        kept = desk.acts.set_scope(entry.id, desk.project if args.here else None)
    assert kept is not None
    _done(args, desk, kept)


def _accept(args: Namespace, desk: MemoryDesk) -> None:
    entries = [desk.acts.find(name) for name in args.entry]
    wording = Wording(fact=args.text)
    outcomes = [desk.acts.accept(entry.id, wording) for entry in entries]
    _print_entries(args, desk, [each.entry for each in outcomes])
    for each in outcomes:
        _print_gone(desk, each)


def _refuse(args: Namespace, desk: MemoryDesk) -> None:
    entries = [desk.acts.find(name) for name in args.entry]
    _print_entries(args, desk, [desk.acts.refuse(entry.id).entry for entry in entries])


def _pin(args: Namespace, desk: MemoryDesk) -> None:
    entry = desk.acts.find(args.entry)
    if args.category is None:
        print(desk.describe.details(entry))
    category = args.category or _asked_category()
    project = None if args.everywhere else desk.project
    _done(args, desk, desk.acts.pin(entry.id, category, project))


def _asked_category() -> Category:
    if not can_ask():
        raise CommandRefused("which category? Give --category preference or --category decision.")
    answer = asked("Is it a [p]reference or a [d]ecision?").lower()
    if answer in ("p", "preference"):
        return "preference"
    if answer in ("d", "decision"):
        return "decision"
    raise CommandRefused("nothing was pinned")


def _demote(args: Namespace, desk: MemoryDesk) -> None:
    session = find_session(desk.store, args.session) if args.session else None
    _done(args, desk, desk.acts.demote(desk.acts.find(args.entry).id, session))


def _confirm(args: Namespace, desk: MemoryDesk) -> None:
    entry = desk.acts.find(args.entry)
    grounds = desk.ground.again(entry.document.grounds)
    _done(args, desk, desk.acts.confirm(entry.id, grounds))


def _delete(args: Namespace, desk: MemoryDesk) -> None:
    entries: dict[str, MemoryEntry] = {}
    for name in args.entry:
        entry = desk.acts.find(name)
        descendants = desk.acts.descendants(entry.id)
        family = [entry, *(each for each in descendants if each.document.state != "deleted")]
        entries |= {each.id: each for each in family}
    confirm(
        "Delete it?",
        nothing="nothing was deleted",
        yes=args.yes,
        show=lambda: print("\n".join(map(desk.describe.line, entries.values()))),
    )
    for id in entries:
        desk.acts.delete(id)
    _print_entries(args, desk, [desk.acts.find(id) for id in entries])


def _done(args: Namespace, desk: MemoryDesk, kept: Kept) -> None:
    _print(args, desk, kept.entry)
    _print_gone(desk, kept)


def _print_gone(desk: MemoryDesk, kept: Kept) -> None:
    for gone in kept.gone:
        print(f"foredeck: removed to make room: {desk.describe.line(gone)}", file=sys.stderr)


def _print_entries(
    args: Namespace, desk: MemoryDesk, entries: list[MemoryEntry], more: Sequence[str] = ()
) -> None:
    value = {"entries": [desk.describe.json(entry) for entry in entries]}
    answer(args, value, [*map(desk.describe.line, entries), *more])


_READING = ("list", "show", "audit")

_ACTIONS: dict[str, Callable[[Namespace, MemoryDesk], None]] = {
    "list": _list,
    "show": _show,
    "add": _add,
    "edit": _edit,
    "accept": _accept,
    "refuse": _refuse,
    "pin": _pin,
    "demote": _demote,
    "confirm": _confirm,
    "delete": _delete,
    "audit": _audit,
}


# The page


def run_working(args: Namespace) -> int:
    """`foredeck working`."""
    writes = args.text is not None
    with (made_store if writes else opened_store)(args) as store:
        page = _opened_page(args, store)
        if writes:
            page.put(args.section, given_text(args.text))
        _show_page(args, page)
    return 0


def _opened_page(args: Namespace, store: Store) -> WorkingMemory:
    config = resolve_config(args).config
    generator = "human" if agent_above(config.home) is None else "agent"
    by = Provenance(origin="foredeck", generator=generator)
    if args.session is None:
        project = project_at(config, str(Path.cwd()))
        return open_page(config, store, "resource", project.id, by)
    return open_page(config, store, "thread", find_session(store, args.session), by)


def _show_page(args: Namespace, page: WorkingMemory) -> None:
    page_now = page.read()
    if args.json:
        print_json(
            {
                "id": page.id,
                "scope": page.scope,
                "version": page_now.token,
                "chars": len(page_now.text),
                "max_chars": page.max_chars,
                "content": page_now.text,
                "shown": page.shown(),
            }
        )
    elif args.section is None:
        print_content(page_now.text)
    else:
        parts = {name.casefold(): text for name, text in page.form.parts(page_now.text).items()}
        if args.section.casefold() not in parts and args.text is not None:
            parts[args.section.casefold()] = f"Section {args.section} is removed."
        if args.section.casefold() not in parts:
            raise NotFound(
                f"no section {args.section!r}; the sections are: {', '.join(filter(None, parts))}"
            )
        print_content(parts[args.section.casefold()] + "\n")
