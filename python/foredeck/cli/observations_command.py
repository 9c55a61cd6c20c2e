"""`foredeck observations`: notes on a session's chat, to read and change."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import answer
from foredeck.cli.person import check_person, given_text, named_or_chosen
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused, NotFound
from foredeck.home import user_name
from foredeck.model.observations import ObservationDocument, ObservingDocument
from foredeck.names import find_session
from foredeck.observations.keeping import delete, edit, made_from
from foredeck.observations.lease import ObservingLease
from foredeck.observations.reading import Observation, Reflection, stored_notes
from foredeck.store.store import Store

_LEAST_ID = 4


@dataclass(frozen=True, slots=True)
class _Noted:
    """All that was noted of a session, oldest first."""

    session: str
    reflections: Sequence[Reflection]
    observations: Sequence[Observation]
    observing: ObservingDocument | None

    @property
    def listed(self) -> list[Observation | Reflection]:
        return [*self.reflections, *self.observations]


def run(args: Namespace) -> int:
    """`foredeck observations`."""
    if args.text is not None or args.delete:
        check_person(resolve_config(args).config.home, "Changing observations")
    with opened_store(args) as store:
        noted = _noted(args, store)
        if args.text is not None:
            _edit(args, store, noted)
        elif args.delete:
            _delete(args, store, noted)
        else:
            _show(noted, args)
    return 0


def _noted(args: Namespace, store: Store) -> _Noted:
    session = find_session(store, named_or_chosen(args, args.session))
    stored = stored_notes(store, [session])
    return _Noted(
        session,
        sorted(stored.reflections, key=lambda one: one.document.generation),
        stored.observations,
        ObservingLease(store, session).look().document,
    )


def _one(args: Namespace, noted: _Noted) -> Observation | Reflection:
    name, listed = args.note, noted.listed
    if name is None:
        raise CommandRefused("which note? Give its number in the list, or its id.")
    if name.isdecimal() and 1 <= int(name) <= len(listed) and len(name) < _LEAST_ID:
        return listed[int(name) - 1]
    matches = [one for one in listed if one.id == name or _short(one).startswith(name)]
    if len(matches) != 1 or len(name) < _LEAST_ID:
        there = f"1 to {len(listed)}" if listed else "none yet"
        raise NotFound(f"no observation {name!r}; `foredeck observations` lists them ({there})")
    return matches[0]


def _short(one: Observation | Reflection) -> str:
    return one.id.rpartition(":")[2]


# Reading


def _show(noted: _Noted, args: Namespace) -> None:
    notes = noted.listed if args.note is None else [_one(args, noted)]
    lines = [] if notes else ["No notes have been taken of this session."]
    for one in notes:
        lines.append(f"{noted.listed.index(one) + 1}. {_heading(one)}")
        text = "(deleted)" if one.is_deleted else one.text
        lines += [f"   {line}" for line in text.split("\n")]
    if args.note is None and notes:
        lines.append(_total(noted))
    answer(args, _as_json(noted, notes), lines)


def _heading(one: Observation | Reflection) -> str:
    document = one.document
    by = document.model or document.observed_by
    edited_by = ", edited" if document.is_edited else ""
    if isinstance(document, ObservationDocument):
        first, last = document.first_turn, document.last_turn
        turns = f"turn {last}" if first == last else f"turns {first}-{last}"
        mode = document.mode.replace("_", " ")
        size = f"{document.covered_tokens:,} tokens in {one.tokens:,}"
        return f"{_short(one)[:8]}  {turns}, {mode}, {size}, by {by}{edited_by}"
    what = "summary" if document.level == "summary" else "reflection"
    size = f"{document.input_tokens:,} tokens in {one.tokens:,}"
    behind = f"{len(document.observations)} observations"
    dropped = f", {len(document.dropped)} names left out" if document.dropped else ""
    return (
        f"{_short(one)[:8]}  {what} {document.generation} of {behind}, {size}{dropped}, by {by}"
        f"{edited_by}"
    )


def _total(noted: _Noted) -> str:
    covered = sum(one.document.covered_tokens for one in noted.observations)
    unfounded = sum(len(r.unfounded) for one in noted.observations for r in one.document.remarks)
    marked = f"; {unfounded} names are in no source" if unfounded else ""
    now = noted.observing
    at_it = "" if now is None or now.work is None else f"; {now.owner} is at it"
    return f"{covered:,} tokens of chat observed{marked}{at_it}"


def _as_json(noted: _Noted, shown: Sequence[Observation | Reflection]) -> dict[str, Any]:
    def fields(one: Observation | Reflection) -> dict[str, Any]:
        left_out = ("type", "session", "source", "locked", "nickname", "view", "operation")
        kept = {
            name: value
            for name, value in one.head.fields.items()
            if name not in left_out and not name.endswith("_hash")
        }
        return {**kept, "id": one.id, "version": one.token, "content": one.text or None}

    now = noted.observing
    return {
        "session": noted.session,
        "observing": None if now is None else {"work": now.work, "owner": now.owner, **now.last},
        "observed_tokens": sum(one.document.covered_tokens for one in noted.observations),
        "observations": [fields(one) for one in shown if not one.is_condensed],
        "reflections": [fields(one) for one in shown if one.is_condensed],
    }


# Changing


def _edit(args: Namespace, store: Store, noted: _Noted) -> None:
    one = _one(args, noted)
    behind = made_from(store, one.id)
    print(edit(store, one.id, given_text(args.text), user_name()).content)
    _say_what_was_made(behind, "Edit them, too, to change it.")


def _say_what_was_made(behind: Sequence[str], advice: str) -> None:
    if behind:
        names = ", ".join(id.rpartition(":")[2][:8] for id in behind)
        print(f"These were made from it and still say it: {names}. {advice}")


def _delete(args: Namespace, store: Store, noted: _Noted) -> None:
    one = _one(args, noted)
    behind = made_from(store, one.id)
    delete(store, one.id, user_name())
    print(f"{_short(one)[:8]} is deleted; its earlier text stays in the history.")
    _say_what_was_made(behind, "Delete them, too, to remove it.")
