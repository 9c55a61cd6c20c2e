"""`foredeck purge`: removes a text, or a source with all that came from it, from the store."""

from __future__ import annotations

import re
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.cli.person import check_can_confirm, check_person, confirm
from foredeck.cli.stored import fetch_others, opened_store
from foredeck.config import Config
from foredeck.errors import CommandRefused, Corrupt, StoreUnavailable
from foredeck.memory.sections import lines_in_prompts
from foredeck.memory.user_acts import SHORTEST_TEXT, UserActs, acts_of_user, family_of, said_by_tool
from foredeck.model.figures import counted
from foredeck.model.identity import ENTRY, hash_text
from foredeck.model.messages import LONG_STRING
from foredeck.names import find_object
from foredeck.observations.reading import LONG_NOTE, noted_of, texts_noted
from foredeck.regular_files import read_regular
from foredeck.store.place import StorePlace, open_store, store_place
from foredeck.store.purging import (
    Purge,
    carry_out,
    check_alone,
    finish_pending,
    found_in_files,
    holders_in_files,
    holders_in_store,
    plan_purge,
    purged_stores,
    texts_matched,
    tidy,
)
from foredeck.store.redaction import Redaction
from foredeck.store.store import Store

PATIENCE_S = 20.0
"""Longest wait for the database to have the last writes."""
MOST_MATCHES = 1000
"""Texts that patterns may match; each is then searched for literally."""
MOST_HOST_BYTES = 2**30
NAMED = 10
_NOTHING = "nothing was purged"


@dataclass(slots=True)
class _Wanted:
    """What is to be removed.

    `literals` are found anywhere, also in part; `whole`: hashes of entire texts; `exact`: texts not
    searched for parts; `entries`: memory ids.
    """

    literals: list[str] = field(default_factory=list)
    patterns: list[re.Pattern[str]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    exact: list[str] = field(default_factory=list)
    entries: set[str] = field(default_factory=set)

    def redaction(self) -> Redaction:
        return Redaction(self.literals, self.patterns, self.whole, self.exact)


@dataclass(slots=True)
class _Result:
    """What was purged, and what is left.

    `left`: what still holds the text; `to_do`: for the user; `host_files`: Pi's own files with the
    text.
    """

    plans: list[tuple[StorePlace, Purge]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)
    host_files: list[str] = field(default_factory=list)

    @property
    def purges(self) -> list[Purge]:
        return [purge for _, purge in self.plans]

    @property
    def is_done(self) -> bool:
        return not (self.left or self.to_do)


def run(args: Namespace) -> int:
    """`foredeck purge`."""
    config = resolve_config(args).config
    if not args.dry_run:
        check_person(config.home, "Erasing")
        check_alone(config)
        # Before anything else: a purge that was interrupted has removed only some of it.
        if pending := finish_pending(config):
            tidy(config.home, Redaction())
            to_do = [text for place in pending for text in place.finish()]
            print("foredeck: finished a purge that had been interrupted", file=sys.stderr)
            if not (args.source or args.text or args.regex):
                for text in to_do:
                    print(f"Not done: {text}")
                return 1 if to_do else 0
    with opened_store(args) as store, Progress("looking through the store, step") as progress:
        fetch_others(store, progress)
        memory = acts_of_user(store, config)
        wanted = _wanted(args, store, memory)
        if not (args.dry_run or args.yes):
            check_can_confirm(_NOTHING)
        _look_for_matches(config, wanted, progress)
        own, *others = purged_stores(config)
        result = _Result([(own, _planned(own, store, memory, wanted, progress))])
        result.plans += _plans_of_others(others, memory, wanted, progress)
        if not args.dry_run:
            progress.clear()
            confirm(
                "This cannot be undone. Purge it?",
                nothing=_NOTHING,
                yes=args.yes,
                show=lambda: print(_summary(result, "would be written again")),
            )
            # What the entries had replaced comes back, and has to be planned, too.
            if wanted.entries and memory.restore_without(wanted.entries):
                result.plans[0] = own, _planned(own, store, memory, wanted, progress)
    if not args.dry_run:
        with Progress("erasing and verifying, step") as progress:
            _carry_out(config, result, wanted.redaction(), progress)
    # Opened anew: the store's file was written again.
    with opened_store(args) as store:
        result.host_files = _host_files(store, wanted.redaction())
    return _report(args, result)


def _carry_out(config: Config, result: _Result, redaction: Redaction, progress: Progress) -> None:
    """Purges every store and the files beside them, then looks whether the text is gone."""
    for place, purge in result.plans:
        if not purge.is_empty:
            # What is on its way to the database would bring the text back.
            _settle(config)
            carry_out(config, place, purge)
            progress.advance(note="erased")
    tidy(config.home, redaction)
    _settle(config)
    for place, purge in result.plans:
        if not purge.is_empty or list(holders_in_files(config.home, redaction, progress.advance)):
            result.to_do += place.finish()
            progress.advance(note="written again")
    for place, _ in result.plans:
        for store in place.all_parts():
            with closing(store):
                found = holders_in_store(store, redaction, progress.advance)
                result.left += [f"{place.name}: {holder}" for holder in found]
    result.left += map(str, holders_in_files(config.home, redaction, progress.advance))


def _settle(config: Config) -> None:
    """Waits until the database has everything. Raises `StoreUnavailable`."""
    place, end = store_place(config), time.monotonic() + PATIENCE_S
    if place.is_one_file:
        return None
    with closing(open_store(config)):  # which delivers while it is open
        while True:
            try:
                return place.check_settled()
            except StoreUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)


def _planned(
    place: StorePlace, store: Store, memory: UserActs, wanted: _Wanted, progress: Progress
) -> Purge:
    amend, advance = memory.user.renew, progress.advance
    return plan_purge(place, store, wanted.redaction(), wanted.entries, amend, advance)


def _plans_of_others(
    places: list[StorePlace], memory: UserActs, wanted: _Wanted, progress: Progress
) -> Iterator[tuple[StorePlace, Purge]]:
    amend = memory.user.renew
    for place in places:
        try:
            with closing(place.open(lazy=True)) as store:
                plan = plan_purge(place, store, wanted.redaction(), (), amend, progress.advance)
        except (StoreUnavailable, Corrupt):
            continue  # the search afterwards reports a store that cannot be read
        yield place, plan


def _look_for_matches(config: Config, wanted: _Wanted, progress: Progress) -> None:
    if not wanted.patterns:
        return
    # Only a literal text is found in other encodings, where it was cut, and in raw files.
    redaction, found = wanted.redaction(), set[str]()

    def take(texts: Iterator[str]) -> None:
        for text in texts:
            if len(text) >= SHORTEST_TEXT:
                found.add(text)
            if len(found) > MOST_MATCHES:
                raise CommandRefused(
                    f"more than {MOST_MATCHES:,} different texts match: give more of it"
                )

    take(found_in_files(config.home, redaction))
    own, *others = purged_stores(config)
    for place in (own, *others):
        try:
            for store in place.all_parts():
                with closing(store):
                    take(texts_matched(store, redaction, progress.advance))
        except (StoreUnavailable, Corrupt):
            if place is own:
                raise
    wanted.literals += sorted(found)


def _wanted(args: Namespace, store: Store, memory: UserActs) -> _Wanted:
    wanted = _Wanted()
    for text in args.text:
        if len(text) < SHORTEST_TEXT:
            raise CommandRefused(f"{text!r} is too short: give at least {SHORTEST_TEXT} characters")
        wanted.literals.append(text)
    for expression in args.regex:
        try:
            wanted.patterns.append(re.compile(expression))
        except re.error as error:
            raise CommandRefused(f"{expression!r} is not a regular expression: {error}") from error
    for name in args.source:
        _want_source(wanted, store, memory, name)
    if wanted == _Wanted():
        raise CommandRefused(
            "purge what? Name a memory entry or an object, or give --text PATTERN."
        )
    for id in wanted.entries:
        wanted.exact += lines_in_prompts(store, id)
    return wanted


def _want_source(wanted: _Wanted, store: Store, memory: UserActs, name: str) -> None:
    """Adds an entry of memory, or an object with its text in all versions."""
    if name.startswith(ENTRY):
        wanted.entries.update(family_of(memory, memory.find(name).id))
        return
    head = find_object(store, name).head
    for version in store.history(head.id):
        if isinstance(digest := version.fields.get("text_hash"), str):
            wanted.whole.add(digest)
            # A short text has no blob of its own, and is searched for literally.
            document = store.document(version)
            text = "" if document is None else document.content or ""
            if SHORTEST_TEXT <= len(text) < LONG_STRING:
                wanted.exact.append(text)
    wanted.entries.update(family_of(memory, head.id))
    wanted.entries.update(said_by_tool(memory, head.fields.get("turn_ref")))
    if head.type == "toolcall":
        texts = texts_noted(store, noted_of(store, head))
        wanted.whole.update(map(hash_text, texts))
        wanted.exact += [text for text in texts if len(text) >= LONG_NOTE]


def _host_files(store: Store, redaction: Redaction) -> list[str]:
    """The host's own files with the text, which foredeck does not touch."""
    files = set()
    for head in store.query("session"):
        if not isinstance(path := head.fields.get("host_file"), str):
            continue
        try:
            data = read_regular(path, MOST_HOST_BYTES)
        except OSError:
            continue
        if redaction.data(data) != data:
            files.add(path)
    return sorted(files)


def _report(args: Namespace, result: _Result) -> int:
    done = not args.dry_run
    value = {
        "purged": done and result.is_done,
        "documents": sum(len(purge.ids) for purge in result.purges),
        "versions": dict(sorted(_versions(result).items())),
        "blobs": sum(len(purge.stale) for purge in result.purges),
        "sessions": sorted(set().union(*(purge.sessions for purge in result.purges))),
        "left": result.left,
        "to_do": result.to_do,
        "host_files": result.host_files,
    }
    lines = [_summary(result, "written again" if done else "would be written again")]
    if result.left:
        lines += ["Not done. These still hold it:", *(f"  {p}" for p in result.left[:NAMED])]
    if len(result.left) > NAMED:
        lines.append(f"  and {len(result.left) - NAMED:,} more")
    lines += [f"Not done: {text}" for text in result.to_do]
    lines += [f"Pi's own file still holds it: {path}" for path in result.host_files]
    if done and result.is_done:
        lines.append("Everything was read again: nothing in the state folder holds it any more.")
    return answer(args, value, lines, 0 if result.is_done else 1)


def _versions(result: _Result) -> Counter[str]:
    return sum((Counter(purge.changed) for purge in result.purges), Counter())


def _summary(result: _Result, what: str) -> str:
    if all(purge.is_empty for purge in result.purges):
        return "No version and no text that is stored holds it."
    documents = sum(len(purge.ids) for purge in result.purges)
    texts = sum(len(purge.stale) for purge in result.purges)
    sessions = set().union(*(purge.sessions for purge in result.purges))
    return (
        f"{counted(documents, 'document')} and {counted(texts, 'text')} {what}: "
        f"{counted(_versions(result).total(), 'version')} that now read [purged] there. Prompts "
        f"of {counted(len(sessions), 'session')} are not byte for byte what was sent any more."
    )
